#include "strata/tools/readers/snapshot/pytorch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tests/tools/readers/snapshot/snapshot_files.h"
#include "strata/tools/readers/rmm_log.h"

namespace strata {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;

Json Entry(const std::string& action, std::uint64_t address,
           std::uint64_t bytes, std::uint64_t stream = 0) {
  return {{"action", action},
          {"addr", address},
          {"size", bytes},
          {"stream", stream},
          {"frames", Json::array()}};
}

Json Block(std::uint64_t address, std::uint64_t requested_bytes,
           const std::string& state = "active_allocated") {
  return {{"address", address},
          {"size", 512},
          {"requested_size", requested_bytes},
          {"state", state},
          {"frames", Json::array()}};
}

// Lists are vectors: compilers disagree on the meaning of {value} for Json.
Json Segment(std::uint64_t address, const std::vector<Json>& blocks,
             std::uint64_t stream = 0, std::uint64_t device = 0) {
  return {{"device", device},
          {"address", address},
          {"stream", stream},
          {"blocks", blocks}};
}

Json Snapshot(const std::vector<Json>& entries,
              const std::vector<Json>& segments = {}) {
  return {{"device_traces", std::vector<std::vector<Json>>(1, entries)},
          {"segments", segments}};
}

Trace ReadSnapshot(const Json& snapshot,
                   std::optional<std::uint64_t> device = std::nullopt) {
  InputBuffer input("test.pickle", PickleOf(snapshot));
  return ReadPytorchSnapshot(input, device);
}

// An `oom` entry with `device_free` bytes left on the device.
Json Failure(std::uint64_t bytes, std::uint64_t device_free) {
  return {{"action", "oom"},
          {"device_free", device_free},
          {"size", bytes},
          {"stream", 0},
          {"frames", Json::array()}};
}

// The error of a read, without the path.
std::string SnapshotError(const Json& snapshot,
                          std::optional<std::uint64_t> device = std::nullopt) {
  try {
    ReadSnapshot(snapshot, device);
  } catch (const TraceError& error) {
    return std::string(error.what())
        .substr(std::string("test.pickle: ").size());
  }
  return "";
}

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

// --- Segments ----------------------------------------------------------------

Json SizedSegment(std::uint64_t address, std::uint64_t bytes,
                  const std::vector<Json>& blocks = {}) {
  Json segment = Segment(address, blocks);
  segment["total_size"] = bytes;
  return segment;
}

TEST(PytorchSnapshotTest, RecordedPeakIsThatOfTheSegments) {
  const std::vector<Json> entries = {
      Entry("segment_alloc", 1 << 20, 300), Entry("alloc", 1 << 20, 1),
      Entry("segment_alloc", 2 << 20, 50), Entry("alloc", 2 << 20, 1),
      Entry("segment_free", 4 << 20, 100)};
  // 100 bytes before the first entry, 450 bytes at most, 350 bytes at the end.
  const Trace trace = ReadSnapshot(Snapshot(
      entries, {SizedSegment(1 << 20, 300), SizedSegment(2 << 20, 50)}));
  EXPECT_EQ(trace.recorded.peak_reserved_bytes, 450U);
  EXPECT_EQ(trace.recorded.device_bytes, 0U);
  // The reserved bytes would have been negative.
  EXPECT_EQ(ReadSnapshot(Snapshot(entries)).recorded.peak_reserved_bytes, 0U);
}

TEST(PytorchSnapshotTest, DeviceIsAsLargeAsTheSegmentsAndTheFreeRest) {
  const Trace trace = ReadSnapshot(Snapshot(
      {Entry("segment_alloc", 1 << 20, 300), Entry("alloc", 1 << 20, 1),
       Failure(500, 70), Entry("segment_alloc", 2 << 20, 50), Failure(500, 30)},
      {SizedSegment(1 << 20, 300), SizedSegment(2 << 20, 50)}));
  EXPECT_EQ(trace.recorded.device_bytes, 380U);
}

// Indices of the releases among the events. In this history, 400 bytes are
// reserved before `entries`, and a segment of `later_bytes` is allocated after
// them.
std::vector<std::size_t> ReleasesIn(std::vector<Json> entries,
                                    std::uint64_t later_bytes = 600) {
  entries.push_back(Entry("alloc", 8 << 20, 1));
  entries.push_back(Entry("segment_alloc", 9 << 20, later_bytes));
  std::uint64_t reserved = 400;
  for (const Json& entry : entries) {
    const auto bytes = entry["size"].get<std::uint64_t>();
    if (entry["action"] == "segment_alloc") reserved += bytes;
    if (entry["action"] == "segment_free") reserved -= bytes;
  }
  const Trace trace =
      ReadSnapshot(Snapshot(entries, {SizedSegment(1 << 20, reserved)}));
  std::vector<std::size_t> releases;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].is_release()) releases.push_back(i);
  }
  EXPECT_EQ(trace.releases, releases.size());
  return releases;
}

