#include "strata/allocation/host_allocator.h"

#include <algorithm>
#include <cstdlib>

#include "strata/allocation/size.h"

namespace strata {
namespace {

// A cache line and the widest vector register of x86-64.
constexpr std::size_t kHostAlignmentBytes = 64;

}  // namespace

HostAllocator::HostAllocator()
    : SystemAllocator(HostPlace(), kHostAlignmentBytes) {}

void* HostAllocator::Obtain(const Request& request, Failure& failure) noexcept {
  const std::size_t alignment =
      std::max(request.alignment, kHostAlignmentBytes);
  void* data = nullptr;
  if (posix_memalign(&data, alignment, request.bytes) != 0) {
    failure.reason = Failure::Reason::kHostMemory;
    return nullptr;
  }
  return data;
}

void HostAllocator::Return(void* data, std::size_t /*bytes*/) noexcept {
  std::free(data);
}

}  // namespace strata
