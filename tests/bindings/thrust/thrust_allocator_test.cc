#include "strata/bindings/thrust/thrust_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace strata
