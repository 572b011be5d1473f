#include "strata/tools/readers/snapshot/pytorch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tests/tools/readers/snapshot/snapshot_files.h"
#include "strata/tests/tools/readers/snapshot/snapshot_json.h"
#include "strata/tools/readers/rmm_log.h"

namespace strata::tools {
namespace {

using snapshot_json::Block;
using snapshot_json::Entry;
using snapshot_json::Failure;
using snapshot_json::Json;
using snapshot_json::ReadSnapshot;
using snapshot_json::Segment;
using snapshot_json::Snapshot;
using snapshot_json::SnapshotError;
using ::testing::ElementsAre;

TEST(PytorchSnapshotTest, RequestedFreeIsTheFree) {
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("segment_alloc", 1024, 2048), Entry("alloc", 1024, 100),
                Entry("free_requested", 1024, 100),
                Entry("free_completed", 1024, 100), Entry("alloc", 1024, 7),
                Entry("segment_map", 9, 9), Entry("snapshot", 0, 0),
                Entry("user_defined", 0, 0), Entry("annotate", 1024, 0)}));
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0),
                          TraceEvent::Allocate(0, 0)));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(100, 7));
  EXPECT_EQ(trace.peak_live_bytes, 100U);
  EXPECT_EQ(trace.blocks_before, 0U);
  EXPECT_EQ(trace.frees_completed, 0U);
  EXPECT_TRUE(trace.skipped.empty());
}

// As recorded with skip_actions=["free_requested"]: 200 blocks in sequence, at
// different addresses.
TEST(PytorchSnapshotTest, CompletedFreeIsTheFreeIfNoneWasRequested) {
  std::vector<Json> entries;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    entries.push_back(Entry("alloc", i << 26, 1 << 26));
    entries.push_back(Entry("free_completed", i << 26, 1 << 26));
  }
  const Trace trace = ReadSnapshot(Snapshot(entries));
  EXPECT_EQ(trace.peak_live_bytes, std::uint64_t{1} << 26);
  EXPECT_EQ(trace.frees_completed, 200U);
  EXPECT_EQ(trace.LineOf(1), 2U);
}

// The recording was restarted without the requests while the program ran.
TEST(PytorchSnapshotTest, EachBlockHasItsOwnFirstFree) {
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("alloc", 512, 1), Entry("free_completed", 512, 1),
                Entry("alloc", 1024, 2), Entry("free_requested", 1024, 2),
                Entry("alloc", 2048, 3), Entry("free_completed", 1024, 2)}));
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0),
                          TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0),
                          TraceEvent::Allocate(0, 0)));
  EXPECT_EQ(trace.frees_completed, 1U);
}

// Its request was in the lost part of the ring, if requests are recorded at
// all.
TEST(PytorchSnapshotTest, CompletionOfAnUnknownBlockIsAFreeWithoutRequests) {
  const Json known = Entry("alloc", 512, 1);
  const Json completed = Entry("free_completed", 4096, 30);
  const Trace alone = ReadSnapshot(Snapshot({known, completed}));
  EXPECT_EQ(alone.blocks_before, 1U);
  EXPECT_EQ(alone.events.size(), 3U);
  const Trace beside = ReadSnapshot(
      Snapshot({known, completed, Entry("free_requested", 512, 1)}));
  EXPECT_EQ(beside.blocks_before, 0U);
  EXPECT_EQ(beside.events.size(), 2U);
}

TEST(PytorchSnapshotTest, EventsAreOfEntries) {
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("free_requested", 512, 5),
                Entry("free_completed", 512, 5), Entry("alloc", 512, 6)}));
  EXPECT_EQ(trace.Where(0), "test.pickle: entry 1");  // live before it
  EXPECT_EQ(trace.Where(1), "test.pickle: entry 1");
  EXPECT_EQ(trace.Where(2), "test.pickle: entry 3");
}

TEST(PytorchSnapshotTest, StreamsAreKept) {
  const Trace trace =
      ReadSnapshot(Snapshot({Entry("alloc", 1, 1, 0), Entry("alloc", 2, 1, 77),
                             Entry("free_requested", 1, 1, 77)}));
  EXPECT_THAT(trace.streams, ElementsAre(0, 77));
  EXPECT_EQ(trace.events[1].stream(), 1U);
  EXPECT_EQ(trace.events[2].stream(), 1U);
}

