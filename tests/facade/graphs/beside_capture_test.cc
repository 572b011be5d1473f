// During a capture: the work of other streams, and the calls that the facade
// makes itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/facade/graphs/graph_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

PlatformOptions Backed(int devices, const std::string& progress = "inline") {
  PlatformOptions options;
  options.sim_data = "backed";
  options.sim_devices = devices;
  options.sim_progress = progress;
  return options;
}

class BesideCaptureTest : public GraphFixture {
 protected:
  explicit BesideCaptureTest(int devices = 1,
                             const std::string& progress = "inline")
      : GraphFixture(Backed(devices, progress)) {}

  // A stream that synchronizes with the legacy stream.
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

// Each call that a driver pool needs for the default stream fails once.
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

// Memory that a graph reads later must not be poisoned when its owner frees it.
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

// An earlier fault: the guard waited for the stream in a thread that was not in
// relaxed mode.
TEST_F(BesideCaptureTest, MarkedHostMemoryUnderTheGuardIsFreed) {
  Build("strata_guard");
  const Stream stream = NewStream();
  const Stream other = NewStream();
  facade().Wrap(stream.handle, 0);
  AllocationPtr host = facade().Alloc(HostPlace(), 4096);
  EXPECT_TRUE(facade().RecordStream(host, other));
  CaptureGuard guard(facade(), stream, 0, CaptureMode::kGlobal);
  host.reset();
  EXPECT_NO_THROW(Finish(guard));
  DropGraphs();
}

// An earlier fault: the calls were made anyway, and ended the capture.
TEST_F(BesideCaptureTest, WhoCannotBeRelaxedMakesNoForbiddenCall) {
  std::vector<std::string> settings = {"strata_guard", "alloc_fill_value=90"};
  for (const std::string& strategy : StrategyNames()) {
    settings.push_back("allocator_strategy=" + strategy);
  }
  for (const std::string& options : settings) {
    SCOPED_TRACE(options);
    Build(options);
    const Stream stream = NewStream();
    const Stream other = NewStream();
    facade().Wrap(stream.handle, 0);
    AllocationPtr plain = Alloc(4096, other);
    AllocationPtr marked = Alloc(4096, other);
    AllocationPtr pinned = facade().Alloc(PinnedPlace(0), 4096);
    AllocationPtr marked_pinned = facade().Alloc(PinnedPlace(0), 4096);
    AllocationPtr marked_host = facade().Alloc(HostPlace(), 4096);
    facade().RecordStream(marked, NewStream());
    facade().RecordStream(marked_pinned, other);
    facade().RecordStream(marked_host, other);
    CaptureGuard guard(facade(), stream, 0, CaptureMode::kGlobal);
    device().AddFault(FailAll(DeviceCall::kThreadExchangeCaptureMode));
    for (const Place place : {Here(), PinnedPlace(0), ManagedPlace(0)}) {
      EXPECT_THROW(facade().Alloc(place, Mebibytes(4)), DeviceError);
    }
    EXPECT_THROW(Alloc(Mebibytes(4), other), DeviceError);
    EXPECT_THROW(facade().Wrap(other.handle, 0), DeviceError);
    plain.reset();
    marked.reset();
    pinned.reset();
    marked_pinned.reset();
    marked_host.reset();
    facade().GetStats(Here());
    facade().ResetPeak(Here());
    Release();
    facade().EmptyCache();
    device().ClearFaults();
    EXPECT_NO_THROW(Finish(guard));
    DropGraphs();
    Release();
    EXPECT_EQ(facade().GetStats(Here()).in_use_bytes, 0U);
  }
}

// An earlier fault: the objects made for the graph were released, which ended
// the other capture.
TEST_F(BesideCaptureTest, AGraphThatCannotKeepItsPoolEndsNoOtherCapture) {
  Build();
  const Stream stream = NewStream();
  const Stream other = NewStream();
  CaptureGuard fails(facade(), stream, 0, CaptureMode::kGlobal);
  Alloc(4096, stream).reset();
  CaptureGuard guard(facade(), other, 0, CaptureMode::kGlobal);
  device().AddFault(FailAll(DeviceCall::kThreadExchangeCaptureMode));
  device().AddFault(FailAll(DeviceCall::kGraphRetainUserObject));
  EXPECT_THROW(fails.End(), DeviceError);
  device().ClearFaults();
  EXPECT_NO_THROW(Finish(guard));
  DropGraphs();
  EXPECT_EQ(device().Leaks().user_objects, 0U);
}

class BesideCaptureDevicesTest : public BesideCaptureTest {
 protected:
  BesideCaptureDevicesTest() : BesideCaptureTest(2) {}
};

// Its first request comes before any request of the announced stream.
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

// Work completes when the host waits for it.
class BesideCaptureLazyTest : public BesideCaptureTest {
 protected:
  BesideCaptureLazyTest() : BesideCaptureTest(1, "lazy") {}

  // Submits work to `stream`. Sets `is_done` when it is complete.
  void Submit(const Stream& stream, bool& is_done) {
    is_done = false;
    const auto finish = [](void* flag) { *static_cast<bool*>(flag) = true; };
    ASSERT_EQ(device().LaunchHostFunc(stream, finish, &is_done),
              Status::kSuccess);
  }
};

// An earlier fault: memory that only one stream had used before the
// announcement was refused to the default stream, because a capture forbids the
// default stream to wait.
TEST_F(BesideCaptureLazyTest, TheDefaultStreamGetsWhatAnotherHadBefore) {
  for (const std::string strategy :
       {"bfc", "naive_best_fit", "thread_local", "pool"}) {
    SCOPED_TRACE(strategy);
    Build("allocator_strategy=" + strategy);
    const Stream stream = NewBlockingStream();
    const Stream other = NewBlockingStream();
    bool is_done = false;
    AllocationPtr block = Alloc(Mebibytes(1), other);
    const void* const data = block->data();
    Submit(other, is_done);
    block.reset();
    {
      CaptureGuard guard(facade(), stream);
      ASSERT_NO_THROW(block = facade().Alloc(Here(), Mebibytes(1)));
      EXPECT_EQ(block->data(), data);
      EXPECT_TRUE(is_done);
      block.reset();
      EXPECT_NO_THROW(facade().Alloc(Here(), Mebibytes(1)));
      EXPECT_NO_THROW(Finish(guard));
    }
    DropGraphs();
    facade_.reset();
    EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
    EXPECT_EQ(device().StreamDestroy(other), Status::kSuccess);
  }
}

// No event was recorded before the capture of the stream, and none can be
// recorded now.
TEST_F(BesideCaptureLazyTest, WhatNothingCanBeWaitedForIsRefused) {
  Build("allocator_strategy=bfc");
  const Stream stream = NewBlockingStream();
  bool is_done = false;
  AllocationPtr block = Alloc(Mebibytes(1), stream);
  Submit(stream, is_done);
  block.reset();
  device().AddFault(FailAll(DeviceCall::kEventRecord));
  CaptureGuard guard(facade(), stream);
  device().ClearFaults();
  try {
    block = facade().Alloc(Here(), Mebibytes(1));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.status(), Status::kNotReady);
  }
  EXPECT_FALSE(is_done);
  EXPECT_NO_THROW(Finish(guard));
  EXPECT_NO_THROW(block = facade().Alloc(Here(), Mebibytes(1)));
  block.reset();
  DropGraphs();
  facade_.reset();
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata
