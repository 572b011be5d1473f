#ifndef STRATA_TESTS_STRATEGY_SHARED_STREAM_VIEW_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_SHARED_STREAM_VIEW_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "strata/strategy/auto_growth/auto_growth_allocator.h"
#include "strata/strategy/shared/stream_view.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {

// A strategy that two streams share, as StrategySource builds it.
class StreamViewTest : public ::testing::Test {
 protected:
  std::unique_ptr<StreamView> NewView() {
    return std::make_unique<StreamView>(
        strategy_, order_, place_.NewChainStream(), place_.frees());
  }
  std::uint64_t Waits() const {
    return place_.device().CallCount(DeviceCall::kStreamWaitEvent);
  }

  static PoolPlaceOptions Manual() {
    PoolPlaceOptions options;
    options.progress = "manual";
    return options;
  }
  SimDevice& device() { return place_.device(); }
  void Work(const StreamView& view) {
    EXPECT_EQ(device().MemsetAsync(scratch_.ptr, 1, 64, view.stream()),
              Status::kSuccess);
  }
  // Puts both streams in use.
  void UseBoth() {
    a_->Allocate(256).reset();
    b_->Allocate(256).reset();
    EXPECT_TRUE(order_->several());
  }

  void EndCapture() {
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(a_->stream(), &graph),
              Status::kSuccess);
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    place_.timelines()->gate().Withdraw();
  }

  struct Scratch {
    explicit Scratch(SimDevice& on) {
      EXPECT_EQ(on.MemAlloc(&ptr, 4096), Status::kSuccess);
    }
    DevicePtr ptr = 0;
  };

  PoolPlace place_{Manual()};
  Scratch scratch_{place_.device()};
  std::shared_ptr<SharedOrder> order_ = std::make_shared<SharedOrder>();
  std::shared_ptr<AutoGrowthAllocator> strategy_ =
      std::make_shared<AutoGrowthAllocator>(
          place_.pool(), order_, AutoGrowthPolicy(StrategyOptions()));
  struct Closer {
    PoolPlace& place;
    ~Closer() { place.frees()->Close(); }
  } closer_{place_};
  std::unique_ptr<StreamView> a_ = NewView();
  std::unique_ptr<StreamView> b_ = NewView();
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_SHARED_STREAM_VIEW_FIXTURE_H_
