// `strata replay` on snapshots and Umpire logs, on the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "strata/tests/tools/command.h"
#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tests/tools/readers/snapshot/snapshot_files.h"
#include "strata/tests/tools/temp_file.h"

namespace strata::tools {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::ptrdiff_t Lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

class SnapshotCommandTest : public ::testing::Test {
 protected:
  // The rows of a replay, without the fields that differ between runs or files.
  nlohmann::json RowsOf(const std::string& name) const {
    const CommandResult result =
        RunStrata({"replay", files_.Path(name), "--format=json", "--fit",
                   "--strata_sim_memory=256MiB",
                   "--allocator_strategy=auto_growth,direct"});
    EXPECT_EQ(result.code, 0) << result.err;
    nlohmann::json rows = nlohmann::json::array();
    for (nlohmann::json row : nlohmann::json::parse(result.out)) {
      if (row["strategy"] == "recorded") continue;
      row.erase("trace");
      row.erase("ns_per_op");
      row.erase("recorded_device_bytes");
      rows.push_back(row);
    }
    EXPECT_EQ(rows.size(), 2U);
    return rows;
  }

  const SnapshotFiles files_{300};
};

TEST_F(SnapshotCommandTest, RowsAreThoseOfTheSameEventsInAnRmmLog) {
  EXPECT_EQ(RowsOf("whole.p4.pickle"), RowsOf("whole.csv"));
}

TEST_F(SnapshotCommandTest, RowsOfAWrappedRingAreThoseOfItsRmmLog) {
  EXPECT_EQ(RowsOf("cut.p2.pickle"), RowsOf("cut.csv"));
}

TEST_F(SnapshotCommandTest, RowsOfUmpireAreThoseOfItsRmmLog) {
  const nlohmann::json expected = RowsOf("umpire.csv");
  EXPECT_EQ(RowsOf("umpire.old.log"), expected);
  EXPECT_EQ(RowsOf("umpire.new.log"), expected);
}

TEST_F(SnapshotCommandTest, CompressedSnapshotIsReadToo) {
  const TempFile file(".pickle.gz");
  file.WriteGzip(files_.Read("whole.p5.pickle"));
  EXPECT_EQ(RunStrata({"replay", file.path()}).code, 0);
}

TEST_F(SnapshotCommandTest, WrappedRingIsWarnedOf) {
  const CommandResult result =
      RunStrata({"replay", "--check=false", files_.Path("cut.p4.pickle")});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(Lines(result.err), 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("1 other devices have entries"));
  EXPECT_THAT(result.err, HasSubstr("blocks are allocated first"));
  EXPECT_THAT(result.err, HasSubstr("the ring of entries wrapped"));
}

TEST_F(SnapshotCommandTest, TraceDeviceChoosesTheDevice) {
  const std::string path = files_.Path("whole.p4.pickle");
  const auto operations = [&](const std::string& device) {
    const CommandResult result = RunStrata(
        {"replay", path, "--format=json", "--trace_device=" + device});
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out)[0]["operations"];
  };
  // Including the request that ran out of memory.
  EXPECT_EQ(operations("0"), 301);
  EXPECT_EQ(operations("2"), 31);
}

TEST_F(SnapshotCommandTest, WrongTraceDeviceIsRefused) {
  const auto error_of = [&](const std::string& name,
                            const std::string& device) {
    const CommandResult result =
        RunStrata({"replay", files_.Path(name), "--trace_device=" + device});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(error_of("whole.p4.pickle", "1"),
              HasSubstr("no entries of device 1; those with entries: 0, 2"));
  EXPECT_THAT(error_of("whole.p4.pickle", "-1"),
              HasSubstr("--trace_device: '-1'"));
  EXPECT_THAT(error_of("whole.csv", "0"), HasSubstr("no snapshot"));
}

TEST_F(SnapshotCommandTest, OutOfMemoryNamesTheEntry) {
  const std::string path = files_.Path("whole.p4.pickle");
  const CommandResult result =
      RunStrata({"replay", path, "--strata_sim_memory=4MiB", "--format=json"});
  EXPECT_EQ(result.code, 1);
  const auto row = nlohmann::json::parse(result.out)[1];
  EXPECT_THAT(result.err,
              HasSubstr(path + ": entry " + row["oom"].dump() + ": "));
  EXPECT_THAT(RunStrata({"replay", path, "--strata_sim_memory=4MiB"}).out,
              HasSubstr("  out of memory\n"));
}

// Four segments of 20 MiB, each with a live block of 6 MiB between holes. The
// program requests 14 MiB, and the device has 10 MiB left.
std::string OutOfMemorySnapshot() {
  constexpr std::uint64_t kMiB = 1 << 20;
  using Json = nlohmann::json;
  std::vector<Json> entries;
  std::vector<Json> segments;
  const auto add = [&](const char* action, std::uint64_t address,
                       std::uint64_t bytes) {
    entries.push_back({{"action", action},
                       {"addr", address * kMiB},
                       {"size", bytes * kMiB},
                       {"stream", 0}});
  };
  for (std::uint64_t address = 64; address <= 256; address += 64) {
    add("segment_alloc", address, 20);
    for (const std::uint64_t offset : {0U, 6U, 12U}) {
      add("alloc", address + offset, 6);
    }
    segments.push_back({{"device", 0},
                        {"address", address * kMiB},
                        {"total_size", 20 * kMiB},
                        {"stream", 0},
                        {"blocks", Json::array()}});
  }
  for (std::uint64_t address = 64; address <= 256; address += 64) {
    for (const std::uint64_t offset : {0U, 6U}) {
      add("free_requested", address + offset, 6);
      add("free_completed", address + offset, 6);
    }
  }
  entries.push_back({{"action", "oom"},
                     {"device_free", 10 * kMiB},
                     {"size", 14 * kMiB},
                     {"stream", 0}});
  return PickleOf({{"segments", segments},
                   {"device_traces", std::vector<std::vector<Json>>{entries}}});
}

TEST(OutOfMemoryCommandTest, SaysWhoServesTheRequestOnTheRecordedDevice) {
  const TempFile file(".pickle");
  file.Write(OutOfMemorySnapshot());
  const auto replay = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"replay", file.path()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunStrata(arguments);
  };
  const std::string both = "--allocator_strategy=peer:pytorch,direct";
  const CommandResult table = replay({both});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("device of 90.0 MiB as recorded\n"));
  EXPECT_THAT(
      table.out,
      EndsWith("The recorded program ran out of memory at entry 33 with a "
               "request of 14.0 MiB; on its device of 90.0 MiB, direct serves "
               "it, and peer:pytorch does not.\n"));
  const auto rows = nlohmann::json::parse(replay({both, "--format=json"}).out);
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& row : rows) {
    EXPECT_EQ(row["recorded_device_bytes"], 90 << 20);
    EXPECT_EQ(row["device_bytes"], 90 << 20);
    EXPECT_EQ(row["recorded_failures"], 1);
  }
  EXPECT_EQ(rows[0]["strategy"], "recorded");
  EXPECT_EQ(rows[0]["peak_reserved_bytes"], 80 << 20);
  EXPECT_EQ(rows[1]["recorded_failures_served"], 0);
  EXPECT_EQ(rows[2]["recorded_failures_served"], 1);
  // Other strategies are tried if no requested one serves it.
  EXPECT_THAT(replay({"--allocator_strategy=peer:pytorch"}).out,
              AllOf(HasSubstr("peer:pytorch does not serve it; "),
                    HasSubstr(" do.\n")));
  EXPECT_THAT(replay({both, "--strata_sim_memory=1GiB"}).out,
              HasSubstr("; on a device of 1.0 GiB, peer:pytorch and direct "
                        "serve it.\n"));
}

