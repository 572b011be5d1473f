// `strata replay` on the command line: rows, warnings and exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <ios>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandLineTest, ReplayPrintsOneJsonRowPerTraceAndStrategy) {
  const CommandResult result =
      RunStrata({"replay", small_.path(), small_.path(), "--format=json",
                 "--allocator_strategy=direct,auto_growth"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.size(), 4U);
  EXPECT_EQ(json[0]["strategy"], "direct");
  EXPECT_EQ(json[1]["strategy"], "auto_growth");
  EXPECT_EQ(json[2]["trace"], small_.path());
  EXPECT_EQ(json[3]["peak_live_bytes"], 6291456);
}

TEST_F(CommandLineTest, ReplayPrintsATableByDefault) {
  const CommandResult result = RunStrata({"replay", "--fit", small_.path()});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr(": 3 operations, peak live 6.0 MiB, "));
  EXPECT_THAT(result.out, HasSubstr("\nstrategy "));
  EXPECT_THAT(result.out, HasSubstr("\nauto (virtual_memory) "));
  EXPECT_THAT(result.out, HasSubstr("\nauto (virtual_memory) fits on "));
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 4);
  EXPECT_THAT(RunStrata({"replay", "--wide", small_.path()}).out,
              HasSubstr("create_memory 2"));
}

