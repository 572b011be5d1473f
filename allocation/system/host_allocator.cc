#include "strata/allocation/system/host_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

// A cache line and the widest vector register of x86-64.
constexpr std::size_t kHostAlignmentBytes = 64;

}  // namespace

HostAllocator::HostAllocator(std::shared_ptr<HostSystem> host,
                             const HostMemoryOptions& options)
    : SystemAllocator(HostPlace(), kHostAlignmentBytes),
      rules_(std::move(host), options) {}

void* HostAllocator::Obtain(const Request& request, Failure& failure) noexcept {
  std::size_t alignment = std::max(request.alignment, kHostAlignmentBytes);
  std::optional<std::size_t> bytes = request.bytes;
  if (rules_.Locks(request.bytes)) {
    alignment = std::max(alignment, HostPageBytes());
    bytes = CheckedAlignUp(request.bytes, HostPageBytes());
  }
  void* data = nullptr;
  if (!bytes || posix_memalign(&data, alignment, *bytes) != 0) {
    failure.reason = Failure::Reason::kHostMemory;
    return nullptr;
  }
  rules_.Obtained(place(), data, request.bytes, in_use_bytes() + request.bytes);
  return data;
}

Status HostAllocator::Return(void* data, std::size_t bytes) noexcept {
  rules_.Returning(data, bytes);
  std::free(data);
  return Status::kSuccess;
}

namespace {

// Maps `bytes` bytes aligned to `alignment`, both multiples of the page.
// Returns null if the kernel has no memory.
std::byte* Map(std::size_t bytes, std::size_t alignment) {
  // A mapping can start at any page, so map more and unmap both ends.
  const std::optional<std::size_t> padded =
      CheckedAdd(bytes, alignment - HostPageBytes());
  if (!padded) return nullptr;
  void* mapped = mmap(nullptr, *padded, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::size_t>(mapped);
  const std::size_t before = AlignUp(address, alignment) - address;
  const std::size_t after = *padded - bytes - before;
  if (before != 0) munmap(start, before);
  if (after != 0) munmap(start + before + bytes, after);
  return start + before;
}

}  // namespace

NumaAllocator::NumaAllocator(int node, std::shared_ptr<HostSystem> host,
                             const HostMemoryOptions& options)
    : SystemAllocator(HostPlace(node), HostPageBytes()),
      host_(std::move(host)),
      rules_(host_, options) {
  if (host_ == nullptr) {
    throw std::invalid_argument("numa: the host system is missing");
  }
}

void* NumaAllocator::Obtain(const Request& request, Failure& failure) noexcept {
  const std::optional<std::size_t> bytes =
      CheckedAlignUp(request.bytes, HostPageBytes());
  void* data = bytes ? Map(*bytes, std::max(request.alignment, HostPageBytes()))
                     : nullptr;
  if (data == nullptr) {
    failure.reason = Failure::Reason::kHostMemory;
    return nullptr;
  }
  Bind(data, *bytes);
  rules_.Obtained(place(), data, request.bytes, in_use_bytes() + request.bytes);
  return data;
}

void NumaAllocator::Bind(void* data, std::size_t bytes) noexcept {
  const int error = host_->PreferNode(data, bytes, place().index);
  if (error == 0 || warned_.exchange(true)) return;
  STRATA_LOG(Warning)
      << ToString(place())
      << ": the kernel does not take memory from this node ("
      << std::generic_category().message(error)
      << "); it comes from the node of the thread that touches it "
         "first. Further failures are not logged";
}

std::size_t NumaAllocator::SizeOf(std::size_t bytes) const {
  return AlignUp(bytes, HostPageBytes());
}

Status NumaAllocator::Return(void* data, std::size_t bytes) noexcept {
  // Unmapping unlocks.
  if (munmap(data, bytes) == 0) return Status::kSuccess;
  // An unmap in the middle of a mapping creates one more mapping, and their
  // number per process is limited. If it fails, release at least the pages.
  munlock(data, bytes);
  madvise(data, bytes, MADV_DONTNEED);
  return Status::kMemoryAllocation;
}

}  // namespace strata