TEST(PytorchSnapshotTest, ARunOfFreedSegmentsIsARelease) {
  const Json allocate = Entry("alloc", 1 << 20, 1);
  const Json freed = Entry("segment_free", 2 << 20, 100);
  const Json freed_too = Entry("segment_free", 3 << 20, 100);
  EXPECT_THAT(ReleasesIn({allocate, freed, freed_too}), ElementsAre(1));
  EXPECT_THAT(ReleasesIn({freed, Entry("snapshot", 0, 0), freed_too, allocate}),
              ElementsAre(0));
  EXPECT_THAT(ReleasesIn({allocate, freed, Entry("alloc", 2, 1), freed_too}),
              ElementsAre(1, 3));
  EXPECT_THAT(ReleasesIn({allocate}), ElementsAre());
}

TEST(PytorchSnapshotTest, SegmentsFreedBesideAFailureAreNoRelease) {
  const Json allocate = Entry("alloc", 1 << 20, 1);
  const Json freed = Entry("segment_free", 2 << 20, 100);
  EXPECT_THAT(ReleasesIn({allocate, freed, Failure(900, 5)}), ElementsAre());
  EXPECT_THAT(ReleasesIn({allocate, Failure(900, 5),
                          Entry("free_requested", 1 << 20, 1), freed}),
              ElementsAre());
  EXPECT_THAT(ReleasesIn({allocate, Failure(900, 5), Entry("alloc", 2, 1),
                          freed, Entry("alloc", 4, 1)}),
              ElementsAre(3));
}

// Segment entries as a pickle: one freed, one allocated, and its first block.
// If `is_shared`, the last two share their frames through the memo; if
// `is_for_request`, the first one shares them too.
std::string PickleOfARetry(bool is_shared, bool is_for_request) {
  const std::string frames =
      PickleOpcodes(std::vector<Json>(1, {{"name", "f"}}));
  const auto entry = [&](const char* action, std::uint64_t address,
                         const std::string& its_frames) {
    Json json = Entry(action, address, 100);
    json.erase("frames");
    std::string text = PickleOpcodes(json);
    text.pop_back();
    return text + PickleOpcodes("frames") + its_frames + "u";
  };
  const std::string stored = frames + std::string("q\x05", 2);
  const std::string again("h\x05", 2);
  std::string content = "\x80\x02}(" + PickleOpcodes("segments");
  content += PickleOpcodes(std::vector<Json>(1, SizedSegment(1 << 20, 1000)));
  content += PickleOpcodes("device_traces") + "](](";
  content += entry("segment_free", 2 << 20, is_for_request ? stored : frames);
  content += entry("segment_alloc", 3 << 20, is_for_request ? again : stored);
  content += entry("alloc", 3 << 20, is_shared ? again : frames);
  return content + "eeu.";
}

// Before a new segment, the frames show whether the same request freed the
// others.
TEST(PytorchSnapshotTest, SegmentsFreedForTheSameRequestAreNoRelease) {
  const auto releases = [](bool is_shared, bool is_for_request) {
    InputBuffer input("test.pickle", PickleOfARetry(is_shared, is_for_request));
    return ReadPytorchSnapshot(input, std::nullopt).releases;
  };
  EXPECT_EQ(releases(true, true), 0U);
  EXPECT_EQ(releases(true, false), 1U);
  // Frames that are never shared prove nothing, but the peak does: the new
  // segment would have raised it.
  EXPECT_EQ(releases(false, false), 0U);
  EXPECT_EQ(releases(false, true), 0U);
}

