// The memory of a graph pool that ends. Every later user of it must be ordered
// behind the last launch, as seen by the checker of the simulated device.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "strata/platform/check/hazard_monitor.h"
#include "strata/tests/facade/graphs/graph_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 10;

// Work runs on request of the test, silently.
class GraphPoolEndTest : public GraphFixture {
 protected:
  GraphPoolEndTest() : GraphFixture(Checked()) {
    platform_->hazard_monitor()->SetHandler(
        [this](const check::HazardReport& report) {
          found_ += ToString(report);
        });
    Build();
  }

  ~GraphPoolEndTest() override {
    facade_.reset();
    EXPECT_EQ(found_, "");
  }

  static PlatformOptions Checked() {
    PlatformOptions options;
    options.sim_progress = "manual";
    options.sim_check_hazards = "report";
    return options;
  }
  // Uses memory from outside, which its pool keeps, and memory of its own.
  GraphExec CaptureBoth(AllocationPtr input) {
    CaptureGuard guard(facade(), stream_);
    Use(input, stream_);
    input.reset();
    Use(Alloc(kBytes, stream_), stream_);
    return Finish(guard);
  }
  // Completes the last launch of the graph, and ends its pool.
  void LaunchAndDrop(GraphExec exec) {
    Launch(exec, other_);
    device().StepAll();
    DropGraphs();
    Sweep();
  }

  const Stream stream_ = NewStream();
  const Stream other_ = NewStream();
  std::string found_;
};

TEST_F(GraphPoolEndTest, WhatItKeptComesBehindTheLastLaunch) {
  AllocationPtr input = Alloc(kBytes, stream_);
  const void* const data = input->data();
  LaunchAndDrop(CaptureBoth(std::move(input)));
  const AllocationPtr again = Alloc(kBytes, stream_);
  EXPECT_EQ(again->data(), data);
  Use(again, stream_);
}

// Nothing was allocated inside, so the pool has memory of no place.
TEST_F(GraphPoolEndTest, APoolThatOnlyKeptWaitsToo) {
  AllocationPtr input = Alloc(kBytes, stream_);
  const void* const data = input->data();
  CaptureGuard guard(facade(), stream_);
  Use(input, stream_);
  input.reset();
  LaunchAndDrop(Finish(guard));
  const AllocationPtr again = Alloc(kBytes, stream_);
  EXPECT_EQ(again->data(), data);
  Use(again, stream_);
}

TEST_F(GraphPoolEndTest, ItsOwnMemoryComesBehindAllThatUsedIt) {
  AllocationPtr output;
  {
    CaptureGuard guard(facade(), stream_);
    output = Alloc(kBytes, stream_);
    Use(output, stream_);
    const GraphExec exec = Finish(guard);
    Launch(exec, other_);
  }
  Use(output, other_);
  EXPECT_TRUE(facade().RecordStream(output, other_));
  device().StepAll();
  output.reset();
  DropGraphs();
  Sweep();
  const AllocationPtr again = Alloc(Mebibytes(60), stream_);
  Use(again, stream_);
}

// An earlier fault: the memory was still released to the driver, and to other
// streams.
TEST_F(GraphPoolEndTest, WhatCannotBeWaitedForIsKept) {
  AllocationPtr input = Alloc(kBytes, stream_);
  const void* const data = input->data();
  const GraphExec exec = CaptureBoth(std::move(input));
  const std::size_t before = Reserved();
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  LaunchAndDrop(exec);
  EXPECT_EQ(Reserved(), before);
  EXPECT_EQ(Count(DeviceCall::kReleaseMemory), 0U);
  AllocationPtr again = Alloc(kBytes, stream_);
  EXPECT_NE(again->data(), data);
  again.reset();
  device().ClearFaults();
  Sweep();
  EXPECT_LT(Reserved(), before);
  again = Alloc(kBytes, stream_);
  EXPECT_EQ(again->data(), data);
  again.reset();
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

// Then only the end of the facade remains to wait for.
TEST_F(GraphPoolEndTest, WhatCanNeverBeWaitedForGoesWithTheFacade) {
  AllocationPtr input = Alloc(kBytes, stream_);
  CaptureGuard guard(facade(), stream_);
  input.reset();
  Alloc(kBytes, stream_).reset();
  const GraphExec exec = Finish(guard);
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  LaunchAndDrop(exec);
  EXPECT_GE(Reserved(), 2 * kBytes);
  facade_.reset();
  EXPECT_EQ(device().Leaks().memory_blocks, 0U);
  device().ClearFaults();
}

// A block that outlives its pool keeps its chunk.
TEST_F(GraphPoolEndTest, WhatIsFreedAfterItsPoolIsKeptToo) {
  AllocationPtr output;
  {
    CaptureGuard guard(facade(), stream_);
    output = Alloc(kBytes, stream_);
    Launch(Finish(guard), other_);
  }
  device().StepAll();
  DropGraphs();
  Sweep();
  Use(output, stream_);
  const void* const data = output->data();
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  output.reset();
  EXPECT_GE(Reserved(), kBytes);
  EXPECT_EQ(Count(DeviceCall::kReleaseMemory), 0U);
  const AllocationPtr again = Alloc(kBytes, other_);
  EXPECT_NE(again->data(), data);
  device().ClearFaults();
  Release();
  EXPECT_EQ(Count(DeviceCall::kReleaseMemory), 1U);
}

class GraphPoolsOfDevicesTest : public GraphFixture {
 protected:
  GraphPoolsOfDevicesTest() : GraphFixture(2) {}
};

// A query of any place removes ended pools.
TEST_F(GraphPoolsOfDevicesTest, EmptyCacheSaysWhatThoseOfAllDevicesGave) {
  Build();
  for (int i = 0; i < 2; ++i) {
    const Stream stream = NewStream(i);
    CaptureGuard guard(facade(), stream);
    facade().Alloc(DevicePlace(i), kBytes, stream).reset();
    EXPECT_EQ(device(i).GraphDestroy(guard.End()), Status::kSuccess);
    EXPECT_EQ(device(i).Synchronize(), Status::kSuccess);
  }
  const auto reserved = [&] {
    return facade().GetStats(DevicePlace(0)).reserved_bytes +
           facade().GetStats(DevicePlace(1)).reserved_bytes;
  };
  const std::size_t before = reserved();
  EXPECT_GE(before, 2 * kBytes);
  EXPECT_EQ(facade().EmptyCache(), before);
  EXPECT_EQ(reserved(), 0U);
}

}  // namespace
}  // namespace strata