// --- Malformed snapshots ---------------------------------------------------

constexpr const char* kMalformed[] = {"truncated",
                                      "truncated_before_stop",
                                      "header_only",
                                      "protocol_alone",
                                      "protocol_6",
                                      "protocol_0_inside",
                                      "unknown_opcode",
                                      "reduce_os_system",
                                      "reduce_os_system_protocol_2",
                                      "bare_reduce",
                                      "build",
                                      "persistent_id",
                                      "extension",
                                      "set",
                                      "list_in_itself",
                                      "dict_in_itself",
                                      "cycle_of_two",
                                      "memo_not_set",
                                      "memo_index_huge",
                                      "empty_stack",
                                      "values_left",
                                      "no_mark",
                                      "append_to_dict",
                                      "key_without_value",
                                      "key_is_a_list",
                                      "long_of_negative_length",
                                      "text_longer_than_the_file",
                                      "text_of_exabytes",
                                      "data_after_stop",
                                      "a_list",
                                      "no_traces",
                                      "no_segments",
                                      "traces_are_a_text",
                                      "no_entries",
                                      "entry_is_an_int",
                                      "no_action",
                                      "unknown_action",
                                      "size_negative",
                                      "size_of_80_bits",
                                      "size_is_a_float",
                                      "no_size",
                                      "address_negative",
                                      "stream_is_a_text",
                                      "allocated_twice",
                                      "freed_twice",
                                      "sizes_overflow",
                                      "bytes_at_null",
                                      "segment_is_a_list",
                                      "segment_without_device",
                                      "segments_at_one_address",
                                      "block_of_unknown_state",
                                      "block_of_negative_size",
                                      "block_beyond_64_bits"};

class MalformedSnapshotTest : public ::testing::TestWithParam<const char*> {
 protected:
  const SnapshotFiles files_{1};
};

TEST_P(MalformedSnapshotTest, StrictReadingRefusesItInOneLine) {
  const std::string name = std::string("bad/") + GetParam();
  const std::string path = files_.Path(name + ".pickle");
  const CommandResult result = RunStrata({"replay", "--strict", path});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("strata: " + path + ": "));
  EXPECT_THAT(result.err, EndsWith(files_.Read(name + ".error")));
  EXPECT_EQ(Lines(result.err), 1) << result.err;
}

// Each file has at most one good entry, so its result may be wrong.
TEST_P(MalformedSnapshotTest, IsReadWithAWarningOrRefused) {
  const std::string name = std::string("bad/") + GetParam();
  const CommandResult result =
      RunStrata({"replay", files_.Path(name + ".pickle")});
  if (result.code == 2) {
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_EQ(Lines(result.err), 1) << result.err;
  } else {
    EXPECT_THAT(result.code, ::testing::AnyOf(0, 3));
    EXPECT_THAT(result.err, HasSubstr("strata: warning: "));
    EXPECT_EQ(result.code == 3,
              result.out.find("MAY BE WRONG") != result.out.npos);
  }
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("executed")));
}

INSTANTIATE_TEST_SUITE_P(Python, MalformedSnapshotTest,
                         ::testing::ValuesIn(kMalformed),
                         [](const auto& name) { return name.param; });

TEST(MalformedSnapshotsTest, EachThatIsWrittenHasItsTest) {
  const SnapshotFiles files(1);
  std::set<std::string> written;
  for (const auto& file :
       std::filesystem::directory_iterator(files.folder() / "bad")) {
    if (file.path().extension() == ".pickle") {
      written.insert(file.path().stem().string());
    }
  }
  EXPECT_EQ(written, std::set<std::string>(std::begin(kMalformed),
                                           std::end(kMalformed)));
}

}  // namespace
}  // namespace strata::tools
