// The names of PaddlePaddle's facade without another test: paddle.md §3.9.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FacadeNamesTest : public FacadeFixture {
 protected:
  FacadeNamesTest() : FacadeFixture(2) {}
};

TEST_F(FacadeNamesTest, GetAutoGrowthAllocatorShowsTheStrategy) {
  for (const char* name : {"auto_growth", "virtual_memory"}) {
    Build(std::string("allocator_strategy=") + name);
    const Allocator& strategy = facade().GetAutoGrowthAllocator(DevicePlace(0));
    EXPECT_STREQ(strategy.name(), name);
    const AllocationPtr block = facade().Alloc(DevicePlace(0), 1000);
    EXPECT_EQ(strategy.stats().chunks, 1U);
  }
}

TEST_F(FacadeNamesTest, GetAutoGrowthAllocatorNamesAnotherStrategy) {
  Build("allocator_strategy=direct");
  EXPECT_THAT(TextOf<std::invalid_argument>(
                  [&] { facade().GetAutoGrowthAllocator(DevicePlace(1)); }),
              AllOf(HasSubstr("device:1"), HasSubstr("direct")));
}

TEST_F(FacadeNamesTest, AnUnknownPlaceIsNamed) {
  Build();
  const auto names_it = [](const std::string& text) {
    return text.find("device:5") != std::string::npos;
  };
  const Place nowhere = DevicePlace(5);
  EXPECT_TRUE(names_it(TextOf<std::invalid_argument>(
      [&] { facade().GetAutoGrowthAllocator(nowhere); })));
  EXPECT_TRUE(names_it(TextOf<std::invalid_argument>(
      [&] { facade().GetZeroAllocator(nowhere); })));
  EXPECT_TRUE(names_it(
      TextOf<std::invalid_argument>([&] { facade().Compact(nowhere); })));
  EXPECT_TRUE(names_it(
      TextOf<std::invalid_argument>([&] { facade().Release(nowhere); })));
}

TEST_F(FacadeNamesTest, CompactSaysThatTheStrategyCannot) {
  Build();
  EXPECT_THAT(
      TextOf<std::logic_error>([&] { facade().Compact(DevicePlace(0)); }),
      AllOf(HasSubstr("virtual_memory"), HasSubstr("device:0")));
}

TEST_F(FacadeNamesTest, EmptyCacheReleasesEveryDevice) {
  Build();
  facade().Alloc(DevicePlace(0), 100).reset();
  facade().Alloc(DevicePlace(1), Mebibytes(5)).reset();
  facade().Alloc(DevicePlace(1), 100, NewStream(1)).reset();
  const std::uint64_t held = facade().GetStats(DevicePlace(0)).reserved_bytes +
                             facade().GetStats(DevicePlace(1)).reserved_bytes;
  EXPECT_GT(held, 0U);
  EXPECT_EQ(facade().EmptyCache(), held);
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).reserved_bytes, 0U);
  EXPECT_EQ(facade().GetStats(DevicePlace(1)).reserved_bytes, 0U);
  EXPECT_EQ(facade().EmptyCache(), 0U);
}

TEST_F(FacadeNamesTest, SaysWhichAllocatorsAreUsed) {
  Build();
  EXPECT_TRUE(facade().IsStreamSafeCUDAAllocatorUsed());
  EXPECT_FALSE(facade().IsCUDAMallocAsyncAllocatorUsed());
  Build("use_stream_safe_cuda_allocator=false");
  EXPECT_FALSE(facade().IsStreamSafeCUDAAllocatorUsed());
  for (const char* chosen : {"allocator_strategy=cuda_malloc_async",
                             "use_cuda_malloc_async_allocator=true"}) {
    EXPECT_TRUE(Build(chosen).IsCUDAMallocAsyncAllocatorUsed()) << chosen;
  }
}

}  // namespace
}  // namespace strata
