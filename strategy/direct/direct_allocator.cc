#include "strata/strategy/direct/direct_allocator.h"

#include <mutex>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/base/log.h"
#include "strata/strategy/registry.h"

namespace strata {

DirectAllocator::DirectAllocator(std::shared_ptr<ChunkPool> pool,
                                 std::shared_ptr<ChainStream> stream)
    : Decorator(std::move(pool)), stream_(std::move(stream)) {}

DirectAllocator::~DirectAllocator() {
  FreeKept();
  while (Block* block = kept_.Pop()) {
    STRATA_LOG(Error) << "direct: freeing " << static_cast<void*>(block->data)
                      << " although its stream could not be waited for";
    SetLive(*block, true);
    underlying()->DoFree(block->allocation());
  }
}

Allocation* DirectAllocator::TryAllocate(const Request& request,
                                         Failure& failure) noexcept {
  if ((request.flags & kNoGrowth) != 0) {
    failure = Refusal(Failure::Reason::kNoGrowth, request);
    return nullptr;
  }
  FreeKept();
  return underlying()->TryAllocate(request, failure);
}

void DirectAllocator::DoFree(Allocation* allocation) noexcept {
  const Status status = stream_->Synchronize();
  if (status == Status::kSuccess) {
    underlying()->DoFree(allocation);
    return;
  }
  Block* block = allocation->block();
  CheckLive(*block, name());
  STRATA_LOG(Error) << "direct: " << allocation->data()
                    << " is kept until its stream can be waited for: "
                    << status;
  // Not live: a second free by the user must be detected.
  SetLive(*block, false);
  const std::lock_guard<SpinLock> guard(lock_);
  kept_.Push(block);
  ++kept_count_;
}

std::size_t DirectAllocator::FreeKept() noexcept {
  if (kept_count_.load() == 0) return 0;
  // Before the wait, because the wait has to cover all of them.
  RecordSlab::List kept;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    std::swap(kept, kept_);
    kept_count_ = 0;
  }
  const bool waited = stream_->Synchronize() == Status::kSuccess;
  std::size_t bytes = 0;
  while (Block* block = kept.Pop()) {
    if (waited) {
      bytes += block->size;
      SetLive(*block, true);
      underlying()->DoFree(block->allocation());
      continue;
    }
    const std::lock_guard<SpinLock> guard(lock_);
    kept_.Push(block);
    ++kept_count_;
  }
  return bytes;
}

void CheckDirectAllocator(const StrategyOptions& /*options*/,
                          std::uint64_t /*limit_mb*/) {}

std::shared_ptr<Allocator> MakeDirectAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& /*options*/) {
  return std::make_shared<DirectAllocator>(std::move(pool), std::move(stream));
}

}  // namespace strata
