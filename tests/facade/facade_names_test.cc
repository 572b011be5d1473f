// The names of PaddlePaddle's facade without another test: paddle.md §3.9.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "strata/facade/bindings/paddle/memory.h"
#include "strata/facade/bindings/thrust/thrust_allocator.h"
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
  Build();
  const Allocator& strategy = facade().GetAutoGrowthAllocator(DevicePlace(0));
  EXPECT_STREQ(strategy.name(), "auto_growth");
  const AllocationPtr block = facade().Alloc(DevicePlace(0), 1000);
  EXPECT_EQ(strategy.stats().chunks, 1U);
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
      AllOf(HasSubstr("auto_growth"), HasSubstr("device:0")));
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

class ThrustAllocatorTest : public FacadeFixture {};

TEST_F(ThrustAllocatorTest, KeepsWhatThrustHolds) {
  Build();
  const Stream stream = NewStream();
  ThrustAllocator allocator(facade(), DevicePlace(0), stream);
  char* first = allocator.allocate(1000);
  char* second = allocator.allocate(2000);
  EXPECT_NE(first, second);
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 2U);
  allocator.deallocate(first, 1000);
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 1U);
  allocator.deallocate(second, 2000);
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 0U);
}

// Thrust's buffers deallocate in their destructors.
TEST_F(ThrustAllocatorTest, DeallocateThrowsNothing) {
  Build();
  ThrustAllocator allocator(facade(), DevicePlace(0), device().LegacyStream());
  static_assert(noexcept(allocator.deallocate(nullptr, 0)));
  char* const live = allocator.allocate(1000);
  char* const freed = allocator.allocate(1000);
  allocator.deallocate(freed, 1000);
  testing::internal::CaptureStderr();
  allocator.deallocate(freed, 1000);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("ThrustAllocator: no live allocation starts at 0x"));
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 1U);
  allocator.deallocate(live, 1000);
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 0U);
}

TEST_F(ThrustAllocatorTest, NothingIsNull) {
  Build();
  ThrustAllocator allocator(facade(), DevicePlace(0), device().LegacyStream());
  EXPECT_EQ(allocator.allocate(0), nullptr);
  EXPECT_NO_THROW(allocator.deallocate(nullptr, 0));
  EXPECT_THROW(allocator.allocate(-1), std::invalid_argument);
}

TEST_F(ThrustAllocatorTest, FreesTheRestWhenItGoes) {
  Build();
  {
    ThrustAllocator allocator(facade(), DevicePlace(0),
                              device().LegacyStream());
    allocator.allocate(1000);
  }
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 0U);
}

// The functions on the facade of the process. They run in a separate process,
// because a process has only one such facade.

int failed_checks = 0;
void Check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "not so: " << what << '\n';
  ++failed_checks;
}

void UseEveryFunction() {
  AllocatorFacade& facade = AllocatorFacade::InitInstance(
      Options::Parse("strata_platform=sim,strata_sim_memory=64MiB"));
  Device& device = facade.platform().device(0);
  Stream stream;
  Check(device.StreamCreate(&stream, kStreamNonBlocking) == Status::kSuccess,
        "there is a stream");
  const Place place = DevicePlace(0);

  const auto shared = memory::AllocShared(place, 1000, stream);
  Check(memory::GetStream(shared) == stream, "GetStream is the stream asked");
  Check(memory::InSameStream(shared, stream), "InSameStream");
  Check(!memory::InSameStream(shared, device.LegacyStream()),
        "not InSameStream");
  Check(memory::GetBasePtr(shared) == shared->base(), "GetBasePtr is base");
  Check(memory::RecordStream(shared, device.LegacyStream()), "RecordStream");
  memory::EraseStream(shared, device.LegacyStream());
  Check(memory::Alloc(place, 10, stream)->data() != nullptr, "Alloc");
  Check(memory::Alloc(place, 10)->owner() == &facade.GetAllocator(place),
        "Alloc uses the default stream");
  Check(memory::AllocShared(place, 10)->owner() == &facade.GetAllocator(place),
        "AllocShared uses the default stream");
  // paddle.md §3.2-1: memory of 0 bytes has no effects.
  const auto zero = memory::AllocShared(place, 0, stream);
  Check(zero->data() == nullptr && zero->place() == place, "0 bytes");
  Check(!memory::RecordStream(zero, stream), "0 bytes are not recorded");
  Check(memory::Release(place, stream) == 0, "a live chunk stays");
  Check(memory::Release(place) != 0, "Release gives back idle chunks");
  Check(memory::EmptyCache() == 0, "nothing is left for EmptyCache");
  try {
    memory::Compact(place);
    Check(false, "Compact is refused");
  } catch (const std::logic_error&) {
  }
  try {
    memory::GetStream(nullptr);
    Check(false, "null is refused");
  } catch (const std::invalid_argument&) {
  }
}

TEST(MemoryDeathTest, FunctionsAreThoseOfTheInstance) {
  EXPECT_EXIT(
      {
        UseEveryFunction();
        std::exit(failed_checks);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strata
