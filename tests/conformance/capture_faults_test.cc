// Captures with failing calls: T88 of cuda_semantics.md, C22 and C33. Only on
// the simulated device, because a GPU cannot be made to fail.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "strata/tests/testing/devices/graph_memory_fixture.h"

namespace strata {
namespace {

struct Step {
  DeviceCall call;
  std::function<Status()> make;
};

class CaptureFaultsConformanceTest : public GraphMemoryFixture {
 protected:
  void SetUp() override {
    GraphMemoryFixture::SetUp();
    if (IsSkipped()) return;
    fork_ = NewStream();
    event_ = NewEvent();
    result_ = NewMemory(kBlockBytes);
    runs_ = NewCounter();
    Write(result_, kBlockBytes, kSecond, stream_);
    EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  }

  // The captured program: a sample of all operations, on two streams. Writes
  // kFirst to `result` and counts one run.
  std::vector<Step> Program() {
    const HostFunction add = [](void* argument) {
      ++*static_cast<std::atomic<int>*>(argument);
    };
    return {
        {DeviceCall::kMallocFromPoolAsync,
         [this] {
           return device().MallocFromPoolAsync(&block_, kBlockBytes, pool_,
                                               stream_);
         }},
        {DeviceCall::kMemsetAsync,
         [this] {
           return device().MemsetAsync(block_, 0x11, kBlockBytes, stream_);
         }},
        {DeviceCall::kEventRecord,
         [this] { return device().EventRecord(event_, stream_, 0); }},
        {DeviceCall::kStreamWaitEvent,
         [this] { return device().StreamWaitEvent(fork_, event_, 0); }},
        {DeviceCall::kMemcpyAsync,
         [this] {
           return device().MemcpyAsync(result_, block_, kBlockBytes, fork_);
         }},
        {DeviceCall::kLaunchHostFunc,
         [this, add] { return device().LaunchHostFunc(stream_, add, runs_); }},
        {DeviceCall::kFreeAsync,
         [this] { return device().FreeAsync(block_, fork_); }},
        {DeviceCall::kEventRecord,
         [this] { return device().EventRecord(event_, fork_, 0); }},
        {DeviceCall::kStreamWaitEvent,
         [this] { return device().StreamWaitEvent(stream_, event_, 0); }},
    };
  }

  // `rule` applies to the call of step `index`.
  void FailStep(const std::vector<Step>& program, std::size_t index,
                FaultRule rule) {
    rule.call = program[index].call;
    rule.nth =
        1 + static_cast<std::uint64_t>(std::count_if(
                program.begin(),
                program.begin() + static_cast<std::ptrdiff_t>(index),
                [&](const Step& step) { return step.call == rule.call; }));
    sim()->sim_device(0).AddFault(rule);
  }

  void ExpectReplay(Graph graph) {
    const int before = *runs_;
    GraphExec exec;
    ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
    Write(result_, kBlockBytes, kSecond, stream_);
    Launch(exec, stream_);
    ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
    ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
    EXPECT_EQ(*runs_, before + 1);
    ExpectWords(result_, kBlockBytes, kFirst);
  }

  Stream fork_;
  Event event_;
  DevicePtr result_ = 0;
  DevicePtr block_ = 0;
  std::atomic<int>* runs_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureFaultsConformanceTest,
                         ::testing::ValuesIn(SimulatedDevices()), NameOfDevice);

TEST_P(CaptureFaultsConformanceTest, T88InvalidatedAtAnyCallItComesToAnEnd) {
  const std::vector<Step> program = Program();
  for (std::size_t i = 0; i < program.size(); ++i) {
    SCOPED_TRACE(i);
    const std::size_t before = FreeBytes();
    FaultRule rule;
    rule.invalidate = true;
    FailStep(program, i, rule);
    Begin(stream_);
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_EQ(program[j].make(), Status::kSuccess) << "step " << j;
    }
    EXPECT_NE(program[i].make(), Status::kSuccess);
    EXPECT_EQ(StatusOf(stream_), CaptureStatus::kInvalidated);
    sim()->sim_device(0).ClearFaults();
    ExpectEnd(stream_, Status::kStreamCaptureInvalidated);
    EXPECT_EQ(StatusOf(fork_), CaptureStatus::kNone);
    EXPECT_EQ(Get(GraphMemAttributeKind::kUsedCurrent), 0u);
    EXPECT_EQ(FreeBytes(), before);

    Begin(stream_);
    for (const Step& step : program) EXPECT_EQ(step.make(), Status::kSuccess);
    ExpectReplay(End(stream_));
    EXPECT_EQ(device().GraphMemTrim(), Status::kSuccess);
  }
}

// A failed call captures nothing: after a repeated call, the graph is complete.
TEST_P(CaptureFaultsConformanceTest, T88CallsThatFailCaptureNothing) {
  const std::vector<Step> program = Program();
  for (std::size_t i = 0; i < program.size(); ++i) {
    SCOPED_TRACE(i);
    FaultRule rule;
    rule.status = Status::kUnknown;
    FailStep(program, i, rule);
    Begin(stream_);
    for (std::size_t j = 0; j < program.size(); ++j) {
      if (j == i) {
        const auto nodes = InfoOf(stream_).dependencies;
        EXPECT_EQ(program[j].make(), Status::kUnknown);
        EXPECT_EQ(InfoOf(stream_).dependencies == nodes, true);
        EXPECT_EQ(StatusOf(stream_), CaptureStatus::kActive);
      }
      EXPECT_EQ(program[j].make(), Status::kSuccess) << "step " << j;
    }
    sim()->sim_device(0).ClearFaults();
    ExpectReplay(End(stream_));
  }
}

// A failed begin or end has no effect.
TEST_P(CaptureFaultsConformanceTest, T88BeginAndEndCanFail) {
  SimDevice& device0 = sim()->sim_device(0);
  FaultRule rule;
  rule.status = Status::kUnknown;
  rule.nth = 1;
  rule.call = DeviceCall::kStreamBeginCapture;
  device0.AddFault(rule);
  EXPECT_EQ(device().StreamBeginCapture(stream_, CaptureMode::kGlobal),
            Status::kUnknown);
  EXPECT_EQ(StatusOf(stream_), CaptureStatus::kNone);
  Begin(stream_);
  rule.call = DeviceCall::kStreamEndCapture;
  device0.AddFault(rule);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(stream_, &graph), Status::kUnknown);
  EXPECT_FALSE(graph);
  EXPECT_EQ(StatusOf(stream_), CaptureStatus::kActive);
  device0.ClearFaults();
  End(stream_);
}

}  // namespace
}  // namespace strata
