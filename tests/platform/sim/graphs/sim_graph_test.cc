// Graphs on the simulated device: launches under each kind of progress, and the
// choices of the simulated device. The conformance suite covers the
// requirements for all devices.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimGraphTest : public SimProgressFixture {
 protected:
  void Begin(const Stream& stream) {
    ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
              Status::kSuccess);
  }
  Graph End(const Stream& stream) {
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
    return graph;
  }
  void Order(const Stream& from, const Stream& to) {
    const Event event = NewEvent();
    ASSERT_EQ(device().EventRecord(event, from, 0), Status::kSuccess);
    ASSERT_EQ(device().StreamWaitEvent(to, event, 0), Status::kSuccess);
  }
  GraphExec Instantiate(Graph graph) {
    GraphExec exec;
    EXPECT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
    return exec;
  }
  void Launch(GraphExec exec, const Stream& stream) {
    ASSERT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  }
  // a, then two branches b c and x y, then z.
  GraphExec Diamond() {
    const Stream stream = NewStream();
    const Stream fork = NewStream();
    Begin(stream);
    Mark(stream, 'a');
    Order(stream, fork);
    Mark(stream, 'b');
    Mark(stream, 'c');
    Mark(fork, 'x');
    Mark(fork, 'y');
    Order(fork, stream);
    Mark(stream, 'z');
    return Instantiate(End(stream));
  }
  GraphExec Chain(const std::string& names) {
    const Stream stream = NewStream();
    Begin(stream);
    for (const char name : names) Mark(stream, name);
    return Instantiate(End(stream));
  }
};

// cuda_semantics C24, D9: the order is that of the graph, for every progress.
TEST_F(SimGraphTest, EveryProgressKeepsTheEdges) {
  for (const char* progress : {"inline", "lazy", "seeded", "timed", "manual"}) {
    SCOPED_TRACE(progress);
    Build(progress);
    log_.clear();
    const GraphExec exec = Diamond();
    const Stream stream = NewStream();
    Launch(exec, stream);
    Mark(stream, '!');
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    ASSERT_EQ(log_.size(), 7u);
    EXPECT_EQ(log_.front(), 'a');
    EXPECT_EQ(log_.substr(5), "z!");
    EXPECT_LT(log_.find('b'), log_.find('c'));
    EXPECT_LT(log_.find('x'), log_.find('y'));
  }
}

TEST_F(SimGraphTest, BranchesInterleave) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Build("seeded", "sync", seed);
    log_.clear();
    const GraphExec exec = Diamond();
    const Stream stream = NewStream();
    Launch(exec, stream);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    orders.insert(log_);
  }
  // Six orders exist; in two of them the branches do not interleave.
  EXPECT_GT(orders.size(), 3u);
}

TEST_F(SimGraphTest, SameSeedSameOrder) {
  std::string first;
  for (int run = 0; run < 2; ++run) {
    Build("seeded", "sync", 7);
    log_.clear();
    const GraphExec exec = Diamond();
    const Stream stream = NewStream();
    for (int i = 0; i < 5; ++i) Launch(exec, stream);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    if (run == 0) first = log_;
  }
  EXPECT_EQ(first, log_);
}

TEST_F(SimGraphTest, StepRunsALaunchPieceByPiece) {
  Build("manual");
  const GraphExec exec = Diamond();
  const Stream stream = NewStream();
  Mark(stream, '.');
  Launch(exec, stream);
  Mark(stream, '!');
  for (std::size_t i = 1; i <= 8; ++i) {
    EXPECT_TRUE(device().Step(stream));
    EXPECT_EQ(log_.size(), i);
  }
  EXPECT_EQ(log_.front(), '.');
  EXPECT_EQ(log_.back(), '!');
  EXPECT_FALSE(device().Step(stream));
}

TEST_F(SimGraphTest, StepDoesNotRunWorkOfOtherStreams) {
  Build("manual");
  const GraphExec exec = Chain("g");
  const Stream stream = NewStream();
  const Stream other = NewStream();
  Mark(other, 'o');
  WaitFor(stream, Record(other));
  Launch(exec, stream);
  EXPECT_FALSE(device().Step(stream));
  EXPECT_TRUE(device().Step(other));
  EXPECT_TRUE(device().Step(stream));
  EXPECT_EQ(log_, "og");
}

