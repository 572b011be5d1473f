#include "strata/strategy/buddy/naive_best_fit_allocator.h"

#include <new>
#include <utility>

#include "strata/strategy/registry.h"

namespace strata {

NaiveBestFitAllocator::NaiveBestFitAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options)
    : BuddyStrategy("naive_best_fit", std::move(pool), std::move(stream),
                    options) {
  if (AddPool() == nullptr) throw std::bad_alloc();
}

Block* NaiveBestFitAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::size_t size = SizeInPool(bytes);
  return size != 0 ? first_pool()->TakeHit(bytes, size) : nullptr;
}

bool NaiveBestFitAllocator::GiveCached(Block* block) noexcept {
  BuddyPool* const home = HomeOf(*block);
  if (home != nullptr) home->Give(block);
  return home != nullptr;
}

std::shared_ptr<Allocator> MakeNaiveBestFitAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return std::make_shared<NaiveBestFitAllocator>(std::move(pool),
                                                 std::move(stream), options);
}

}  // namespace strata
