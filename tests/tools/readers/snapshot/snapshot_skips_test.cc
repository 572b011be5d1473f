// Parts of a snapshot that the reader skips and counts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using snapshot_json::Json;
using snapshot_json::ReadSnapshot;
using snapshot_json::Segment;
using snapshot_json::Snapshot;

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

}  // namespace
}  // namespace strata::tools
