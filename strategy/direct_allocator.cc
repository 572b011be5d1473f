#include "strata/strategy/direct_allocator.h"

#include <glog/logging.h>

#include <utility>

#include "strata/strategy/registry.h"

namespace strata {

DirectAllocator::DirectAllocator(std::shared_ptr<ChunkPool> pool,
                                 std::shared_ptr<ChainStream> stream)
    : Decorator(std::move(pool)), stream_(std::move(stream)) {}

Allocation* DirectAllocator::TryAllocate(const Request& request,
                                         Failure& failure) noexcept {
  if ((request.flags & kNoGrowth) != 0) {
    failure = Failure();
    failure.reason = Failure::Reason::kNoGrowth;
    failure.layer = name();
    failure.place = place();
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  return underlying()->TryAllocate(request, failure);
}

void DirectAllocator::DoFree(Allocation* allocation) noexcept {
  const Status status = stream_->Synchronize();
  LOG_IF(ERROR, status != Status::kSuccess)
      << "direct: freeing " << allocation->data()
      << " although its stream could not be waited for: " << ToString(status);
  underlying()->DoFree(allocation);
}

std::shared_ptr<Allocator> MakeDirectAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& /*options*/) {
  return std::make_shared<DirectAllocator>(std::move(pool), std::move(stream));
}

}  // namespace strata
