#include "strata/tools/bench/heaps/driver_heap.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "strata/platform/registry.h"

namespace strata::tools {
namespace {

[[noreturn]] void ThrowAbout(const char* what, Status status) {
  throw std::runtime_error(std::string("driver: ") + what + ": " +
                           StatusName(status));
}

}  // namespace

void DriverHeap::Lane::Throw(Status status) {
  ThrowAbout("cannot allocate or free", status);
}

DriverHeap::DriverHeap(Calls calls, const Options& options, std::size_t streams)
    : platform_(MakePlatform(options.platform)), streams_(device(), streams) {
  if (calls == Calls::kMalloc) return;
  Status status = device().DefaultMemPool(&pool_);
  if (status == Status::kSuccess) {
    status =
        device().PoolSetAttribute(pool_, PoolAttribute::kReleaseThreshold,
                                  std::numeric_limits<std::uint64_t>::max());
  }
  if (status != Status::kSuccess) ThrowAbout("no pool", status);
}

std::optional<std::uint64_t> DriverHeap::allocations() const {
  return device().CallCount(pool_ ? DeviceCall::kMallocFromPoolAsync
                                  : DeviceCall::kMemAlloc);
}

std::optional<std::uint64_t> DriverHeap::peak_reserved_bytes() const {
  std::uint64_t bytes = 0;
  if (!pool_ || device().PoolGetAttribute(pool_, PoolAttribute::kReservedHigh,
                                          &bytes) != Status::kSuccess) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace strata::tools
