// The non-virtual part of Allocator, and Allocation.

#include "strata/allocation/allocator.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

TEST(AllocationTest, OneWordHoldsIt) {
  EXPECT_EQ(sizeof(AllocationPtr), sizeof(void*));
}

TEST(AllocatorTest, FreeingNothingIsFine) {
  PoolPlace place;
  place.pool()->Free(nullptr);
  place.pool()->Free(nullptr, place.device().LegacyStream());
  EXPECT_EQ(place.pool()->stats().frees, 0U);
}

TEST(AllocatorTest, TheOutermostLayerFrees) {
  PoolPlace place;
  auto inner = std::make_shared<CountingAllocator>(place.pool());
  CountingAllocator outer(inner);
  AllocationPtr allocation = outer.Allocate(1000);
  EXPECT_EQ(allocation->owner(), &outer);
  // A free through another layer's function still reaches its own layers.
  inner->Free(std::move(allocation));
  EXPECT_EQ(outer.frees(), 1U);
  EXPECT_EQ(inner->frees(), 1U);
}

TEST(AllocatorTest, ClimbsOnlyWhenMemoryIsExhausted) {
  PoolPlace place;
  FailingAllocator top(place.pool());
  struct Source final : Reclaimer::Source {
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return 0;
    }
    std::size_t Reclaim(Stream, std::size_t) noexcept override {
      ++asked;
      return 1;
    }
    int asked = 0;
  } source;
  const auto registration = Reclaimer::Register(
      place.reclaimer(), Reclaimer::Step::kCallbacks, source);
  Failure failure;
  for (const auto reason :
       {Failure::Reason::kDevice, Failure::Reason::kTooLarge,
        Failure::Reason::kNoGrowth, Failure::Reason::kBadRequest}) {
    top.Fail({1, 1, reason});
    EXPECT_EQ(top.AllocateOrNull(Request{1000}, failure), nullptr);
    EXPECT_EQ(failure.reason, reason);
  }
  EXPECT_EQ(source.asked, 0);
  top.Fail({1, 1, Failure::Reason::kDeviceMemory});
  EXPECT_NE(top.AllocateOrNull(Request{1000}, failure), nullptr);
  EXPECT_EQ(source.asked, 1);
}

TEST(AllocatorTest, WithoutALadderExhaustionIsFinal) {
  PoolPlace place;
  FailingAllocator top(place.system());
  top.Fail({1, 1});
  EXPECT_THROW(top.Allocate(1000), OutOfMemory);
  EXPECT_EQ(top.calls(), 1U);
}

TEST(AllocatorTest, AWrongAlignmentReachesNoLayer) {
  PoolPlace place;
  FailingAllocator top(place.system());
  Failure failure;
  EXPECT_EQ(top.AllocateOrNull(Request{1000, 48}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBadRequest);
  EXPECT_EQ(top.calls(), 0U);
}

}  // namespace
}  // namespace strata
