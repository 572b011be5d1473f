#include "strata/allocation/decorators/fault_allocator.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// The numbers of the first 200 requests that a plan refuses, from 1.
std::vector<int> Refused(const std::string& plan) {
  PoolPlace place;
  FaultAllocator fault(place.pool(), FaultPlan::Parse(plan));
  std::vector<int> refused;
  for (int i = 1; i <= 200; ++i) {
    Failure failure;
    if (fault.AllocateOrNull(Request{1000}, failure) == nullptr) {
      EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
      EXPECT_STREQ(failure.layer, "fault");
      EXPECT_EQ(failure.requested_bytes, 1000U);
      refused.push_back(i);
    }
  }
  EXPECT_EQ(fault.stats().failures, refused.size());
  EXPECT_EQ(fault.stats().allocations, 200 - refused.size());
  return refused;
}

TEST(FaultAllocatorTest, AnEmptyPlanRefusesNothing) {
  EXPECT_EQ(Refused(""), std::vector<int>());
}

TEST(FaultAllocatorTest, RefusesTheNthRequestOnly) {
  EXPECT_EQ(Refused("nth=3"), std::vector<int>{3});
}

TEST(FaultAllocatorTest, RefusesEverySoManyRequests) {
  EXPECT_EQ(Refused("every=60"), (std::vector<int>{60, 120, 180}));
}

TEST(FaultAllocatorTest, OneRuleIsEnough) {
  EXPECT_EQ(Refused("every=90,nth=7"), (std::vector<int>{7, 90, 180}));
}

TEST(FaultAllocatorTest, SaysWhoseMemoryIsOut) {
  for (const PlaceKind kind : {PlaceKind::kDevice, PlaceKind::kPinned,
                               PlaceKind::kManaged, PlaceKind::kHost}) {
    PoolPlaceOptions options;
    options.kind = kind;
    const PoolPlace place(options);
    FaultAllocator allocator(place.system(), FaultPlan::Parse("nth=1"));
    Failure failure;
    EXPECT_EQ(allocator.TryAllocate(Request{100}, failure), nullptr);
    const bool is_host = kind == PlaceKind::kHost || kind == PlaceKind::kPinned;
    EXPECT_EQ(failure.reason, is_host ? Failure::Reason::kHostMemory
                                      : Failure::Reason::kDeviceMemory);
  }
}

TEST(FaultAllocatorTest, TheSeedDecidesWhichRequestsChanceRefuses) {
  const std::vector<int> refused = Refused("probability=0.25,seed=7");
  EXPECT_GT(refused.size(), 25U);
  EXPECT_LT(refused.size(), 75U);
  EXPECT_EQ(Refused("probability=0.25,seed=7"), refused);
  EXPECT_NE(Refused("probability=0.25,seed=8"), refused);
  EXPECT_EQ(Refused("probability=1").size(), 200U);
}

TEST(FaultPlanTest, NamesThePartThatIsWrong) {
  for (const char* part : {"nth", "nth=", "nth=x", "nth=-1", "every=1.5",
                           "seed=0x1", "often=3", " nth=3"}) {
    try {
      FaultPlan::Parse(std::string("every=2,") + part);
      ADD_FAILURE() << part;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << error.what();
    }
  }
}

TEST(FaultPlanTest, RefusesAPlanThatFailsNothing) {
  for (const char* plan : {"nth=0", "every=0", "probability=0", "seed=5"}) {
    EXPECT_THROW(FaultPlan::Parse(plan), std::invalid_argument) << plan;
  }
  FaultPlan::Parse("nth=0,every=2");
}

TEST(FaultPlanTest, RefusesWhatIsNoProbability) {
  for (const char* value : {"1.01", "-0.1", "nan", "inf", "0.5x"}) {
    EXPECT_THROW(FaultPlan::Parse(std::string("probability=") + value),
                 std::invalid_argument)
        << value;
  }
}

}  // namespace
}  // namespace strata
