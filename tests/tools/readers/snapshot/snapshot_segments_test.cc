// Segments of a snapshot: the recorded peak, releases, and the layout before
// the first entry.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tests/tools/readers/snapshot/snapshot_json.h"
#include "strata/tools/readers/snapshot/pytorch_snapshot.h"

namespace strata::tools {
namespace {

using snapshot_json::Block;
using snapshot_json::Entry;
using snapshot_json::Failure;
using snapshot_json::Json;
using snapshot_json::ReadSnapshot;
using snapshot_json::Segment;
using snapshot_json::SizedSegment;
using snapshot_json::Snapshot;
using ::testing::ElementsAre;

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

}  // namespace
}  // namespace strata::tools
