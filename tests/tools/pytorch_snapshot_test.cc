#include "strata/tools/pytorch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/tests/tools/pickle_text.h"
#include "strata/tests/tools/snapshot_files.h"
#include "strata/tools/rmm_log.h"

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

// Lists are vectors: compilers disagree on what Json makes of {value}.
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

// What reading throws, without the path.
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
  const Trace trace = ReadSnapshot(Snapshot(
      {Entry("segment_alloc", 1024, 2048), Entry("alloc", 1024, 100),
       Entry("free_requested", 1024, 100), Entry("free_completed", 1024, 100),
       Entry("alloc", 1024, 7), Entry("segment_map", 9, 9),
       Entry("segment_unmap", 9, 9), Entry("segment_free", 9, 9),
       Entry("snapshot", 0, 0), Entry("user_defined", 0, 0)}));
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0), TraceEvent::Free(0, 0),
                          TraceEvent::Allocate(0, 0)));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(100, 7));
  EXPECT_EQ(trace.peak_live_bytes, 100U);
  EXPECT_EQ(trace.blocks_before, 0U);
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

TEST(PytorchSnapshotTest, OutOfMemoryIsASkippedFailure) {
  Json failure = Entry("oom", 0, 1 << 20);
  failure.erase("addr");
  failure["device_free"] = 5;
  const Trace trace = ReadSnapshot(Snapshot({failure, Entry("alloc", 1, 1)}));
  EXPECT_EQ(trace.failures_skipped, 1U);
  EXPECT_EQ(trace.events.size(), 1U);
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
  // Live at the end, yet the last that the entries say of it is a free.
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
  // The second is at 4096 + 512: an entry there is about it.
  EXPECT_EQ(ReadSnapshot(Snapshot({Entry("alloc", 4608, 1)},
                                  {Segment(4096, {first, second})}))
                .blocks_before,
            1U);
}

TEST(PytorchSnapshotTest, ListThatWasForgottenIsNoList) {
  // The same list as the value of a key that is not read, and as entries.
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
  // The same operations as an RMM log has.
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
    return 2 * trace.allocated_bytes.size() - trace.events.size();
  };
  EXPECT_EQ(live_at_end(cut), live_at_end(whole));
}

}  // namespace
}  // namespace strata
