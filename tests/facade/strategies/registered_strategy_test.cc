// A strategy that the program registers. The facade selects it by name, and it
// sees the fields of each request.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/attributes.h"
#include "strata/allocation/decorator.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::Contains;
using testing::ElementsAre;

// Records the count of each request, and forwards everything: the front may use
// the hit path of the strategy below.
class CountRecorder final : public Decorator {
 public:
  using Decorator::Decorator;
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    counts.push_back(request.freed_before);
    return Decorator::TryAllocate(request, failure);
  }
  const char* name() const override { return "count_recorder"; }

  static inline std::vector<std::uint64_t> counts;
};

std::shared_ptr<Allocator> MakeCountRecorder(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return std::make_shared<CountRecorder>(
      MakeAutoGrowthAllocator(std::move(pool), std::move(stream), options));
}

STRATA_REGISTER_STRATEGY("count_recorder", 100, &MakeCountRecorder);

class RegisteredStrategyTest : public FacadeFixture {
 protected:
  RegisteredStrategyTest() {
    CountRecorder::counts.clear();
    Build("allocator_strategy=count_recorder");
  }
};

TEST_F(RegisteredStrategyTest, IsSelectedByItsName) {
  EXPECT_EQ(facade().options().Strategy(), "count_recorder");
  EXPECT_THAT(facade().Layers(DevicePlace(0)), Contains("count_recorder"));
  EXPECT_NE(facade().Alloc(DevicePlace(0), 1000)->data(), nullptr);
  EXPECT_THAT(CountRecorder::counts, ElementsAre(0));
}

// tf_bfc.md R9: a cached block may have been freed after the requested count,
// so the strategy must see the request.
TEST_F(RegisteredStrategyTest, SeesEveryRequestWithACount) {
  std::uint64_t now = 6;
  const std::function<std::uint64_t()> freed_by = [&now] { return ++now; };
  AllocationAttributes attributes;
  attributes.freed_by = &freed_by;
  const Stream stream = facade().GetDefaultStream(DevicePlace(0));
  for (int i = 0; i < 3; ++i) {
    facade().Alloc(DevicePlace(0), ToRequest(1000, attributes), stream).reset();
  }
  EXPECT_THAT(CountRecorder::counts, ElementsAre(7, 8, 9));
}

}  // namespace
}  // namespace strata