// If the program had held more at another time, the request would not have
// failed.
TEST(PytorchSnapshotTest, WithoutFramesTheRecordedPeakTellsWhatFailed) {
  const std::vector<Json> entries = {Entry("segment_free", 2 << 20, 100),
                                     Entry("segment_alloc", 3 << 20, 500)};
  EXPECT_EQ(ReleasesIn(entries, 100).size(), 1U);
  EXPECT_EQ(ReleasesIn(entries, 99).size(), 0U);
}

// --- Layout before the first entry -------------------------------------------

constexpr std::uint64_t kSegment = 2 << 20;

TEST(PytorchSnapshotTest, KnowsTheSegmentsBeforeTheFirstEntry) {
  // One segment was freed and one allocated since; one block was freed and one
  // stays.
  const Trace trace = ReadSnapshot(Snapshot(
      {Entry("segment_free", 8 << 20, kSegment, 7), Entry("alloc", 2 << 20, 1),
       Entry("free_requested", (1 << 20) + 1024, 600),
       Entry("segment_alloc", 16 << 20, kSegment)},
      {SizedSegment(1 << 20, kSegment, {Block(1 << 20, 500)}),
       SizedSegment(16 << 20, kSegment)}));
  const auto& segments = trace.recorded.segments;
  ASSERT_EQ(segments.size(), 2U);
  ASSERT_EQ(segments[0].blocks.size(), 2U);
  EXPECT_EQ(segments[0].bytes, kSegment);
  EXPECT_EQ(segments[0].blocks[0].offset, 0U);
  EXPECT_EQ(segments[0].blocks[0].bytes, 512U);
  EXPECT_EQ(segments[0].blocks[1].offset, 1024U);
  EXPECT_EQ(segments[0].blocks[1].bytes, 1024U);
  EXPECT_EQ(segments[1].bytes, kSegment);
  EXPECT_TRUE(segments[1].blocks.empty());
  EXPECT_EQ(trace.streams[segments[1].stream], 7U);
}

TEST(PytorchSnapshotTest, LayoutThatContradictsItselfIsUnknown) {
  const Json freed = Entry("free_requested", (1 << 20) + 1024, 600);
  const auto segments = [&](const std::vector<Json>& entries,
                            const std::vector<Json>& at_end) {
    return ReadSnapshot(Snapshot(entries, at_end)).recorded.segments.size();
  };
  EXPECT_EQ(segments({freed}, {SizedSegment(1 << 20, kSegment)}), 1U);
  // In no segment; overlapping; not at the start of a block; allocated, but
  // absent.
  EXPECT_EQ(segments({freed}, {SizedSegment(2 << 20, kSegment)}), 0U);
  EXPECT_EQ(segments({freed, Entry("free_requested", (1 << 20) + 1536, 1)},
                     {SizedSegment(1 << 20, kSegment)}),
            0U);
  EXPECT_EQ(segments({Entry("free_requested", (1 << 20) + 1, 1)},
                     {SizedSegment(1 << 20, kSegment)}),
            0U);
  EXPECT_EQ(segments({freed, Entry("segment_alloc", 8 << 20, 0)},
                     {SizedSegment(1 << 20, kSegment)}),
            0U);
}

TEST(PytorchSnapshotTest, LayoutOfExpandableSegmentsIsNotKept) {
  Json segment = SizedSegment(1 << 20, kSegment);
  segment["is_expandable"] = true;
  // The pickles of the tests have no booleans.
  std::string content = PickleOf(Snapshot(
      {Entry("free_requested", 1 << 20, 600), Entry("segment_map", 2 << 20, 0)},
      {SizedSegment(1 << 20, kSegment)}));
  InputBuffer input("test.pickle", content);
  EXPECT_TRUE(
      ReadPytorchSnapshot(input, std::nullopt).recorded.segments.empty());
}

// --- Skipped parts -----------------------------------------------------------

std::string SkippedIn(const Json& snapshot) {
  const Trace trace = ReadSnapshot(snapshot);
  EXPECT_GE(trace.events.size(), 1U);
  return trace.skipped.Summary();
}

