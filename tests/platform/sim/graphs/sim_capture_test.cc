// Captures on the simulated device: its own choices, and the view of observers
// and faults. The conformance suite covers the requirements for all devices.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "strata/platform/sim/graphs/capture_set.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimCaptureTest : public SimProgressFixture {
 protected:
  void SetUp() override { Build("lazy"); }

  void Begin(const Stream& stream, CaptureMode mode = CaptureMode::kGlobal) {
    ASSERT_EQ(device(stream.device).StreamBeginCapture(stream, mode),
              Status::kSuccess);
  }
  Graph End(const Stream& stream, Status expected = Status::kSuccess) {
    Graph graph;
    EXPECT_EQ(device(stream.device).StreamEndCapture(stream, &graph), expected);
    return graph;
  }
  CaptureInfo InfoOf(const Stream& stream) {
    CaptureInfo info;
    EXPECT_EQ(device(stream.device).StreamCaptureInfo(stream, &info),
              Status::kSuccess);
    return info;
  }
  GraphExec Instantiate(Graph graph) {
    GraphExec exec;
    EXPECT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
    return exec;
  }
  void Replay(GraphExec exec) {
    const Stream stream = NewStream();
    EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }
};

TEST_F(SimCaptureTest, TableNamesTheSourceOfEveryRow) {
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    const CaptureRule& rule = CaptureRuleOf(call);
    EXPECT_EQ(rule.call, call);
    EXPECT_GT(std::strlen(rule.source), 2u) << DeviceCallName(call);
    const bool names_status = rule.conflict == CaptureConflict::kDevice ||
                              rule.conflict == CaptureConflict::kStream ||
                              rule.conflict == CaptureConflict::kEvent;
    EXPECT_EQ(rule.status != Status::kSuccess, names_status)
        << DeviceCallName(call);
  }
}

// cuda_semantics C14, C17.
TEST_F(SimCaptureTest, InvalidatedCapturesRefuseOnUntilTheirEnd) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  Begin(stream);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(device().MemAlloc(&ptr, 64), Status::kStreamCaptureUnsupported);
  }
  End(stream, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(device().MemAlloc(&ptr, 64), Status::kSuccess);
}

// A real driver would crash.
TEST_F(SimCaptureTest, DestroyingTheStreamThatACaptureBeganInIsRefused) {
  const Stream stream = NewStream();
  Begin(stream, CaptureMode::kRelaxed);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kStreamCaptureUnsupported);
  End(stream, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
}

// Until it is recorded again, an event of an ended capture counts as
// unrecorded.
TEST_F(SimCaptureTest, EventsOfFinishedCapturesAreRecordedAgain) {
  const Stream stream = NewStream();
  const Stream other = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  End(stream);
  EXPECT_EQ(device().EventQuery(event), Status::kInvalidValue);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  EXPECT_EQ(device().StreamWaitEvent(other, event, 0), Status::kSuccess);
}

TEST_F(SimCaptureTest, LegacyStreamCannotJoin) {
  const Stream stream = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamWaitEvent(device().LegacyStream(), event, 0),
            Status::kStreamCaptureUnsupported);
  End(stream, Status::kStreamCaptureInvalidated);
}

