#include "strata/strategy/naive_best_fit_allocator.h"

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

std::shared_ptr<Allocator> MakeNaiveBestFitAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return std::make_shared<NaiveBestFitAllocator>(std::move(pool),
                                                 std::move(stream), options);
}

}  // namespace strata