TEST_F(CommandLineTest, RunOutOfMemoryKeepsItsRowAndExitsWithOne) {
  const CommandResult result =
      RunStrata({"replay", small_.path(), "--strata_sim_memory=4MiB",
                 "--format=json", "--allocator_strategy=direct"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(nlohmann::json::parse(result.out)[0]["oom"], 3);
  EXPECT_THAT(result.err, HasSubstr(small_.path() + ":3: "));
  const CommandResult table =
      RunStrata({"replay", small_.path(), "--strata_sim_memory=4MiB",
                 "--allocator_strategy=direct"});
  EXPECT_EQ(table.code, 1);
  EXPECT_THAT(table.out,
              HasSubstr("direct runs out of memory (direct at line "
                        "3); no allocator can serve it, as 6.0 MiB are live"));
}

// The rules of a peer have no limit flag, so a peer does not bypass a limit.
TEST_F(CommandLineTest, NoPeerIsAWayOutOfALimit) {
  // auto_growth rounds 300 bytes up, so 3000 such blocks exceed 1 MiB.
  std::string rows = kHeader;
  for (int i = 1; i <= 3000; ++i) {
    rows += "1,0,allocate," + std::to_string(i) + ",300,0\n";
  }
  const TempFile file;
  file.Write(rows);
  const CommandResult result =
      RunStrata({"replay", file.path(), "--gpu_memory_limit_mb=1",
                 "--allocator_strategy=auto_growth"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              HasSubstr("within the limits of the flags, auto_growth runs out "
                        "of memory (auto_growth at line "));
  EXPECT_THAT(result.out, HasSubstr("; pool and direct run."));
  EXPECT_THAT(result.out, Not(HasSubstr("peer:")));
}

TEST_F(CommandLineTest, JsonIsAnArrayEvenWithoutRows) {
  const TempFile file;
  file.Write("");
  const CommandResult result =
      RunStrata({"replay", file.path(), "--format=json"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(nlohmann::json::parse(result.out), nlohmann::json::array());
}

TEST_F(CommandLineTest, ALimitBelowThePeakLiveIsNamed) {
  const CommandResult result =
      RunStrata({"replay", small_.path(), "--gpu_memory_limit_mb=5",
                 "--allocator_strategy=direct"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              HasSubstr("within the limits of the flags, direct runs out of "
                        "memory (direct at line 3); no allocator can serve it, "
                        "as 6.0 MiB are live at a time."));
}

TEST_F(CommandLineTest, UncheckedReplayWorks) {
  EXPECT_EQ(RunStrata({"replay", "--check=false", small_.path()}).code, 0);
}

TEST_F(CommandLineTest, WarnsOnceOfEachKind) {
  const CommandResult result = ReplayRows(
      "1,0,allocate failure,(nil),?,0\n1,0,allocate,1,5,0\n1,0,free,1,0,0\n"
      "1,0,allocate,1,5,0\n1,0,free,1,4,0\n1,0,free,0x9,4,0\n"
      "1,0,free,0x7,4,0\nWARN\n");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 4);
  EXPECT_THAT(result.err, HasSubstr(": 2 frees give another size"));
  EXPECT_THAT(result.err, HasSubstr(": 1 requests that ran out of memory"));
  EXPECT_THAT(
      result.err,
      HasSubstr(": 2 skipped: frees of memory that is not live (first: line "
                "7: free of 0x9, which is not live)\n"));
  EXPECT_THAT(result.err,
              HasSubstr(": 1 skipped: lines that are no rows of this log (line "
                        "9: the row has 1 columns, the header 6)\n"));
}

TEST_F(CommandLineTest, MuchThatIsSkippedMayMakeTheResultWrong) {
  const std::string row = "1,0,allocate,0x10,3145728,0\n1,0,free,0x10,0,0\n";
  std::string rows;
  for (int i = 0; i < 50; ++i) rows += row;
  EXPECT_EQ(ReplayRows(rows + "WARN\n").code, 0);
  const TempFile file;
  file.Write(std::string(kHeader) + "WARN\n" + rows + "WARN\n");
  const CommandResult table = RunStrata({"replay", file.path()});
  EXPECT_EQ(table.code, 3);
  EXPECT_THAT(table.out, HasSubstr("THE RESULT MAY BE WRONG"));
  EXPECT_THAT(table.out, HasSubstr("(foreign_row 2; the file has 102 rows)"));
  const auto json = nlohmann::json::parse(
      RunStrata({"replay", "--format=json", file.path()}).out)[0];
  EXPECT_EQ(json["skipped"], nlohmann::json({{"foreign_row", 2}}));
  EXPECT_EQ(json["may_be_wrong"], true);
  ExpectRefused(RunStrata({"replay", "--strict", file.path()}),
                file.path() + ":2: the row has 1 columns");
}

// An option of auto_growth makes it the default, which is named once.
TEST_F(CommandLineTest, StrategiesThatWouldRunAreNamedOnce) {
  const CommandResult result = RunStrata(
      {"replay", BundledTrace("resnet50_train"), "--gpu_memory_limit_mb=4600",
       "--allocator_strategy=bfc", "--auto_growth_chunk_rule=exact"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("; auto_growth and virtual_memory run."));
}

// Exit code 1 for a strategy that runs out of memory, 2 for an unreadable file.
TEST_F(CommandLineTest, ExitCodesHaveAnOrder) {
  const TempFile doubtful;
  doubtful.Write(std::string(kSmallTrace) + "WARN\n");
  const auto code = [&](std::vector<std::string> traces) {
    traces.insert(traces.begin(), {"replay", "--strata_sim_memory=4MiB",
                                   "--allocator_strategy=direct"});
    return RunStrata(traces).code;
  };
  EXPECT_EQ(code({small_.path()}), 1);
  EXPECT_EQ(code({small_.path(), doubtful.path()}), 3);
  EXPECT_EQ(code({"/nowhere", doubtful.path()}), 2);
}

TEST_F(CommandLineTest, NumbersOfAReplayAreChecked) {
  EXPECT_EQ(RunStrata({"replay", small_.path(), "--streams=1", "--work_ns=100",
                       "--strata_sim_progress=timed"})
                .code,
            0);
  for (const char* streams : {"--streams=0", "--streams="}) {
    ExpectRefused(RunStrata({"replay", small_.path(), streams}), "--streams");
  }
  ExpectRefused(RunStrata({"replay", small_.path(), "--work_ns=1us"}),
                "--work_ns");
}

TEST_F(CommandLineTest, PassesOfAReplay) {
  const CommandResult json = RunStrata(
      {"replay", small_.path(), "--format=json", "--passes=3", "--jitter=2.5%",
       "--allocator_strategy=auto_growth,peer:pytorch"});
  EXPECT_EQ(json.code, 0);
  for (const auto& row : nlohmann::json::parse(json.out)) {
    EXPECT_EQ(row["passes_done"], 3);
    EXPECT_EQ(row["jitter_percent"], 2.5);
    EXPECT_GT(row["first_pass"]["device_calls"]["mem_alloc"], 0);
    EXPECT_EQ(row["last_pass"]["device_calls"].size(), 0U);
  }
  EXPECT_THAT(RunStrata({"replay", small_.path(), "--passes=2"}).out,
              HasSubstr("longest us"));
}

TEST_F(CommandLineTest, WrongPassesAreRefused) {
  const auto refuse = [&](const std::vector<std::string>& flags,
                          const std::string& message) {
    std::vector<std::string> arguments = {"replay", small_.path()};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    ExpectRefused(RunStrata(arguments), message);
  };
  refuse({"--passes=0"}, "--passes: '0' is not a number of passes");
  refuse({"--passes=two"}, "--passes: 'two' is not a number of passes");
  refuse({"--passes=-1"}, "--passes: '-1'");
  refuse({"--jitter=5%"}, "--jitter needs --passes");
  refuse({"--passes=2", "--jitter=50.1%"}, "--jitter: '50.1%' is above 50 %");
  for (const char* jitter : {"--jitter=-5%", "--jitter=x", "--jitter=",
                             "--jitter=1.2.3", "--jitter=%", "--jitter=1e1"}) {
    refuse({"--passes=2", jitter}, "is not a percentage");
  }
}

TEST_F(CommandLineTest, MissingFileIsRefused) {
  ExpectRefused(RunStrata({"replay", "/nowhere/x.csv"}),
                "strata: /nowhere/x.csv: cannot be opened: No such file");
}

TEST_F(CommandLineTest, ReplayWithoutTraceIsRefused) {
  ExpectRefused(RunStrata({"replay"}), "no trace given");
}

TEST_F(CommandLineTest, RowOfAutoNamesTheStrategyToo) {
  const std::string strategies = "--allocator_strategy=auto,virtual_memory";
  const CommandResult table = RunStrata({"replay", small_.path(), strategies});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("\nauto (virtual_memory) "));
  EXPECT_THAT(table.out, HasSubstr("\nvirtual_memory "));
  const auto rows = nlohmann::json::parse(
      RunStrata({"replay", small_.path(), strategies, "--format=json"}).out);
  EXPECT_EQ(rows[0]["strategy"], "virtual_memory");
  EXPECT_EQ(rows[0]["chosen_by_auto"], true);
  EXPECT_EQ(rows[1]["strategy"], "virtual_memory");
  EXPECT_EQ(rows[1]["chosen_by_auto"], false);
  EXPECT_EQ(rows[0]["peak_reserved_bytes"], rows[1]["peak_reserved_bytes"]);
}

TEST_F(CommandLineTest, CutOffGzipLosesARow) {
  const auto cut = [](const TempFile& whole, const std::string& path) {
    const std::string bytes = whole.Read();
    std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 9);
  };
  const TempFile file(".csv.gz");
  const TempFile whole(".gz");
  whole.WriteGzip(kSmallTrace);
  cut(whole, file.path());
  // More than 1 % of the rows.
  const CommandResult few = RunStrata({"replay", file.path()});
  EXPECT_EQ(few.code, 3);
  EXPECT_THAT(few.err,
              HasSubstr(": 1 skipped: the last row, which is cut off (the "
                        "gzip data is cut off here)"));
  ExpectRefused(RunStrata({"replay", "--strict", file.path()}),
                "gzip data is cut off");
  std::string rows = kHeader;
  for (int i = 0; i < 100; ++i) {
    rows += "1,0,allocate,0x10,3145728,0\n1,0,free,0x10,0,0\n";
  }
  whole.WriteGzip(rows);
  cut(whole, file.path());
  EXPECT_EQ(RunStrata({"replay", file.path()}).code, 0);
}

TEST_F(CommandLineTest, WrongHeaderIsRefused) {
  const TempFile file;
  file.Write("Thread,Time,Action,Pointer,Bytes,Stream\n");
  ExpectRefused(RunStrata({"replay", file.path()}),
                file.path() + ":1: the header lacks the column Size");
}

TEST_F(CommandLineTest, BadRowsAreRefused) {
  ExpectRefused(ReplayRows("1,0,allocate,1,-5,0\n"),
                ":2: the size is negative");
  ExpectRefused(ReplayRows("1,0,allocate,1,99999999999999999999,0\n"),
                ":2: the size exceeds 64 bits");
  ExpectRefused(ReplayRows("1,0,free,1,5,0\n"), ":2: free of 0x1");
  ExpectRefused(ReplayRows(""), "no allocate or free");
}

// A missing column is no error, so it is not the reason.
TEST_F(CommandLineTest, HeaderAloneIsRefusedForItsMissingRows) {
  const TempFile file;
  file.Write("Action,Pointer,Size\n");
  ExpectRefused(RunStrata({"replay", file.path()}),
                file.path() + ": no allocate or free");
}

TEST_F(CommandLineTest, AFolderIsRefusedWithoutALine) {
  ExpectRefused(RunStrata({"replay", "/"}), "/: is a folder");
}

TEST_F(CommandLineTest, ABadTraceDoesNotTakeTheResultsOfOthers) {
  const TempFile bad;
  bad.Write(std::string(kHeader) + "1,0,free,1,5,0\n");
  for (const std::string& path : {bad.path(), std::string("/nowhere")}) {
    const CommandResult json = RunStrata(
        {"replay", "--format=json", path, small_.path(), small_.path()});
    EXPECT_EQ(json.code, 2);
    EXPECT_EQ(nlohmann::json::parse(json.out).size(), 2U);
    EXPECT_THAT(json.err, StartsWith("strata: " + path + ":"));
    EXPECT_EQ(std::count(json.err.begin(), json.err.end(), '\n'), 1);
    const CommandResult table =
        RunStrata({"replay", small_.path(), path, small_.path()});
    EXPECT_EQ(table.code, 2);
    EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 9);
  }
}

// `direct` calls the device a second time, and that call fails.
TEST_F(CommandLineTest, AStrategyThatFailsDoesNotTakeTheRowsOfOthers) {
  const CommandResult result =
      RunStrata({"replay", small_.path(), "--format=json",
                 "--allocator_strategy=direct,auto_growth",
                 "--strata_sim_fault=mem_alloc:nth=2,status=IllegalAddress"});
  EXPECT_EQ(result.code, 2);
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["strategy"], "auto_growth");
  EXPECT_THAT(result.err, StartsWith("strata: " + small_.path() + ":3: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST_F(CommandLineTest, RowsAreNamedAfterWhatAutoIs) {
  const auto strategy_of = [&](const std::string& option) {
    const CommandResult result =
        RunStrata({"replay", small_.path(), "--format=json",
                   "--allocator_strategy=auto", option});
    const auto json = nlohmann::json::parse(result.out);
    return json[0]["strategy"].get<std::string>();
  };
  EXPECT_EQ(strategy_of("--strata_ipc=posix"), "virtual_memory");
  EXPECT_EQ(strategy_of("--strata_ipc=legacy"), "auto_growth");
}

TEST_F(CommandLineTest, ARowIsNamedAfterWhatTheEnvironmentHasRun) {
  const auto replay = [&](const char* strategies) {
    return RunStrata({"replay", small_.path(), "--strata_tf_environment",
                      std::string("--allocator_strategy=") + strategies},
                     {"TF_GPU_ALLOCATOR=cuda_malloc_async"});
  };
  EXPECT_THAT(replay("bfc").out, HasSubstr("cuda_malloc_async"));
  const CommandResult several = replay("bfc,direct");
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.err, HasSubstr("--allocator_strategy=bfc"));
}

// Once, although the trace is replayed several times to measure it.
TEST_F(CommandLineTest, AMessageIsSaidOnce) {
  const CommandResult result =
      RunStrata({"replay", small_.path(), "--strata_guard",
                 "--enable_gpu_memory_usage_log"});
  EXPECT_EQ(result.code, 0);
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = 0;
         (at = result.err.find(text, at)) != std::string::npos; ++at) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("keeps no data"), 1U) << result.err;
  EXPECT_GT(count("peak reserved"), 0U) << result.err;
}

TEST_F(CommandLineTest, MemoryOfOtherProcessesIsNotTheStrategys) {
  const auto peak = [&](const std::string& steps) {
    const CommandResult result =
        RunStrata({"replay", small_.path(), "--format=json",
                   "--strata_sim_capacity_steps=" + steps});
    return nlohmann::json::parse(result.out).at(0).at("peak_reserved_bytes");
  };
  EXPECT_EQ(peak("mem_alloc:nth=1,take=10GiB"), peak(""));
}

TEST_F(CommandLineTest, ManyStreamsAreSaid) {
  std::string rows;
  for (int i = 1; i <= 501; ++i) {
    rows += "1,0,allocate," + std::to_string(16 * i) + ",1024," +
            std::to_string(i) + "\n";
  }
  const TempFile trace;
  trace.Write(std::string(kHeader) + rows);
  const auto replay = [&](const std::string& streams) {
    return RunStrata({"replay", trace.path(), "--check=false",
                      "--allocator_strategy=direct", streams});
  };
  EXPECT_THAT(replay("--streams=501").err, HasSubstr("501 streams, each"));
  EXPECT_THAT(replay("--streams=4").err, IsEmpty());
}

TEST_F(CommandLineTest, FreesInAnotherStreamAreSaid) {
  const CommandResult result = ReplayRows(
      "1,0,allocate,0x10,1024,0x2\n"
      "1,0,free,0x10,1024,0x3\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("1 frees give another stream"));
}

}  // namespace
}  // namespace strata::tools