// cuda_semantics C16, C23: only for blocking streams of one device.
TEST_F(SimCaptureTest, LegacyStreamOfAnotherDeviceIsNotTouched) {
  const Stream stream = NewStream(kStreamDefault);
  const DevicePtr word = At(NewWord());
  Begin(stream, CaptureMode::kRelaxed);
  EXPECT_EQ(device(1).MemsetAsync(word, 0, 8, device(1).LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(device(1).Synchronize(), Status::kSuccess);
  EXPECT_EQ(InfoOf(stream).status, CaptureStatus::kActive);
  EXPECT_EQ(device().MemsetAsync(word, 0, 8, device().LegacyStream()),
            Status::kStreamCaptureImplicit);
  End(stream, Status::kStreamCaptureInvalidated);
}

// Calls of a pool accept streams of any device.
TEST_F(SimCaptureTest, LegacyStreamOfTheCaptureIsSeenFromOtherDevices) {
  const Stream stream = NewStream(kStreamDefault);
  MemPool pool;
  ASSERT_EQ(device(1).DefaultMemPool(&pool), Status::kSuccess);
  Begin(stream, CaptureMode::kRelaxed);
  DevicePtr ptr = 0;
  EXPECT_EQ(
      device(1).MallocFromPoolAsync(&ptr, 64, pool, device().LegacyStream()),
      Status::kStreamCaptureImplicit);
  End(stream, Status::kStreamCaptureInvalidated);
}

TEST_F(SimCaptureTest, StreamsOfOtherDevicesJoin) {
  const Stream stream = NewStream();
  const Stream far = NewStream(kStreamNonBlocking, 1);
  const Event forked = NewEvent();
  const Event joined = NewEvent(1);
  Begin(stream);
  Mark(stream, 'a');
  ASSERT_EQ(device().EventRecord(forked, stream, 0), Status::kSuccess);
  WaitFor(far, forked);
  Mark(far, 'b');
  ASSERT_EQ(device(1).EventRecord(joined, far, 0), Status::kSuccess);
  WaitFor(stream, joined);
  Mark(stream, 'c');
  EXPECT_EQ(InfoOf(far).id, InfoOf(stream).id);
  Replay(Instantiate(End(stream)));
  EXPECT_EQ(log_, "abc");
}

// cuda_semantics C4: a removed dependency need not be joined.
TEST_F(SimCaptureTest, ReplacedDependenciesAreForgiven) {
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const Event forked = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(forked, stream, 0), Status::kSuccess);
  WaitFor(fork, forked);
  Mark(fork, 'f');
  EXPECT_EQ(device().StreamUpdateCaptureDependencies(fork, nullptr, 0, true),
            Status::kSuccess);
  End(stream);
}

// cuda_semantics C4, T41: a fork that joined stays joined.
TEST_F(SimCaptureTest, ReplacingTheOriginsDependenciesKeepsJoinedForks) {
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  WaitFor(fork, event);
  Mark(fork, 'e');
  Mark(fork, 'f');
  ASSERT_EQ(device().EventRecord(event, fork, 0), Status::kSuccess);
  WaitFor(stream, event);
  EXPECT_EQ(device().StreamUpdateCaptureDependencies(stream, nullptr, 0, true),
            Status::kSuccess);
  End(stream);
}

TEST_F(SimCaptureTest, ReplacingTheOriginsDependenciesForgivesNoFork) {
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const Event forked = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(forked, stream, 0), Status::kSuccess);
  WaitFor(fork, forked);
  Mark(fork, 'f');
  EXPECT_EQ(device().StreamUpdateCaptureDependencies(stream, nullptr, 0, true),
            Status::kSuccess);
  End(stream, Status::kStreamCaptureUnjoined);
}

// A failed capture leaves the caller's graph unchanged.
TEST_F(SimCaptureTest, FailedCaptureToGraphAddsNothing) {
  const Stream stream = NewStream();
  Begin(stream);
  Mark(stream, 'a');
  const GraphNode node = InfoOf(stream).dependencies.at(0);
  const Graph graph = End(stream);
  ASSERT_EQ(device().StreamBeginCaptureToGraph(stream, graph, &node, 1,
                                               CaptureMode::kGlobal),
            Status::kSuccess);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kInvalidValue);
  Mark(stream, 'b');
  const GraphNode gone = InfoOf(stream).dependencies.at(0);
  EXPECT_EQ(device().StreamQuery(stream), Status::kStreamCaptureUnsupported);
  End(stream, Status::kStreamCaptureInvalidated);
  std::vector<GraphNode> nodes;
  EXPECT_EQ(device().GraphNodePredecessors(gone, &nodes),
            Status::kInvalidValue);
  Replay(Instantiate(graph));
  EXPECT_EQ(log_, "a");
}

// cuda_semantics D18: the call continues, and finds an invalidated capture.
TEST_F(SimCaptureTest, FaultInvalidatesTheCapturesOfItsDevice) {
  const Stream stream = NewStream();
  const Stream elsewhere = NewStream(kStreamNonBlocking, 1);
  FaultRule rule;
  rule.call = DeviceCall::kLaunchHostFunc;
  rule.nth = 2;
  rule.invalidate = true;
  device().AddFault(rule);
  Begin(stream, CaptureMode::kRelaxed);
  Begin(elsewhere, CaptureMode::kRelaxed);
  Mark(stream, 'a');
  EXPECT_EQ(device().LaunchHostFunc(
                stream, [](void*) {}, nullptr),
            Status::kStreamCaptureInvalidated);
  EXPECT_EQ(InfoOf(elsewhere).status, CaptureStatus::kActive);
  End(stream, Status::kStreamCaptureInvalidated);
  End(elsewhere);
}

TEST_F(SimCaptureTest, FaultCanBothInvalidateAndFail) {
  PlatformOptions options = SimOptions(1, kFrames);
  options.sim_faults = "stream_is_capturing:invalidate=1,status=999";
  Build(options);
  const Stream captured = NewStream();
  Begin(captured);
  CaptureStatus status = CaptureStatus::kNone;
  EXPECT_EQ(device().StreamIsCapturing(captured, &status), Status::kUnknown);
  EXPECT_EQ(InfoOf(captured).status, CaptureStatus::kInvalidated);
  End(captured, Status::kStreamCaptureInvalidated);
}

