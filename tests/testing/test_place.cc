#include "strata/tests/testing/test_place.h"

#include "strata/allocation/registry.h"
#include "strata/strategy/registry.h"

namespace strata {

AutoGrowthAllocator& TestChain::auto_growth() const {
  return dynamic_cast<AutoGrowthAllocator&>(*strategy);
}

TestPlace::TestPlace(const TestPlaceOptions& options)
    : PoolPlace(options), options_(options) {}

TestChain TestPlace::AddChain() {
  TestChain chain;
  chain.chain_stream = NewChainStream();
  ChainContext context;
  context.place = system()->place();
  context.platform = platform();
  context.stream = chain.chain_stream;
  context.reclaimer = reclaimer();
  chain.strategy = MakeStrategy(options_.strategy, pool(), chain.chain_stream,
                                options_.strategy_options);
  chain.top = Decorate(chain.strategy, options_.decorators, context);
  return chain;
}

}  // namespace strata
