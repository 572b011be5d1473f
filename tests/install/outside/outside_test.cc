// A strategy and a decorator from outside the tree, in a facade.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"

namespace strata {
namespace {

Options With(const char* decorators, const std::string& more = "") {
  Options options = Options::Parse(
      "strata_platform=sim,allocator_strategy=same_size,"
      "gpu_allocator_retry_time=0," +
      more);
  options.decorators.registered = decorators;
  return options;
}

TEST(OutsideTest, TheDecoratorStandsAtItsPosition) {
  AllocatorFacade facade(With("quota"));
  EXPECT_THAT(facade.Layers(DevicePlace(0)),
              ::testing::ElementsAre("front", "stat", "quota", "cuda_graph",
                                     "stream_safe", "aligned", "same_size",
                                     "chunk_pool", "device"));
}

TEST(OutsideTest, TheStreamsOfAPlaceShareTheQuota) {
  AllocatorFacade facade(With("quota:most_live=2"));
  const Place gpu = DevicePlace(0);
  Stream other;
  ASSERT_EQ(facade.platform().device(0).StreamCreate(&other, 0),
            Status::kSuccess);
  AllocationPtr one = facade.Alloc(gpu, 1000);
  const AllocationPtr two = facade.Alloc(gpu, 1000, other);
  EXPECT_THROW(facade.Alloc(gpu, 1000, other), BadAlloc);
  EXPECT_NE(facade.Alloc(PinnedPlace(0), 1000), nullptr);
  one.reset();
  EXPECT_NE(facade.Alloc(gpu, 1000, other), nullptr);
}

TEST(OutsideTest, TheFlagsSetTheOptions) {
  AllocatorFacade facade(
      With("quota", "same_size_unit=64KiB,quota_most_live=1"));
  const AllocationPtr one = facade.Alloc(DevicePlace(0), 1000);
  EXPECT_EQ(one->size(), 65536U);
  EXPECT_THROW(facade.Alloc(DevicePlace(0), 1000), BadAlloc);
}

TEST(OutsideTest, TheFlagsAreInTheTable) {
  std::string flags;
  for (const OptionInfo& option : OptionTable()) {
    flags += std::string(option.name) + "=" + option.default_value + " ";
  }
  EXPECT_THAT(flags, ::testing::HasSubstr(
                         " same_size_unit=256 quota_most_live=1000000 "));
}

TEST(OutsideTest, AWrongOptionIsRefused) {
  EXPECT_THROW(With("", "same_size_unit=some"), std::invalid_argument);
  EXPECT_THROW(AllocatorFacade(With("", "same_size_unit=257")),
               std::invalid_argument);
  EXPECT_THROW(AllocatorFacade(With("quota:most=2")), std::invalid_argument);
  EXPECT_THROW(AllocatorFacade(With("quotas")), std::invalid_argument);
}

}  // namespace
}  // namespace strata