TEST_F(SimGraphTest, LazyLaunchRunsNoMoreThanIsNeeded) {
  Build("lazy");
  const GraphExec exec = Chain("ab");
  const Stream first = NewStream();
  const Stream second = NewStream();
  Launch(exec, first);
  Mark(first, '!');
  Launch(exec, second);
  EXPECT_EQ(log_, "");
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  EXPECT_EQ(log_, "abab");
  EXPECT_EQ(device().PendingCount(), 1u);
}

// The branches of one launch take the duration of the longer one.
TEST_F(SimGraphTest, TimedBranchesOverlap) {
  constexpr std::uint64_t kLong = 10'000'000;
  Build("timed");
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  Begin(stream);
  Order(stream, fork);
  Busy(stream, kLong);
  Busy(fork, kLong);
  Order(fork, stream);
  Busy(stream, kLong);
  const GraphExec exec = Instantiate(End(stream));
  std::uint64_t before = 0;
  device().SetCallObserver(
      [&](const CallRecord& call) { before = call.time_ns; });
  Launch(exec, stream);
  const std::uint64_t begun = before;
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  device().SetCallObserver(nullptr);
  // The launch call takes part of it.
  EXPECT_GT(before - begun, 2 * kLong - kLong / 10);
  EXPECT_LT(before - begun, 2 * kLong + kLong / 10);
}

// cuda_semantics S3: for the legacy stream, a launch is work of its stream too.
TEST_F(SimGraphTest, LegacyStreamWaitsForLaunchesInBlockingStreams) {
  Build("lazy");
  const GraphExec exec = Chain("g");
  const Stream blocking = NewStream(kStreamDefault);
  Mark(device().LegacyStream(), 'l');
  Launch(exec, blocking);
  Mark(device().LegacyStream(), 'm');
  ASSERT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(log_, "lgm");
  Launch(exec, device().LegacyStream());
  Mark(blocking, 'b');
  ASSERT_EQ(device().StreamSynchronize(blocking), Status::kSuccess);
  EXPECT_EQ(log_, "lgmgb");
}

// cuda_semantics H6, C25: a replay reads the bytes at the time it runs.
TEST_F(SimGraphTest, PageableMemoryIsReadAtReplay) {
  Build("lazy");
  const Stream stream = NewStream();
  std::uint64_t* word = NewWord();
  std::uint64_t pageable = 1;
  Begin(stream);
  ASSERT_EQ(device().MemcpyAsync(At(word), At(&pageable), 8, stream),
            Status::kSuccess);
  const GraphExec exec = Instantiate(End(stream));
  Launch(exec, stream);
  pageable = 2;
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*word, 2u);
}

TEST_F(SimGraphTest, IllegalAddressAtReplayIsSticky) {
  Build("inline");
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, 64), Status::kSuccess);
  Begin(stream);
  ASSERT_EQ(device().MemsetAsync(ptr, 0, 64, stream), Status::kSuccess);
  Mark(stream, 'n');
  const GraphExec exec = Instantiate(End(stream));
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kIllegalAddress);
  EXPECT_EQ(log_, "");
}

