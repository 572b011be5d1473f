#include "strata/tools/readers/umpire_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "strata/tests/tools/readers/snapshot/snapshot_files.h"
#include "strata/tools/readers/rmm_log.h"

namespace strata::tools {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::StartsWith;

Trace ReadUmpire(const std::string& content) {
  InputBuffer input("test.log", content);
  return ReadUmpireLog(input);
}

// The error of a strict reading, without the path.
std::string UmpireError(const std::string& content) {
  try {
    InputBuffer input("test.log", content);
    ReadUmpireLog(input, /*strict=*/true);
  } catch (const TraceError& error) {
    const std::string what = error.what();
    EXPECT_THAT(what, StartsWith("test.log:"));
    return what.substr(9);
  }
  return "";
}

std::string Line(const Json& json) { return json.dump() + "\n"; }

// --- Format up to version 6 --------------------------------------------------

std::string OldResource(const std::string& name, const std::string& reference) {
  return Line({{"event", "makeMemoryResource"},
               {"payload", {{"name", name}}},
               {"result", reference}});
}

std::string OldAllocator(const std::string& name, const std::string& reference,
                         const Json& arguments) {
  Json json = {{"event", "makeAllocator"},
               {"payload", {{"allocator_name", name}, {"args", arguments}}}};
  const std::string call = Line(json);
  json["result"] = {{"allocator_ref", reference}};
  return call + Line(json);
}

Json OldCall(const std::string& reference, const Json& size) {
  return {{"event", "allocate"},
          {"payload", {{"allocator_ref", reference}, {"size", size}}}};
}

std::string OldAllocate(const std::string& reference, const Json& size,
                        const Json& pointer) {
  Json json = OldCall(reference, size);
  const std::string call = Line(json);
  json["result"] = {{"memory_ptr", pointer}};
  return call + Line(json);
}

std::string OldFree(const std::string& reference, const Json& pointer) {
  return Line(
      {{"event", "deallocate"},
       {"payload", {{"allocator_ref", reference}, {"memory_ptr", pointer}}}});
}

// --- Format of later versions ------------------------------------------------

std::string NewAllocate(const std::string& name, const Json& size,
                        const Json& pointer) {
  return Line(
      {{"category", "operation"},
       {"name", name},
       {"numeric_args", {{"size", size}}},
       {"string_args", {{"allocator_ref", "0x1"}, {"pointer", pointer}}}});
}

std::string NewFree(const Json& pointer) {
  return Line(
      {{"category", "operation"},
       {"name", "deallocate"},
       {"string_args", {{"allocator_ref", "0x1"}, {"pointer", pointer}}}});
}

TEST(UmpireLogTest, ReadsTheOldForm) {
  const Trace trace =
      ReadUmpire("# comment\n\n" + OldAllocate("0x1", 100, "0x10") +
                 OldAllocate("0x1", 50, "0x20") + OldFree("0x1", "0x10"));
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0),
                          TraceEvent::Allocate(1, 0), TraceEvent::Free(0, 0)));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(100, 50));
  EXPECT_EQ(trace.LineOf(0), 4U);
  EXPECT_EQ(trace.failures_skipped, 0U);
  EXPECT_EQ(trace.frees_of_other_size, 0U);
}

TEST(UmpireLogTest, ReadsTheNewForm) {
  const Trace trace =
      ReadUmpire(NewAllocate("allocate", 100, "0x10") +
                 NewAllocate("named_allocate", 50, "0x20") + NewFree("0x10"));
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent::Allocate(0, 0),
                          TraceEvent::Allocate(1, 0), TraceEvent::Free(0, 0)));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(100, 50));
}

TEST(UmpireLogTest, OtherEventsArePassedOver) {
  const Trace trace = ReadUmpire(
      Line({{"event", "version"}, {"payload", {{"major", 0}}}}) +
      Line({{"category", "metadata"}, {"name", "allocate"}}) +
      Line({{"category", "operation"}, {"name", "coalesce"}}) +
      Line({{"event", "copy"}}) + NewAllocate("allocate", 1, "0x10"));
  EXPECT_EQ(trace.events.size(), 1U);
}

TEST(UmpireLogTest, CallWithoutResultIsAFailure) {
  const Trace trace =
      ReadUmpire(OldAllocate("0x1", 1, "0x10") + Line(OldCall("0x1", 1 << 30)));
  EXPECT_EQ(trace.failures_skipped, 1U);
  EXPECT_EQ(trace.events.size(), 1U);
}