TEST_F(SimCaptureTest, ObserverSeesWhatCallsBecame) {
  const Stream stream = NewStream();
  const DevicePtr word = At(NewWord());
  std::vector<CallRecord> seen;
  device().SetCallObserver(
      [&](const CallRecord& call) { seen.push_back(call); });
  Begin(stream);
  ASSERT_EQ(device().MemsetAsync(word, 1, 8, stream), Status::kSuccess);
  const WorkRange range{word, 8, true};
  ASSERT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 0, 7),
            Status::kSuccess);
  const CaptureInfo info = InfoOf(stream);
  const GraphNode node = info.dependencies.at(0);
  ASSERT_EQ(device().StreamUpdateCaptureDependencies(stream, &node, 1, true),
            Status::kSuccess);
  const Graph graph = End(stream);
  const GraphExec exec = Instantiate(graph);
  device().SetCallObserver(nullptr);
  const auto number = [](auto handle) {
    return reinterpret_cast<std::uintptr_t>(handle.value);
  };
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_EQ(seen[0].call, DeviceCall::kStreamBeginCapture);
  EXPECT_EQ(seen[0].stream_uid, stream.uid);
  EXPECT_EQ(seen[0].ptr, number(graph));
  EXPECT_EQ(seen[1].call, DeviceCall::kMemsetAsync);
  EXPECT_NE(seen[1].node, 0u);
  EXPECT_EQ(seen[2].call, DeviceCall::kUse);
  EXPECT_EQ(seen[2].node, number(node));
  EXPECT_NE(seen[2].node, seen[1].node);
  EXPECT_EQ(seen[3].call, DeviceCall::kStreamCaptureInfo);
  EXPECT_EQ(seen[3].ptr, number(graph));
  EXPECT_EQ(seen[4].call, DeviceCall::kDependency);
  EXPECT_EQ(seen[4].ptr, number(node));
  EXPECT_EQ(seen[5].call, DeviceCall::kStreamUpdateCaptureDependencies);
  EXPECT_EQ(seen[5].value, 1u);
  EXPECT_EQ(seen[6].call, DeviceCall::kStreamEndCapture);
  EXPECT_EQ(seen[6].ptr, number(graph));
  EXPECT_EQ(seen[7].call, DeviceCall::kGraphInstantiate);
  EXPECT_EQ(seen[7].ptr, number(exec));
  EXPECT_EQ(seen[7].value, number(graph));
}

TEST_F(SimCaptureTest, LeaksNameCapturesAndGraphs) {
  const Stream stream = NewStream();
  Begin(stream);
  EXPECT_EQ(device().Leaks().captures, 1u);
  EXPECT_EQ(device().Leaks().graphs, 0u);
  const Graph graph = End(stream);
  const GraphExec exec = Instantiate(graph);
  UserObject object;
  ASSERT_EQ(device().UserObjectCreate(&object, nullptr, [](void*) {}),
            Status::kSuccess);
  EXPECT_EQ(ToString(device().Leaks()),
            "1 stream, 1 graph, 1 instantiated graph, 1 user object");
  EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  EXPECT_EQ(device().UserObjectRelease(object), Status::kSuccess);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(ToString(device().Leaks()), "");
}

// The legacy streams of all devices share one uid.
TEST_F(SimCaptureTest, LegacyStreamOfAnotherDeviceIsNoneThatCapturesKnow) {
  for (const int owner : {0, 1}) {
    SCOPED_TRACE(owner);
    const Stream stream = NewStream(kStreamDefault, owner);
    Begin(stream, CaptureMode::kRelaxed);
    const Stream legacy = device(1).LegacyStream();
    const Status refused = Status::kInvalidResourceHandle;
    CaptureStatus status = CaptureStatus::kNone;
    EXPECT_EQ(device().StreamIsCapturing(legacy, &status), refused);
    EXPECT_EQ(device().StreamSynchronize(legacy), refused);
    EXPECT_EQ(device().StreamQuery(legacy), refused);
    EXPECT_EQ(device().StreamDestroy(legacy), refused);
    EXPECT_EQ(device().EventRecord(NewEvent(), legacy, 0), refused);
    EXPECT_EQ(device().MemsetAsync(0, 0, 8, legacy), refused);
    EXPECT_EQ(device().GraphLaunch(GraphExec(), legacy), refused);
    EXPECT_EQ(platform_->work(0)->Enqueue(legacy, nullptr, 0, 1000, 0),
              refused);
    EXPECT_EQ(InfoOf(stream).status, CaptureStatus::kActive);
    End(stream);
  }
}

}  // namespace
}  // namespace strata::sim
