// The guard through the facade: all streams of a place, every strategy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = GuardError::Kind;

constexpr const char* kGuarded = "strata_guard,strata_guard_on_error=log,";

std::uintptr_t AddressOf(const AllocationPtr& allocation) {
  return reinterpret_cast<std::uintptr_t>(allocation->data());
}

class FacadeGuardTest : public testing::TestWithParam<std::string> {
 protected:
  FacadeGuardTest() {
    PlatformOptions options;
    options.sim_memory_bytes = Mebibytes(64);
    options.sim_data = "backed";
    options.sim_progress = "lazy";
    platform_ = std::make_shared<SimPlatform>(options);
  }

  SimDevice& device() { return platform_->sim_device(0); }
  AllocatorFacade& Build(const std::string& options = "") {
    facade_ = std::make_unique<AllocatorFacade>(
        Options::Parse(kGuarded + options +
                       ",allocator_strategy=" + GetParam()),
        platform_);
    facade_->AddMemoryErrorCallback(
        [this](const GuardError& error) { errors_.push_back(error); });
    return *facade_;
  }
  Stream NewStream() {
    Stream stream;
    EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
              Status::kSuccess);
    return stream;
  }
  void Write(std::uintptr_t address, Stream stream) {
    EXPECT_EQ(device().MemsetAsync(address, 0x41, 1, stream), Status::kSuccess);
  }

  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  std::vector<GuardError> errors_;
};

INSTANTIATE_TEST_SUITE_P(Strategies, FacadeGuardTest,
                         testing::ValuesIn(StrategyNames()),
                         [](const auto& one) { return one.param; });

TEST_P(FacadeGuardTest, ChecksAllStreamsOfAPlace) {
  AllocatorFacade& facade = Build();
  const Stream stream = NewStream();
  const AllocationPtr one = facade.Alloc(DevicePlace(0), 1000);
  const AllocationPtr other = facade.Alloc(DevicePlace(0), 1000, stream);
  EXPECT_EQ(facade.CheckMemory(DevicePlace(0)).checked, 2U);
  Write(AddressOf(one) + 1000, facade.GetDefaultStream(DevicePlace(0)));
  Write(AddressOf(other) - 1, stream);
  const MemoryCheck check = facade.CheckMemory(DevicePlace(0));
  EXPECT_EQ(check.errors, 2U);
  EXPECT_THAT(errors_, SizeIs(2));
  EXPECT_EQ(facade.CheckMemory(HostPlace()).checked, 0U);
}

TEST_P(FacadeGuardTest, FindsAWriteToFreedMemoryBeforeItIsReused) {
  AllocatorFacade& facade = Build();
  const Stream stream = NewStream();
  AllocationPtr block = facade.Alloc(DevicePlace(0), 1000, stream);
  const std::uintptr_t address = AddressOf(block);
  block.reset();
  Write(address, stream);
  const AllocationPtr next = facade.Alloc(DevicePlace(0), 1000, stream);
  EXPECT_NE(AddressOf(next), address);
  facade.Release(DevicePlace(0));
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].kind, Kind::kUseAfterFree);
}

TEST_P(FacadeGuardTest, ADoubleFreeIsNamedAndHarmsNothing) {
  AllocatorFacade& facade = Build();
  Allocation* freed = facade.Alloc(DevicePlace(0), 1000).release();
  AllocationPtr(freed).reset();
  AllocationPtr(freed).reset();
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].kind, Kind::kDoubleFree);
  const Stats stats = facade.GetStats(DevicePlace(0));
  EXPECT_EQ(stats.allocations, 1U);
  EXPECT_EQ(stats.frees, 1U);
  EXPECT_NE(facade.Alloc(DevicePlace(0), 1000), nullptr);
}

// A free waits for the work of every named stream.
TEST_P(FacadeGuardTest, WorkInNamedStreamsIsDoneFirst) {
  AllocatorFacade& facade = Build();
  const Stream user = NewStream();
  AllocationPtr block = facade.Alloc(DevicePlace(0), 1000);
  Write(AddressOf(block), user);
  Write(AddressOf(block) + 1000, user);
  EXPECT_TRUE(facade.RecordStream(block, user));
  block.reset();
  facade.Release(DevicePlace(0));
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].kind, Kind::kOverrun);
}

TEST_P(FacadeGuardTest, TheQuarantineNeverRunsADeviceOut) {
  AllocatorFacade& facade = Build("strata_guard_quarantine=1GiB");
  const Stream stream = NewStream();
  for (int i = 0; i < 20; ++i) {
    facade.Alloc(DevicePlace(0), Mebibytes(20)).reset();
    facade.Alloc(DevicePlace(0), Mebibytes(30), stream).reset();
  }
  EXPECT_NE(facade.Alloc(DevicePlace(0), Mebibytes(50)), nullptr);
}