TEST(PytorchSnapshotTest, OutOfMemoryIsTriedAgain) {
  const Trace trace =
      ReadSnapshot(Snapshot({Failure(1 << 20, 5), Entry("alloc", 1, 1)}));
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Try(0, 0), TraceEvent::Allocate(0, 0)));
  EXPECT_EQ(trace.tries, 1U);
  EXPECT_EQ(trace.peak_live_bytes, 1U << 20);
  Json without_size = Failure(1, 5);
  without_size.erase("size");
  EXPECT_EQ(ReadSnapshot(Snapshot({without_size, Entry("alloc", 1, 1)}))
                .failures_skipped,
            1U);
}

TEST(PytorchSnapshotTest, ListOfSegmentsIsNamed) {
  const std::vector<Json> segments(1, Segment(4096, {Block(4096, 5)}));
  EXPECT_THAT(SnapshotError(segments),
              ::testing::StartsWith("this is the list of segments that "
                                    "torch.cuda.memory_snapshot() returns"));
}

TEST(PytorchSnapshotTest, FirstDeviceWithEntriesIsTheDefault) {
  Json snapshot = Snapshot({});
  snapshot["device_traces"] = std::vector<std::vector<Json>>{
      {}, {Entry("alloc", 1, 10)}, {Entry("alloc", 1, 20)}};
  EXPECT_THAT(ReadSnapshot(snapshot).allocated_bytes, ElementsAre(10));
  EXPECT_THAT(ReadSnapshot(snapshot, 2).allocated_bytes, ElementsAre(20));
  EXPECT_EQ(ReadSnapshot(snapshot).devices_skipped, 1U);
  EXPECT_EQ(ReadSnapshot(snapshot, 2).devices_skipped, 0U);
  EXPECT_EQ(SnapshotError(snapshot, 0),
            "no entries of device 0; those with entries: 1, 2");
  EXPECT_EQ(SnapshotError(snapshot, 3),
            "no entries of device 3; those with entries: 1, 2");
}

TEST(PytorchSnapshotTest, BlocksFreedWithoutAnAllocComeFirst) {
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("alloc", 4096, 1), Entry("free_requested", 2048, 30, 5),
                Entry("free_requested", 1024, 20), Entry("alloc", 1024, 2)}));
  // By address, with the size and the stream of their free.
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(20, 30, 1, 2));
  EXPECT_EQ(trace.streams[trace.events[1].stream()], 5U);
  EXPECT_EQ(trace.blocks_before, 2U);
  EXPECT_EQ(trace.peak_live_bytes, 51U);
}

TEST(PytorchSnapshotTest, BlocksWithoutEntriesComeFirst) {
  const Trace trace = ReadSnapshot(Snapshot(
      {Entry("alloc", 4096, 1), Entry("free_requested", 1024, 20)},
      {Segment(2048, {Block(2048, 300)}, 9), Segment(4096, {Block(4096, 1)})}));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(20, 300, 1));
  EXPECT_EQ(trace.streams[trace.events[1].stream()], 9U);
  EXPECT_EQ(trace.blocks_before, 2U);
}

TEST(PytorchSnapshotTest, FreeBlocksAndThoseThatWaitWereNotLive) {
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("alloc", 1, 1)},
               {Segment(1024, {Block(1024, 5, "inactive"),
                               Block(1536, 5, "active_pending_free"),
                               Block(2048, 5, "active_awaiting_free")})}));
  EXPECT_EQ(trace.blocks_before, 0U);
}

TEST(PytorchSnapshotTest, BlocksOfOtherDevicesAreNotOurs) {
  const Trace trace = ReadSnapshot(Snapshot(
      {Entry("alloc", 1, 1)}, {Segment(1024, {Block(1024, 5)}, 0, 1)}));
  EXPECT_EQ(trace.blocks_before, 0U);
}

TEST(PytorchSnapshotTest, BlockAllocatedAfterTheLastEntryIsLeftOut) {
  // Live at the end, although its last entry is a free.
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("alloc", 1024, 5), Entry("free_requested", 1024, 5)},
               {Segment(1024, {Block(1024, 8)})}));
  EXPECT_EQ(trace.blocks_after, 1U);
  EXPECT_EQ(trace.events.size(), 2U);
}

