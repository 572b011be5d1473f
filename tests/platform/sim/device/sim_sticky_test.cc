// Sticky errors, and faults with other effects than a failed call (D18, D19).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/sim/faults/cost_table.h"
#include "strata/platform/sim/faults/fault_injector.h"
#include "strata/tests/platform/sim/device/sim_calls.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimStickyTest : public SimProgressFixture {
 protected:
  void AddFaults(const std::string& text) {
    for (const FaultRule& rule : ParseFaultRules(text)) {
      device().AddFault(rule);
    }
  }

  // Work that writes to memory that is freed before it runs.
  void LeaveAnError(const Stream& stream) {
    DevicePtr ptr = 0;
    ASSERT_EQ(device().MemAlloc(&ptr, 4096), Status::kSuccess);
    ASSERT_EQ(device().MemsetAsync(ptr, 0, 4096, stream), Status::kSuccess);
    ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  }
};

TEST_F(SimStickyTest, SynchronizeReturnsTheErrorOfTheWorkItWaitsFor) {
  Build("lazy", "nosync");
  const Stream stream = NewStream();
  LeaveAnError(stream);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kIllegalAddress);
  EXPECT_EQ(device().sticky_error(), Status::kIllegalAddress);
}

TEST_F(SimStickyTest, FreeThatWaitsLeavesNoError) {
  Build("lazy", "sync");
  const Stream stream = NewStream();
  LeaveAnError(stream);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

TEST_F(SimStickyTest, FreeThatMeetsTheErrorFreesNothing) {
  Build("lazy", "sync");
  const WorkRange nowhere{kDeviceWindowBegin, 8, true};
  DevicePtr ptr = 0;
  ASSERT_EQ(device(1).MemAlloc(&ptr, 4096), Status::kSuccess);
  ASSERT_EQ(platform_->work(1)->Enqueue(NewStream(kStreamDefault, 1), &nowhere,
                                        1, 1, 0),
            Status::kSuccess);
  EXPECT_EQ(device(1).MemFree(ptr), Status::kIllegalAddress);
  EXPECT_EQ(device(1).Leaks().allocations, 1u);
}

TEST_F(SimStickyTest, EveryLaterCallReturnsIt) {  // H7
  Build("inline");
  SimCallWorld world(&device());
  ASSERT_TRUE(PrepareWorld(&world));
  AddFaults("stream_query:nth=1,sticky=1");
  EXPECT_EQ(device().StreamQuery(world.stream), Status::kIllegalAddress);
  for (const SimCallCase& c : SimCallCases()) {
    SCOPED_TRACE(DeviceCallName(c.call));
    const std::uint64_t count = device().CallCount(c.call);
    EXPECT_EQ(c.run(&world), Status::kIllegalAddress);
    EXPECT_EQ(device().CallCount(c.call), count + 1);
  }
  EXPECT_EQ(platform_->work(0)->Enqueue(world.stream, nullptr, 0, 1, 0),
            Status::kIllegalAddress);
}

TEST_F(SimStickyTest, OtherDevicesGoOn) {
  Build("inline");
  AddFaults("synchronize:sticky=1");
  EXPECT_EQ(device(0).Synchronize(), Status::kIllegalAddress);
  EXPECT_EQ(device(1).Synchronize(), Status::kSuccess);
}

TEST_F(SimStickyTest, NothingRunsAfterIt) {  // S11
  Build("lazy");
  const Stream stream = NewStream();
  Mark(stream, 'a');
  AddFaults("stream_query:nth=1,sticky=1,status=Unknown");
  EXPECT_EQ(device().StreamQuery(stream), Status::kUnknown);
  device().StepAll();
  EXPECT_EQ(device().PendingCount(), 0u);
  EXPECT_EQ(log_, "");
}

TEST_F(SimStickyTest, ErrorOfInlineWorkIsSeenByTheNextCall) {
  Build("inline");
  // Memory of the other device; there is none at this address.
  const WorkRange range{kDeviceWindowBegin, 8, true};
  const Stream stream = NewStream();
  EXPECT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 1, 0),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kIllegalAddress);
}

TEST_F(SimStickyTest, DelayTakesTimeAndTheCallIsMade) {
  Build("inline");
  AddFaults("mem_get_info:nth=2,delay_ns=5000000");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const std::uint64_t cost = CallCostNs(DeviceCall::kMemGetInfo, 0);
  for (const std::uint64_t expected : {cost, cost + 5'000'000, cost}) {
    const std::uint64_t before = device().modelled_ns();
    EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
    EXPECT_EQ(device().modelled_ns() - before, expected);
  }
}

TEST_F(SimStickyTest, DelayWithAStatusFailsToo) {
  Build("inline");
  AddFaults("synchronize:nth=1,delay_ns=700,status=NotReady");
  EXPECT_EQ(device().Synchronize(), Status::kNotReady);
  EXPECT_EQ(device().modelled_ns(), 700u);
}

TEST_F(SimStickyTest, DelayLetsTimedWorkEnd) {
  Build("timed");
  const Stream stream = NewStream();
  Busy(stream, 1'000'000);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  AddFaults("stream_query:nth=1,delay_ns=2000000");
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_F(SimStickyTest, NotReadyCanBeInjectedSoManyTimes) {  // T86
  Build("inline");
  AddFaults("event_query:count=3,status=NotReady");
  const Event event = NewEvent();
  int polls = 1;
  while (device().EventQuery(event) == Status::kNotReady) ++polls;
  EXPECT_EQ(polls, 4);
}

}  // namespace
}  // namespace strata::sim
