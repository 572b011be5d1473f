#include "strata/strategy/thread_local/thread_local_allocator.h"

#include <utility>

#include "strata/strategy/registry.h"

namespace strata {

ThreadLocalAllocator::ThreadLocalAllocator(std::shared_ptr<ChunkPool> pool,
                                           std::shared_ptr<ChainStream> stream,
                                           const StrategyOptions& options)
    : BuddyStrategy("thread_local", std::move(pool), std::move(stream),
                    options),
      owners_(std::make_shared<PoolOwners>()) {}

ThreadLocalAllocator::~ThreadLocalAllocator() { owners_->Close(); }

Block* ThreadLocalAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::size_t size = SizeInPool(bytes);
  BuddyPool* const own = size != 0 ? owners_->Find() : nullptr;
  return own != nullptr ? own->TakeHit(bytes, size) : nullptr;
}

bool ThreadLocalAllocator::GiveCached(Block* block) noexcept {
  BuddyPool* const home = HomeOf(*block);
  if (home != nullptr) ThreadLocalAllocator::GiveToPool(*home, block);
  return home != nullptr;
}

BuddyPool* ThreadLocalAllocator::PoolForRequest() noexcept {
  if (BuddyPool* own = owners_->Find()) return own;
  BuddyPool* pool = owners_->TakeSpare();
  if (pool == nullptr) pool = AddPool();
  if (pool != nullptr) owners_->Own(pool);
  return pool;
}

void ThreadLocalAllocator::GiveToPool(BuddyPool& home, Block* block) noexcept {
  if (owners_->Find() == &home) {
    home.Give(block);
  } else {
    home.GiveLater(block);
  }
}

void CheckThreadLocalAllocator(const StrategyOptions& options,
                               std::uint64_t limit_mb) {
  CheckNaiveBestFitAllocator(options, limit_mb);
}

std::shared_ptr<Allocator> MakeThreadLocalAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return std::make_shared<ThreadLocalAllocator>(std::move(pool),
                                                std::move(stream), options);
}

}  // namespace strata