TEST(PytorchSnapshotTest, EntriesThatCannotBeUsedAreSkipped) {
  const Json good = Entry("alloc", 512, 1);
  const auto skipped = [&](const Json& bad) {
    const Trace trace =
        ReadSnapshot(Snapshot({good, bad, Entry("free_requested", 512, 1)}));
    EXPECT_EQ(trace.events.size(), 2U) << bad;
    EXPECT_EQ(trace.LineOf(1), 3U) << bad;
    return trace.skipped.Summary();
  };
  EXPECT_EQ(skipped(Entry("teleport", 512, 1)), "unknown_action 1");
  EXPECT_EQ(skipped(7), "bad_value 1");
  EXPECT_EQ(skipped(Json::object()), "bad_value 1");
  Json without_size = Entry("alloc", 1024, 1);
  without_size.erase("size");
  EXPECT_EQ(skipped(without_size), "bad_value 1");
  EXPECT_EQ(skipped(Entry("alloc", 0, 1)), "bad_value 1");
  Json without_address = Entry("free_requested", 1, 1);
  without_address["addr"] = "x";
  EXPECT_EQ(skipped(without_address), "bad_value 1");
}

TEST(PytorchSnapshotTest, AFreeNeedsOnlyItsAddress) {
  Json freed = Entry("free_requested", 512, 1);
  freed.erase("size");
  freed["stream"] = "default";
  EXPECT_EQ(SkippedIn(Snapshot({Entry("alloc", 512, 1), freed})), "");
  EXPECT_EQ(SkippedIn(Snapshot({Entry("alloc", 1024, 1), freed})),
            "unmatched_free 1");
}

TEST(PytorchSnapshotTest, SegmentsThatCannotBeUsedAreSkipped) {
  const Json good = Entry("alloc", 512, 1);
  const auto skipped = [&](const std::vector<Json>& segments) {
    return SkippedIn(Snapshot({good}, segments));
  };
  EXPECT_EQ(skipped({7}), "bad_value 1");
  EXPECT_EQ(skipped({Json::object()}), "bad_value 1");
  EXPECT_EQ(skipped({Segment(4096, {}), Segment(4096, {})}), "bad_value 1");
  EXPECT_EQ(skipped({Segment(4096, {Block(4096, 5, "thinking")})}),
            "unknown_state 1");
  Json block = Block(4096, 5);
  block["size"] = -1;
  EXPECT_EQ(skipped({Segment(4096, {block})}), "bad_value 1");
  Json snapshot = Snapshot({good});
  snapshot.erase("segments");
  EXPECT_EQ(SkippedIn(snapshot), "bad_value 1");
  // These fields are not read.
  block = Block(4096, 5);
  block["frames"] = "x";
  EXPECT_EQ(skipped({Segment(4096, {block})}), "");
}

TEST(PytorchSnapshotTest, BytesBehindThePickleAreCounted) {
  const std::string pickle = PickleOf(Snapshot({Entry("alloc", 512, 1)}));
  InputBuffer one_byte("test.pickle", pickle + "x");
  const Trace trace = ReadPytorchSnapshot(one_byte, std::nullopt);
  EXPECT_EQ(trace.skipped.Summary(), "trailing_bytes 1");
  EXPECT_FALSE(trace.skipped.IsSuspect());
  InputBuffer twice("test.pickle", pickle + pickle);
  EXPECT_TRUE(ReadPytorchSnapshot(twice, std::nullopt).skipped.IsSuspect());
}

// A value under an unknown key may be an object, which is not created.
TEST(PytorchSnapshotTest, ObjectsAreCountedAndNotMade) {
  std::string content = "\x80\x02}(" + PickleOpcodes("user_metadata");
  content += "cposix\nsystem\n" + PickleOpcodes("echo executed") + "\x85R";
  content += PickleOpcodes("segments") + "]";
  content += PickleOpcodes("device_traces");
  content += PickleOpcodes(
      std::vector<std::vector<Json>>(1, {Entry("alloc", 512, 1)}));
  InputBuffer input("test.pickle", content + "u.");
  const Trace trace = ReadPytorchSnapshot(input, std::nullopt);
  EXPECT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.skipped.Summary(), "foreign_object 2");
  EXPECT_THAT(trace.skipped.of(SkipKind::kForeignObject).reason,
              ::testing::HasSubstr("GLOBAL (0x63): asks for 'posix.system', "
                                   "which is never made"));
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
}  // namespace strata
