// What goes on in other streams, and what the facade does of its own accord,
// while a capture is under way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "strata/facade/capture_guard.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/facade/graph_fixture.h"

namespace strata {
namespace {

PlatformOptions Backed(int devices) {
  PlatformOptions options;
  options.sim_data = "backed";
  options.sim_devices = devices;
  return options;
}

class BesideCaptureTest : public GraphFixture {
 protected:
  explicit BesideCaptureTest(int devices = 1) : GraphFixture(Backed(devices)) {}

  // One that the legacy stream waits for, and that waits for it.
  Stream NewBlockingStream() {
    Stream stream;
    EXPECT_EQ(device().StreamCreate(&stream, kStreamDefault), Status::kSuccess);
    return facade().Wrap(stream.handle, 0);
  }
  std::vector<unsigned char> BytesOf(const Allocation& allocation) {
    std::vector<unsigned char> bytes(allocation.size());
    EXPECT_EQ(
        device().MemcpyAsync(reinterpret_cast<DevicePtr>(bytes.data()),
                             reinterpret_cast<DevicePtr>(allocation.data()),
                             bytes.size(), device().LegacyStream()),
        Status::kSuccess);
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    return bytes;
  }
};

TEST_F(BesideCaptureTest, TheDefaultStreamAllocates) {
  std::vector<std::string> settings = {"alloc_fill_value=90",
                                       "init_allocated_mem"};
  for (const std::string& strategy : StrategyNames()) {
    settings.push_back("allocator_strategy=" + strategy);
  }
  for (const std::string& options : settings) {
    SCOPED_TRACE(options);
    Build(options);
    const Stream stream = NewBlockingStream();
    {
      CaptureGuard guard(facade(), stream);
      Alloc(4096, stream).reset();
      AllocationPtr beside;
      EXPECT_NO_THROW(beside = facade().Alloc(Here(), 4096));
      EXPECT_NO_THROW(Finish(guard));
      beside.reset();
    }
    DropGraphs();
    facade_.reset();
    EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  }
}

// Each call that a driver's pool needs for the default stream fails once.
TEST_F(BesideCaptureTest, ADefaultStreamThatIsRefusedLosesNothing) {
  Build("allocator_strategy=cuda_malloc_async");
  const Stream stream = NewBlockingStream();
  for (const DeviceCall call :
       {DeviceCall::kStreamCreate, DeviceCall::kMallocFromPoolAsync,
        DeviceCall::kStreamSynchronize}) {
    SCOPED_TRACE(DeviceCallName(call));
    CaptureGuard guard(facade(), stream);
    Alloc(4096, stream).reset();
    const std::size_t before = facade().GetStats(Here()).in_use_bytes;
    FaultRule fault;
    fault.call = call;
    fault.nth = 1;
    device().AddFault(fault);
    EXPECT_THROW(facade().Alloc(Here(), 4096), std::exception);
    device().ClearFaults();
    EXPECT_EQ(facade().GetStats(Here()).in_use_bytes, before);
    EXPECT_NO_THROW(facade().Alloc(Here(), 4096));
    EXPECT_NO_THROW(Finish(guard));
  }
  DropGraphs();
  facade_.reset();
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
}

TEST_F(BesideCaptureTest, BlocksAreChecked) {
  Build("strata_guard");
  const Stream stream = NewStream();
  const AllocationPtr block = Alloc(4096, NewStream());
  facade().Wrap(stream.handle, 0);
  CaptureGuard guard(facade(), stream);
  EXPECT_EQ(facade().CheckMemory(Here()).errors, 0U);
  EXPECT_NO_THROW(Finish(guard));
}

// What a graph reads later is not poisoned when its owner frees it.
TEST_F(BesideCaptureTest, WhatAGraphUsesTheGuardLeavesAlone) {
  for (const bool is_freed_inside : {false, true}) {
    Build("strata_guard");
    const Stream owner = NewStream();
    const Stream stream = NewStream();
    AllocationPtr input = Alloc(4096, owner);
    const auto ptr = reinterpret_cast<DevicePtr>(input->data());
    ASSERT_EQ(device().MemsetAsync(ptr, 7, 4096, owner), Status::kSuccess);
    ASSERT_EQ(device().StreamSynchronize(owner), Status::kSuccess);
    const AllocationPtr output = Alloc(4096, stream);
    facade().Wrap(stream.handle, 0);
    CaptureGuard guard(facade(), stream);
    ASSERT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(output->data()),
                                   ptr, 4096, stream),
              Status::kSuccess);
    facade().RecordStream(input, stream);
    if (is_freed_inside) input.reset();
    const GraphExec exec = Finish(guard);
    input.reset();
    Launch(exec, stream);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    EXPECT_THAT(BytesOf(*output), testing::Each(7));
    EXPECT_EQ(facade().CheckMemory(Here()).errors, 0U);
    DropGraphs();
  }
}

class BesideCaptureDevicesTest : public BesideCaptureTest {
 protected:
  BesideCaptureDevicesTest() : BesideCaptureTest(2) {}
};

// Whose first request comes before any of the stream that was announced.
TEST_F(BesideCaptureDevicesTest, AStreamOfAnotherDeviceThatJoinsAllocates) {
  Build();
  const Stream stream = NewStream();
  const Stream other = NewStream(1);
  facade().Wrap(stream.handle, 0);
  facade().Wrap(other.handle, 1);
  Event back;
  ASSERT_EQ(device(1).EventCreate(&back, kEventDisableTiming),
            Status::kSuccess);
  Event forth;
  ASSERT_EQ(device().EventCreate(&forth, kEventDisableTiming),
            Status::kSuccess);
  CaptureGuard guard(facade(), stream);
  ASSERT_EQ(device().EventRecord(forth, stream, 0), Status::kSuccess);
  ASSERT_EQ(device(1).StreamWaitEvent(other, forth, 0), Status::kSuccess);
  AllocationPtr block;
  EXPECT_NO_THROW(block = facade().Alloc(DevicePlace(1), 4096, other));
  block.reset();
  ASSERT_EQ(device(1).EventRecord(back, other, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(stream, back, 0), Status::kSuccess);
  EXPECT_NO_THROW(Finish(guard));
  EXPECT_EQ(device().EventDestroy(forth), Status::kSuccess);
  EXPECT_EQ(device(1).EventDestroy(back), Status::kSuccess);
}

}  // namespace
}  // namespace strata