TEST(UmpireLogTest, MemoryOfTheDeviceIsKeptWhereverItsAllocatorStands) {
  const Trace trace = ReadUmpire(
      OldResource("HOST", "0xa0") + OldResource("DEVICE", "0xa1") +
      OldAllocator("pool", "0xb0", {"DEVICE", 64}) +
      OldAllocator("limited", "0xb1", {"pool", 1 << 20}) +
      OldAllocate("0xa0", 1, "0x10") + OldAllocate("0xa1", 2, "0x20") +
      OldAllocate("0xb0", 3, "0x30") + OldAllocate("0xb1", 4, "0x10"));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(2, 3, 4));
  EXPECT_EQ(trace.other_place_rows, 1U);
}

TEST(UmpireLogTest, ReferenceThatIsUsedAgainIsNotItsOwnParent) {
  const auto make = [](const char* name, const char* reference,
                       const char* allocator, const char* parent) {
    return Line(
        {{"category", "operation"},
         {"name", name},
         {"string_args", {{"allocator_ref", reference}, {"arg0", parent}}},
         {"tags", {{"allocator_name", allocator}}}});
  };
  const Trace trace =
      ReadUmpire(make("make_memory_resource", "0xa0", "HOST", "") +
                 make("make_memory_resource", "0xa1", "DEVICE", "") +
                 make("make_allocator", "0x1", "first", "HOST") +
                 NewAllocate("allocate", 1, "0x10") +
                 make("make_allocator", "0x1", "second", "DEVICE") +
                 NewAllocate("allocate", 2, "0x10"));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(2));
}

TEST(UmpireLogTest, FirstResourceIsKeptIfNoDeviceIsUsed) {
  const Trace trace = ReadUmpire(
      OldResource("HOST", "0xa0") + OldResource("UM", "0xa1") +
      OldResource("DEVICE", "0xa2") + OldAllocate("0xa1", 2, "0x20") +
      OldAllocate("0xa0", 1, "0x10"));
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(2));
  EXPECT_EQ(trace.other_place_rows, 1U);
}

TEST(UmpireLogTest, BlocksWithoutBytesMayShareAnAddress) {
  const Trace trace = ReadUmpire(
      OldAllocate("0x1", 0, "0x10") + OldAllocate("0x1", 100, "0x10") +
      OldFree("0x1", "0x10") + OldFree("0x1", "0x10"));
  EXPECT_EQ(trace.events.size(), 4U);
  EXPECT_THAT(trace.allocated_bytes, ElementsAre(0, 100));
  // The block with bytes is freed first.
  EXPECT_EQ(trace.events[2], TraceEvent::Free(1, 0));
}

// The log contains the inner calls of a device reallocation, but not those of a
// host reallocation.
TEST(UmpireLogTest, ReallocateOfHostMemoryIsCounted) {
  const std::string old_call = Line({{"event", "reallocate"}});
  const std::string old_result =
      Line({{"event", "reallocate"}, {"result", {{"memory_ptr", "0x20"}}}});
  const std::string host = OldResource("HOST", "0xa0");
  EXPECT_EQ(ReadUmpire(host + OldAllocate("0xa0", 1, "0x10") + old_call +
                       old_result + OldFree("0xa0", "0x10"))
                .reallocations_skipped,
            1U);
  EXPECT_EQ(
      ReadUmpire(NewAllocate("allocate", 1, "0x10") +
                 Line({{"category", "operation"}, {"name", "reallocate"}}))
          .reallocations_skipped,
      1U);
  EXPECT_EQ(ReadUmpire(OldResource("DEVICE", "0xa1") +
                       OldAllocate("0xa1", 1, "0x10") + old_call + old_result)
                .reallocations_skipped,
            0U);
  EXPECT_EQ(UmpireError(host + OldAllocate("0xa0", 1, "0x10") + old_call +
                        old_result + OldFree("0xa0", "0x20")),
            "6: free of what no allocate made: a reallocate may have, and "
            "those of host memory are not read");
}

