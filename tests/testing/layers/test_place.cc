#include "strata/tests/testing/layers/test_place.h"

#include "strata/allocation/decorators/registry.h"
#include "strata/strategy/registry.h"

namespace strata {

AutoGrowthAllocator& TestChain::auto_growth() const {
  return dynamic_cast<AutoGrowthAllocator&>(*strategy);
}

TestPlace::TestPlace(const TestPlaceOptions& options)
    : PoolPlace(options),
      options_(options),
      source_(options.strategy, pool(), options.strategy_options, frees()) {}

TestChain TestPlace::AddChain() {
  TestChain chain;
  chain.chain_stream = NewChainStream();
  ChainContext context;
  context.place = system()->place();
  context.platform = platform();
  context.stream = chain.chain_stream;
  context.reclaimer = reclaimer();
  context.facade_services = std::make_shared<SharedServices>();
  context.facade_services->Set(timelines());
  context.place_services = std::make_shared<SharedServices>();
  context.place_services->Set(frees());
  chain.strategy = source_.For(chain.chain_stream);
  chain.top = Decorate(chain.strategy, options_.decorators, context);
  return chain;
}

}  // namespace strata
