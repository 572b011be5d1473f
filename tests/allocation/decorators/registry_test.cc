#include "strata/allocation/decorators/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> LayersOf(const Allocator& outermost) {
  std::vector<std::string> names;
  for (const Allocator* layer = &outermost; layer != nullptr;
       layer = layer->underlying()) {
    names.emplace_back(layer->name());
  }
  return names;
}

TEST(DecoratorRegistryTest, NamesEveryDecoratorOutermostFirst) {
  EXPECT_THAT(
      DecoratorNames(),
      ElementsAre("trace", "events", "log", "guard", "observe", "stat", "limit",
                  "retry", "cuda_graph", "stream_safe", "aligned", "fault"));
}

TEST(DecoratorRegistryTest,
     TheDefaultChainIsStatRetryCudaGraphStreamSafeAligned) {
  PoolPlace place;
  ChainContext context;
  context.platform = place.platform();
  EXPECT_THAT(LayersOf(*Decorate(place.pool(), DecoratorOptions(), context)),
              ElementsAre("stat", "retry", "cuda_graph", "stream_safe",
                          "aligned", "chunk_pool", "device"));
}

TEST(DecoratorRegistryTest, WithoutDevicesThereIsNoStreamSafety) {
  PoolPlace place;
  EXPECT_THAT(
      LayersOf(*Decorate(place.pool(), DecoratorOptions(), ChainContext())),
      ElementsAre("stat", "retry", "aligned", "chunk_pool", "device"));
}

TEST(DecoratorRegistryTest, EveryLayerThatIsAskedForIsInItsPlace) {
  DecoratorOptions options;
  options.guard = true;
  options.in_use_limit_bytes = 1;
  options.fault = "nth=1";
  options.trace_path = TemporaryPath("registry_test.csv");
  options.allocation_log_path = TemporaryPath("registry_test.json");
  PoolPlaceOptions place_options;
  place_options.decorators = options;
  PoolPlace place(place_options);
  ChainContext context;
  context.platform = place.platform();
  EXPECT_THAT(LayersOf(*Decorate(place.pool(), options, context)),
              ElementsAre("trace", "log", "guard", "stat", "limit", "retry",
                          "cuda_graph", "stream_safe", "aligned", "chunk_pool",
                          "fault", "device"));
  std::remove(options.trace_path.c_str());
  std::remove(options.allocation_log_path.c_str());
}

TEST(DecoratorRegistryTest, WithoutWishesThereIsNoLayer) {
  PoolPlace place;
  EXPECT_EQ(Decorate(place.pool(), NoDecorators(), ChainContext()),
            place.pool());
}

TEST(DecoratorRegistryTest, AWrongOptionIsRefusedWhenBuilding) {
  DecoratorOptions options = NoDecorators();
  options.fault = "sometimes";
  PoolPlace place;
  EXPECT_THROW(DecorateSystem(place.system(), options, ChainContext()),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