// cuda_semantics C28: the running launch keeps the old operands.
TEST_F(SimGraphTest, UpdateLeavesTheLaunchUnderWayAlone) {
  Build("manual");
  const Stream stream = NewStream();
  const auto captured = [&](char name) {
    Begin(stream);
    Mark(stream, name);
    return End(stream);
  };
  const GraphExec exec = Instantiate(captured('o'));
  const Graph fresh = captured('n');
  Launch(exec, stream);
  ASSERT_EQ(device().GraphExecUpdate(exec, fresh), Status::kSuccess);
  Launch(exec, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(log_, "on");
}

TEST_F(SimGraphTest, UpdateComparesKindsAndEdges) {
  Build("inline");
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const DevicePtr word = At(NewWord());
  const auto captured = [&](auto body) {
    Begin(stream);
    body();
    return End(stream);
  };
  const GraphExec exec = Instantiate(captured([&] {
    Mark(stream, 'a');
    Mark(stream, 'b');
  }));
  EXPECT_EQ(device().GraphExecUpdate(exec, captured([&] {
                                       ASSERT_EQ(device().MemsetAsync(
                                                     word, 0, 8, stream),
                                                 Status::kSuccess);
                                       Mark(stream, 'b');
                                     })),
            Status::kGraphExecUpdateFailure);
  EXPECT_EQ(device().GraphExecUpdate(exec, captured([&] {
                                       Order(stream, fork);
                                       Mark(stream, 'a');
                                       Mark(fork, 'b');
                                       Order(fork, stream);
                                     })),
            Status::kGraphExecUpdateFailure);
  Launch(exec, stream);
  EXPECT_EQ(log_, "ab");
}

// cuda_semantics C25: a captured event was destroyed.
TEST_F(SimGraphTest, LaunchNeedsTheEventsItNames) {
  Build("inline");
  const Stream stream = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(event, stream, kEventExternal),
            Status::kSuccess);
  Mark(stream, 'a');
  const GraphExec exec = Instantiate(End(stream));
  ASSERT_EQ(device().EventDestroy(event), Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kInvalidValue);
  EXPECT_EQ(log_, "");
}

// E1: a record node covers only its predecessors in the graph.
TEST_F(SimGraphTest, ExternalRecordSeesItsBranchOnly) {
  Build("lazy");
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  Order(stream, fork);
  Mark(fork, 'f');
  Mark(stream, 's');
  ASSERT_EQ(device().EventRecord(event, stream, kEventExternal),
            Status::kSuccess);
  Mark(stream, 't');
  Order(fork, stream);
  const GraphExec exec = Instantiate(End(stream));
  Launch(exec, stream);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(log_, "s");
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

// cuda_semantics C27, C29: a running launch holds the objects of its graph.
TEST_F(SimGraphTest, ObjectsEndAtTheFirstCallAfterTheirLastLaunch) {
  Build("manual");
  const Stream stream = NewStream();
  Begin(stream);
  Mark(stream, 'a');
  const Graph graph = End(stream);
  bool ended = false;
  UserObject object;
  ASSERT_EQ(
      device().UserObjectCreate(
          &object, &ended, [](void* at) { *static_cast<bool*>(at) = true; }),
      Status::kSuccess);
  ASSERT_EQ(device().GraphRetainUserObject(graph, object, true),
            Status::kSuccess);
  EXPECT_EQ(device().UserObjectRelease(object), Status::kInvalidValue);
  const GraphExec exec = Instantiate(graph);
  Launch(exec, stream);
  ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_FALSE(ended);
  EXPECT_TRUE(device().Step(stream));
  EXPECT_FALSE(ended);
  EXPECT_EQ(device(1).Synchronize(), Status::kSuccess);
  EXPECT_TRUE(ended);
}

// The platform destroys the objects that are due, and no object that is held.
TEST_F(SimGraphTest, PlatformEndsObjectsThatAreDue) {
  Build("inline");
  bool due = false;
  bool held = false;
  const auto create = [&](bool* flag) {
    UserObject object;
    EXPECT_EQ(
        device().UserObjectCreate(
            &object, flag, [](void* at) { *static_cast<bool*>(at) = true; }),
        Status::kSuccess);
    return object;
  };
  const UserObject first = create(&due);
  create(&held);
  ASSERT_EQ(device().UserObjectRelease(first), Status::kSuccess);
  platform_.reset();
  EXPECT_TRUE(due);
  EXPECT_FALSE(held);
}

// Launches of one exec by several threads never overlap.
TEST_F(SimGraphTest, ThreadsLaunchOneExec) {
  for (const char* progress : {"inline", "lazy", "seeded"}) {
    Build(progress);
    log_.clear();
    const GraphExec exec = Chain("ab");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Stream stream = NewStream();
        for (int n = 0; n < 50; ++n) {
          EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
        }
        EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::string expected;
    for (int i = 0; i < 200; ++i) expected += "ab";
    EXPECT_EQ(log_, expected);
  }
}

}  // namespace
}  // namespace strata::sim