TEST_P(FacadeGuardTest, StreamsComeAndGo) {
  AllocatorFacade& facade = Build();
  const Stream stream = NewStream();
  AllocationPtr kept = facade.Alloc(DevicePlace(0), 1000, stream);
  AllocationPtr freed = facade.Alloc(DevicePlace(0), 1000, stream);
  Write(AddressOf(freed) + 1000, stream);
  freed.reset();
  facade.StreamDestroyed(stream);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_THAT(errors_, SizeIs(1));
  Write(AddressOf(kept) + 1000, device().LegacyStream());
  EXPECT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  kept.reset();  // its chain ends with it
  EXPECT_THAT(errors_, SizeIs(2));
}

// The end of a stream does not wait for its work. A later check does.
TEST_P(FacadeGuardTest, WhatOutlivesItsStreamIsCheckedBehindItsWork) {
  AllocatorFacade& facade = Build();
  const Stream stream = NewStream();
  AllocationPtr kept = facade.Alloc(DevicePlace(0), 1000, stream);
  Write(AddressOf(kept) + 1000, stream);
  facade.StreamDestroyed(stream);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  kept.reset();
  EXPECT_THAT(errors_, SizeIs(1));
}

TEST_P(FacadeGuardTest, AllocationsMayOutliveTheFacade) {
  AllocatorFacade& facade = Build();
  AllocationPtr kept = facade.Alloc(DevicePlace(0), 1000);
  Write(AddressOf(kept) + 1000, facade.GetDefaultStream(DevicePlace(0)));
  facade_.reset();
  kept.reset();
  EXPECT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(platform_->LeakReport(), "");
}

TEST_P(FacadeGuardTest, NeverWaitsForTheDevice) {
  AllocatorFacade& facade = Build();
  facade.Alloc(DevicePlace(0), 1000).reset();
  facade.CheckMemory(DevicePlace(0));
  facade.Release(DevicePlace(0));
  EXPECT_EQ(device().CallCount(DeviceCall::kSynchronize), 0U);
}

class FacadeGuardOptionsTest : public FacadeFixture {};

TEST_F(FacadeGuardOptionsTest, WithoutTheGuardThereIsNothingToCheck) {
  AllocatorFacade& facade = Build();
  EXPECT_THAT(
      TextOf<std::logic_error>([&] { facade.CheckMemory(DevicePlace(0)); }),
      HasSubstr("strata_guard"));
  EXPECT_THAT(TextOf<std::logic_error>([&] {
                facade.AddMemoryErrorCallback([](const GuardError& /*e*/) {});
              }),
              HasSubstr("strata_guard"));
}

TEST_F(FacadeGuardOptionsTest, RefusesAnEmptyCallback) {
  Build("strata_guard");
  EXPECT_THROW(facade().AddMemoryErrorCallback(nullptr), std::invalid_argument);
}

TEST_F(FacadeGuardOptionsTest, TheGuardIsBetweenTraceAndStat) {
  AllocatorFacade& facade = Build("strata_guard");
  const std::vector<std::string> layers = facade.Layers(DevicePlace(0));
  EXPECT_EQ(layers[0], "front");
  EXPECT_EQ(layers[1], "guard");
  EXPECT_EQ(layers[2], "stat");
}

// The fill, which all places share, stays within the block.
TEST_F(FacadeGuardOptionsTest, TheDebugFillTouchesNoRedZone) {
  AllocatorFacade& facade = Build(std::string(kGuarded) + "alloc_fill_value=7");
  AllocationPtr block = facade.Alloc(HostPlace(), 1000);
  EXPECT_EQ(static_cast<unsigned char*>(block->data())[999], 7);
  EXPECT_EQ(facade.CheckMemory(HostPlace()).errors, 0U);
}

TEST_F(FacadeGuardOptionsTest, EveryPlaceIsGuarded) {
  AllocatorFacade& facade = Build(kGuarded);
  for (const Place place : {HostPlace(), PinnedPlace(0), ManagedPlace(0)}) {
    const AllocationPtr block = facade.Alloc(place, 1000);
    static_cast<unsigned char*>(block->data())[1000] = 1;
    EXPECT_EQ(facade.CheckMemory(place).errors, 1U) << ToString(place);
  }
  const AllocationPtr block = facade.Alloc(DevicePlace(0), 1000);
  EXPECT_EQ(facade.CheckMemory(DevicePlace(0)).skipped, 1U);  // phantom
}

}  // namespace
}  // namespace strata