TEST(UmpireLogTest, LinesThatCannotBeUsedAreSkipped) {
  const std::string good = OldAllocate("0x1", 1, "0x10");
  const auto skipped = [&](const std::string& line) {
    const Trace trace = ReadUmpire(good + line + "\n" + OldFree("0x1", "0x10"));
    EXPECT_EQ(trace.events.size(), 2U) << line;
    EXPECT_EQ(trace.skipped.skipped_rows(), 1U) << line;
    EXPECT_EQ(trace.skipped.First()->line, 3U) << line;
    return trace.skipped.Summary();
  };
  EXPECT_EQ(skipped("{\"event\":"), "foreign_row 1");
  EXPECT_EQ(skipped("WARN spill"), "foreign_row 1");
  EXPECT_EQ(skipped("{}"), "foreign_row 1");
  EXPECT_EQ(skipped("{\"event\":7}"), "bad_value 1");
  EXPECT_EQ(skipped("{\"event\":\"allocate\"}"), "bad_value 1");
  EXPECT_EQ(skipped("{\"event\":\"deallocate\",\"payload\":{"
                    "\"allocator_ref\":\"0x1\",\"memory_ptr\":\"0x20\"}}"),
            "unmatched_free 1");
}

TEST(UmpireLogTest, CutLastLineIsSkipped) {
  const Trace trace =
      ReadUmpire(OldAllocate("0x1", 1, "0x10") + "{\"event\": \"deal");
  EXPECT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.skipped.Summary(), "cut_row 1");
}

TEST(UmpireLogTest, OfSeveralProcessesTheFirstIsRead) {
  const auto with_uid = [](const std::string& line, int uid) {
    Json json = Json::parse(line);
    json["uid"] = uid;
    return Line(json);
  };
  const std::string allocate = NewAllocate("allocate", 5, "0x10");
  const std::string free = NewFree("0x10");
  const Trace trace = ReadUmpire(with_uid(allocate, 7) + with_uid(allocate, 8) +
                                 with_uid(free, 7) + with_uid(free, 8));
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.LineOf(1), 3U);
  EXPECT_EQ(trace.skipped.Summary(), "other_process 2");
  EXPECT_EQ(trace.skipped.First()->reason, "uid 8, the first is 7");
}

TEST(UmpireLogTest, BadLinesAreRefused) {
  const std::string good = OldAllocate("0x1", 1, "0x10");
  EXPECT_EQ(
      UmpireError(good + "{\"event\":"),
      "3: no JSON object, as the lines of Umpire's logs are: '{\"event\":'");
  EXPECT_EQ(UmpireError("[]\n"),
            "1: no JSON object, as the lines of Umpire's logs are: '[]'");
  EXPECT_EQ(UmpireError("{}\n"),
            "1: neither an event nor a category and a name");
  EXPECT_EQ(UmpireError("{\"event\":7}\n"), "1: event is not a text");
  EXPECT_EQ(UmpireError("{\"event\":\"allocate\"}\n"), "1: no payload");
  EXPECT_EQ(UmpireError("{\"event\":\"allocate\",\"payload\":1}\n"),
            "1: payload is not an object");
  EXPECT_EQ(UmpireError(OldAllocate("0x1", -5, "0x10")), "1: size is negative");
  EXPECT_EQ(UmpireError(OldAllocate("0x1", 1.5, "0x10")),
            "1: size is not an integer of 64 bits");
  EXPECT_EQ(UmpireError(OldAllocate("0x1", 1, "0xzz")),
            "2: memory_ptr is no pointer: '0xzz'");
  EXPECT_EQ(UmpireError(good + OldFree("0x1", "0x20")),
            "3: free of 0x20, which is not live");
  EXPECT_EQ(UmpireError(good + good), "4: allocate of 0x10, which is live");
  EXPECT_EQ(UmpireError("# nothing\n"), " no allocate or free");
}

TEST(UmpireLogTest, BothFormsSayWhatTheRmmLogSays) {
  const SnapshotFiles files;
  const Trace expected = ReadRmmLog(files.Path("umpire.csv"));
  for (const char* name : {"umpire.old.log", "umpire.new.log"}) {
    InputBuffer input(files.Path(name));
    const Trace trace = ReadUmpireLog(input);
    EXPECT_EQ(trace.events, expected.events) << name;
    EXPECT_EQ(trace.allocated_bytes, expected.allocated_bytes) << name;
    EXPECT_EQ(trace.other_place_rows, 2U) << name;
    EXPECT_EQ(trace.failures_skipped, 0U) << name;
  }
}

}  // namespace
}  // namespace strata::tools
