#ifndef STRATA_TESTS_TESTING_LAYERS_TEST_PLACE_H_
#define STRATA_TESTS_TESTING_LAYERS_TEST_PLACE_H_

#include <memory>
#include <string>

#include "strata/allocation/allocator.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"
#include "strata/strategy/registry.h"
#include "strata/strategy/strategy_options.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {

struct TestPlaceOptions : PoolPlaceOptions {
  std::string strategy = "auto_growth";
  StrategyOptions strategy_options;
};

// True if the strategy is auto_growth, or derived from it.
inline bool IsAutoGrowth(const std::string& strategy) {
  return strategy == "auto_growth" || strategy == "virtual_memory";
}

// One chain of a place and the stream it serves.
struct TestChain {
  std::shared_ptr<ChainStream> chain_stream;
  std::shared_ptr<Allocator> strategy;
  std::shared_ptr<Allocator> top;  // the outermost layer

  Allocator& operator*() const { return *top; }
  Allocator* operator->() const { return top.get(); }
  Stream stream() const { return chain_stream->stream(); }
  // The strategy; IsAutoGrowth must be true for it.
  AutoGrowthAllocator& auto_growth() const;
};

// A place with any number of chains, each on its own stream.
class TestPlace : public PoolPlace {
 public:
  explicit TestPlace(const TestPlaceOptions& options = TestPlaceOptions());

  TestChain AddChain();

 private:
  TestPlaceOptions options_;
  StrategySource source_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_TEST_PLACE_H_
