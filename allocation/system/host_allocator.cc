#include "strata/allocation/system/host_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

// Two sizes for a message: "12.0 MiB ... more than 10.0 MiB". In bytes if both
// would read the same.
struct Comparison {
  Comparison(std::uint64_t larger_bytes, std::uint64_t smaller_bytes)
      : larger(HumanBytes(larger_bytes)), smaller(HumanBytes(smaller_bytes)) {
    if (larger != smaller) return;
    larger = std::to_string(larger_bytes) + " B";
    smaller = std::to_string(smaller_bytes) + " B";
  }

  std::string larger;
  std::string smaller;
};

std::uint64_t FractionOf(std::uint64_t bytes, double fraction) {
  if (bytes == 0 || !(fraction > 0)) return UINT64_MAX;
  const double limit = fraction * static_cast<double>(bytes);
  // A limit above the memory of any host is never exceeded.
  return limit < 0x1p63 ? static_cast<std::uint64_t>(limit) : UINT64_MAX;
}

std::uint64_t MemoryOf(const std::shared_ptr<HostSystem>& host,
                       const HostMemoryOptions& options) {
  const bool is_needed =
      options.warn_large_fraction > 0 || options.warn_total_fraction > 0;
  return host != nullptr && is_needed ? host->MemoryBytes() : 0;
}

}  // namespace

HostMemoryRules::HostMemoryRules(std::shared_ptr<HostSystem> host,
                                 const HostMemoryOptions& options)
    : host_(std::move(host)),
      lock_(options.lock && host_ != nullptr),
      memory_bytes_(MemoryOf(host_, options)),
      large_bytes_(FractionOf(memory_bytes_, options.warn_large_fraction)),
      total_bytes_(FractionOf(memory_bytes_, options.warn_total_fraction)) {}

void HostMemoryRules::Obtained(Place place, void* data, std::size_t bytes,
                               std::uint64_t in_use) noexcept {
  if (bytes > large_bytes_ || in_use > total_bytes_) {
    Warn(place, bytes, in_use);
  }
  if (!Locks(bytes)) return;
  const int error = host_->Lock(data, AlignUp(bytes, HostPageBytes()));
  if (error != 0 && !warned_of_lock_.exchange(true)) {
    STRATA_LOG(Warning)
        << ToString(place) << ": " << HumanBytes(bytes)
        << " could not be locked in memory and may be swapped out ("
        << std::generic_category().message(error)
        << "); see ulimit -l and --use_pinned_memory. Further "
           "failures are not logged";
  }
}

void HostMemoryRules::Warn(Place place, std::size_t bytes,
                           std::uint64_t in_use) noexcept {
  // Compares before the increment, so that the count cannot wrap.
  if (bytes > large_bytes_ && large_warnings_.load() < kMostLargeWarnings &&
      large_warnings_.fetch_add(1) < kMostLargeWarnings) {
    const Comparison sizes(bytes, large_bytes_);
    STRATA_LOG(Warning) << ToString(place) << ": an allocation of "
                        << sizes.larger << " is more than " << sizes.smaller
                        << " of the " << HumanBytes(memory_bytes_)
                        << " this process may use";
  }
  if (in_use > total_bytes_ && !warned_of_total_.exchange(true)) {
    const Comparison sizes(in_use, total_bytes_);
    STRATA_LOG(Warning) << ToString(place) << ": " << sizes.larger
                        << " in use are more than " << sizes.smaller
                        << " of the " << HumanBytes(memory_bytes_)
                        << " this process may use";
  }
}

void HostMemoryRules::Returning(void* data, std::size_t bytes) noexcept {
  // Harmless if the piece was not locked.
  if (Locks(bytes)) host_->Unlock(data, AlignUp(bytes, HostPageBytes()));
}

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

std::size_t NumaAllocator::system_size(std::size_t bytes) const {
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
