#include "strata/bindings/c/plain_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/platform/sim/device/sim_platform.h"

namespace strata {
namespace {

using testing::HasSubstr;

class PlainMemoryTest : public testing::Test {
 protected:
  PlainMemoryTest() {
    PlatformOptions options;
    options.sim_memory_bytes = std::uint64_t{64} << 20;
    options.sim_progress = "lazy";  // work runs when it is waited for
    platform_ = std::make_shared<SimPlatform>(options);
    facade_ = std::make_shared<AllocatorFacade>(Options(), platform_);
    for (Stream* stream : {&own_, &other_}) {
      EXPECT_EQ(device().StreamCreate(stream, kStreamNonBlocking),
                Status::kSuccess);
    }
  }

  SimDevice& device() { return platform_->sim_device(0); }
  // Work that sets is_done_.
  void Work(Stream stream) {
    EXPECT_EQ(device().LaunchHostFunc(
                  stream, [](void* done) { *static_cast<bool*>(done) = true; },
                  &is_done_),
              Status::kSuccess);
  }
  std::uint64_t Live() {
    return facade_->GetStats(DevicePlace(0)).live_allocations();
  }

  bool is_done_ = false;  // outlives the work of the device
  std::shared_ptr<SimPlatform> platform_;
  std::shared_ptr<AllocatorFacade> facade_;
  Stream own_;
  Stream other_;
};

TEST_F(PlainMemoryTest, AStreamReusesItsMemoryAtOnce) {
  PlainMemory memory(facade_, DevicePlace(0));
  void* const block = memory.Allocate(1000, 256, own_.handle);
  const std::uint64_t wraps = device().CallCount(DeviceCall::kWrapStream);
  memory.Free(block, own_.handle);
  EXPECT_EQ(device().CallCount(DeviceCall::kWrapStream), wraps);
  EXPECT_EQ(memory.Allocate(1000, 256, own_.handle), block);
}

TEST_F(PlainMemoryTest, MemoryWaitsForTheStreamThatFreesIt) {
  PlainMemory memory(facade_, DevicePlace(0));
  void* const block = memory.Allocate(1000, 256, own_.handle);
  Work(other_);
  memory.Free(block, other_.handle);
  EXPECT_NE(memory.Allocate(1000, 256, own_.handle), block);
  EXPECT_FALSE(is_done_);  // no call waited
}

TEST_F(PlainMemoryTest, AllocateNowWaitsForTheFormerUse) {
  PlainMemory memory(facade_, DevicePlace(0));
  void* const block = memory.AllocateNow(1000, 512);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 512, 0U);
  Work(device().LegacyStream());
  memory.Free(block, nullptr);
  EXPECT_FALSE(is_done_);
  EXPECT_EQ(memory.AllocateNow(1000, 512), block);
  EXPECT_TRUE(is_done_);
}

// The failed call has no other effect.
TEST_F(PlainMemoryTest, AllocateNowFailsBesideACapture) {
  PlainMemory memory(facade_, DevicePlace(0));
  memory.FreeNow(memory.AllocateNow(1000, 256));
  ASSERT_EQ(device().StreamBeginCapture(own_, CaptureMode::kGlobal),
            Status::kSuccess);
  EXPECT_THROW(memory.AllocateNow(1000, 256), DeviceError);
  EXPECT_EQ(Live(), 0U);
  Graph graph;
  device().StreamEndCapture(own_, &graph);
}

TEST_F(PlainMemoryTest, AStreamThatIsNoneWaitsForTheDevice) {
  PlainMemory memory(facade_, DevicePlace(0));
  void* const block = memory.Allocate(1000, 256, own_.handle);
  Work(own_);
  EXPECT_EQ(device().StreamDestroy(other_), Status::kSuccess);
  testing::internal::CaptureStderr();
  memory.Free(block, other_.handle);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("waiting for the device"));
  EXPECT_TRUE(is_done_);
  EXPECT_EQ(Live(), 0U);
}

TEST_F(PlainMemoryTest, AnUnknownAddressIsLogged) {
  PlainMemory memory(facade_, DevicePlace(0));
  void* const block = memory.AllocateNow(1000, 256);
  memory.FreeNow(block);
  testing::internal::CaptureStderr();
  memory.FreeNow(block);
  memory.Free(block, nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("0x.* is not allocated"));
  memory.FreeNow(nullptr);
  memory.Free(nullptr, nullptr);
}

TEST_F(PlainMemoryTest, TheRestIsFreedAtTheEnd) {
  {
    PlainMemory memory(facade_, DevicePlace(0));
    memory.Allocate(1000, 256, own_.handle);
    EXPECT_EQ(memory.Allocate(0, 256, own_.handle), nullptr);
    EXPECT_EQ(Live(), 1U);
  }
  EXPECT_EQ(Live(), 0U);
}

TEST_F(PlainMemoryTest, OnlyDevicesHaveStreams) {
  EXPECT_THROW(PlainMemory(nullptr, DevicePlace(0)), std::invalid_argument);
  EXPECT_THROW(PlainMemory(facade_, DevicePlace(7)), std::invalid_argument);
  EXPECT_THROW(PlainMemory(facade_, PinnedPlace()), std::invalid_argument);
  EXPECT_NE(PlainMemory(facade_, ManagedPlace(0)).AllocateNow(1, 1), nullptr);
}

}  // namespace
}  // namespace strata