TEST(PytorchSnapshotTest, RecordedBlockWithoutEntryProvesTheRingWrapped) {
  Json block = Block(2048, 5);
  EXPECT_FALSE(
      ReadSnapshot(Snapshot({Entry("alloc", 1, 1)}, {Segment(2048, {block})}))
          .has_lost_entries);
  block["frames"].push_back({{"name", "f"}});
  EXPECT_TRUE(
      ReadSnapshot(Snapshot({Entry("alloc", 1, 1)}, {Segment(2048, {block})}))
          .has_lost_entries);
  EXPECT_FALSE(ReadSnapshot(Snapshot({Entry("alloc", 2048, 5)},
                                     {Segment(2048, {block})}))
                   .has_lost_entries);
}

TEST(PytorchSnapshotTest, BlocksOfEarlyVersionsFollowEachOther) {
  Json first = Block(0, 0);
  first.erase("address");
  first.erase("requested_size");
  Json second = first;
  second["size"] = 1024;
  const Trace trace = ReadSnapshot(
      Snapshot({Entry("alloc", 1, 1)}, {Segment(4096, {first, second})}));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(512, 1024, 1));
  // The second block is at 4096 + 512: an entry with this address belongs to
  // it.
  EXPECT_EQ(ReadSnapshot(Snapshot({Entry("alloc", 4608, 1)},
                                  {Segment(4096, {first, second})}))
                .blocks_before,
            1U);
}

TEST(PytorchSnapshotTest, ListThatWasForgottenIsNoList) {
  // One list, used as the value of an ignored key and as entries.
  std::string content = "\x80\x02}(";
  content += PickleOpcodes("annotations");
  content += PickleOpcodes(std::vector<Json>(1, Entry("alloc", 1, 1)));
  content += std::string("q\x05", 2);
  content += PickleOpcodes("segments");
  content += "]";
  content += PickleOpcodes("device_traces");
  content += std::string(
      "]h\x05"
      "au.",
      6);
  InputBuffer input("test.pickle", content);
  EXPECT_THROW(ReadPytorchSnapshot(input, std::nullopt), TraceError);
}

// --- Files that Python wrote -----------------------------------------------

class PytorchSnapshotFilesTest : public ::testing::Test {
 protected:
  Trace ReadFile(const std::string& name) const {
    InputBuffer input(files_.Path(name));
    return ReadPytorchSnapshot(input, std::nullopt);
  }
  // Expects the same operations as in an RMM log.
  void ExpectSame(const std::string& snapshot, const std::string& log) const {
    const Trace trace = ReadFile(snapshot);
    const Trace expected = ReadRmmLog(files_.Path(log));
    EXPECT_EQ(trace.events, expected.events) << snapshot;
    EXPECT_EQ(trace.allocated_bytes, expected.allocated_bytes) << snapshot;
    EXPECT_EQ(trace.streams, expected.streams) << snapshot;
    EXPECT_EQ(trace.peak_live_bytes, expected.peak_live_bytes) << snapshot;
    EXPECT_EQ(trace.frees_of_other_size, 0U) << snapshot;
  }

  const SnapshotFiles files_;
};

TEST_F(PytorchSnapshotFilesTest, EveryProtocolSaysWhatTheRmmLogSays) {
  for (const char protocol : {'2', '3', '4', '5'}) {
    ExpectSame(std::string("whole.p") + protocol + ".pickle", "whole.csv");
  }
}

TEST_F(PytorchSnapshotFilesTest, WrappedRingSaysWhatIsKnown) {
  for (const char protocol : {'2', '3', '4', '5'}) {
    ExpectSame(std::string("cut.p") + protocol + ".pickle", "cut.csv");
  }
  const Trace cut = ReadFile("cut.p4.pickle");
  EXPECT_TRUE(cut.has_lost_entries);
  EXPECT_GT(cut.blocks_before, 50U);
  EXPECT_FALSE(ReadFile("whole.p4.pickle").has_lost_entries);
}

TEST_F(PytorchSnapshotFilesTest, WrappedRingEndsLikeTheWhole) {
  const Trace cut = ReadFile("cut.p4.pickle");
  const Trace whole = ReadFile("whole.p4.pickle");
  const auto live_at_end = [](const Trace& trace) {
    std::ptrdiff_t live = 0;
    for (const TraceEvent event : trace.events) {
      live += event.is_allocate() ? 1 : event.is_free() ? -1 : 0;
    }
    return live;
  };
  EXPECT_EQ(live_at_end(cut), live_at_end(whole));
}

}  // namespace
}  // namespace strata::tools
