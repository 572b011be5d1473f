#include "strata/allocation/system/host_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

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

}  // namespace strata
