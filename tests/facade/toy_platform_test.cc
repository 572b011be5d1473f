// A facade on a device that is neither simulated nor CUDA. All layers above
// `platform` need only the required part of Device.

#include "strata/tests/testing/devices/toy_platform.h"

#include <gtest/gtest.h>

#include <cstring>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/device.h"

namespace strata {
namespace {

class ToyPlatformTest : public testing::TestWithParam<const char*> {
 protected:
  ToyPlatformTest() {
    options_.allocator_strategy = GetParam();
    options_.alloc_fill_value = 0x5a;
  }

  Options options_;
  std::shared_ptr<Platform> platform_ = MakeToyPlatform(PlatformOptions());
};

TEST_P(ToyPlatformTest, ServesMemoryThatIsReallyThere) {
  AllocatorFacade facade(options_, platform_);
  const AllocationPtr block = facade.Alloc(DevicePlace(0), 4096);
  const auto* bytes = static_cast<const unsigned char*>(block->data());
  EXPECT_EQ(bytes[0], 0x5a);
  EXPECT_EQ(bytes[4095], 0x5a);
}

TEST_P(ToyPlatformTest, GivesEverythingBack) {
  {
    AllocatorFacade facade(options_, platform_);
    const AllocationPtr first = facade.Alloc(DevicePlace(0), 3 << 20);
    const AllocationPtr second = facade.Alloc(DevicePlace(0), 100);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  platform_->device(0).MemGetInfo(&free_bytes, &total_bytes);
  EXPECT_EQ(free_bytes, total_bytes);
}

TEST_P(ToyPlatformTest, ReportsExhaustionWithTheDevicesNumbers) {
  AllocatorFacade facade(options_, platform_);
  try {
    facade.Alloc(DevicePlace(0), std::size_t{65} << 20);
    FAIL() << "65 MiB of 64 were given";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.failure().device_total_bytes, std::size_t{64} << 20);
  }
}

TEST_P(ToyPlatformTest, HasOnlyThePlacesItsCapsPromise) {
  AllocatorFacade facade(options_, platform_);
  EXPECT_EQ(facade.places(), (std::vector<Place>{HostPlace(), DevicePlace(0)}));
  EXPECT_THROW(facade.Alloc(PinnedPlace(), 1), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ToyPlatformTest,
                         testing::Values("auto_growth", "direct"));

}  // namespace
}  // namespace strata
