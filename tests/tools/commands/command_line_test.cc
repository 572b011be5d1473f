// The `strata` program on the command line: exit codes and output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <ios>
#include <nlohmann/json.hpp>
#include <string>

#include "strata/platform/host/processor.h"
#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/strategy/registry.h"
#include "strata/tests/tools/command_line_fixture.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandLineTest, HelpIsOnStdout) {
  for (const char* help : {"help", "--help", "-h"}) {
    const CommandResult result = RunStrata({help});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("replay"));
    EXPECT_THAT(result.err, IsEmpty());
  }
  EXPECT_THAT(RunStrata({"help", "replay"}).out,
              StartsWith("usage: strata replay"));
  EXPECT_THAT(RunStrata({"replay", "--help"}).out,
              StartsWith("usage: strata replay"));
  EXPECT_THAT(RunStrata({"--version"}).out, StartsWith("strata 0."));
}

TEST_F(CommandLineTest, WithoutACommandPrintsUsageOnStderr) {
  const CommandResult result = RunStrata({});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("usage: strata"));
}

TEST_F(CommandLineTest, UnknownCommandIsNamed) {
  const CommandResult result = RunStrata({"replai"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("strata: unknown command 'replai'\n"));
  EXPECT_THAT(RunStrata({"help", "replai"}).err, HasSubstr("'replai'"));
}

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
  EXPECT_THAT(result.out, HasSubstr("\nauto_growth "));
  EXPECT_THAT(result.out, HasSubstr("\nauto_growth fits on "));
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 4);
  EXPECT_THAT(RunStrata({"replay", "--wide", small_.path()}).out,
              HasSubstr("mem_alloc 1"));
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
  const CommandResult result =
      RunStrata({"replay", small_.path(), "--gpu_memory_limit_mb=5",
                 "--allocator_strategy=direct"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              HasSubstr("within the limits of the flags, direct runs out of "
                        "memory (direct at line 3); no other strategy does."));
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

TEST_F(CommandLineTest, UnknownStrategyNamesTheKnownOnes) {
  const CommandResult result = RunStrata(
      {"replay", small_.path(), "--allocator_strategy=auto_growth,best"});
  ExpectRefused(result, "unknown strategy 'best'");
  for (const std::string& name : StrategyNames()) {
    EXPECT_THAT(result.err, HasSubstr(name));
  }
}

TEST_F(CommandLineTest, ListOfStrategiesIsForReplayOnly) {
  ExpectRefused(RunStrata({"info", "--allocator_strategy=auto_growth,direct"}),
                "unknown strategy 'auto_growth,direct'");
}

TEST_F(CommandLineTest, UnknownFlagIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--fitt"}),
                "unknown command line flag 'fitt'");
}

TEST_F(CommandLineTest, WrongValueOfAFlagIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_sim_devices=x"}),
                "strata_sim_devices");
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_sim_memory=8QB"}),
                "strata_sim_memory: '8QB'");
  ExpectRefused(RunStrata({"replay", small_.path(), "--format=xml"}),
                "--format: unknown value 'xml'");
}

TEST_F(CommandLineTest, DeviceWithoutMemoryIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_sim_memory=0"}),
                "strata_sim_memory: 0 bytes");
}

TEST_F(CommandLineTest, PlatformOtherThanSimIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_platform=cuda"}),
                "strata_platform: ");
}

TEST_F(CommandLineTest, EnvironmentGivesDefaultsThatFlagsOverride) {
  const std::vector<std::string> environment = {
      "FLAGS_allocator_strategy=direct", "FLAGS_strata_sim_memory=4MiB"};
  const CommandResult small =
      RunStrata({"replay", small_.path(), "--format=json"}, environment);
  EXPECT_EQ(small.code, 1);
  EXPECT_EQ(nlohmann::json::parse(small.out)[0]["strategy"], "direct");
  EXPECT_EQ(RunStrata({"replay", small_.path(), "--strata_sim_memory=1GiB"},
                      environment)
                .code,
            0);
}

TEST_F(CommandLineTest, WrongEnvironmentVariableIsNamed) {
  ExpectRefused(RunStrata({"replay", small_.path()},
                          {"FLAGS_auto_growth_chunk_size_in_mb=-1"}),
                "environment variable FLAGS_auto_growth_chunk_size_in_mb: "
                "'-1'");
  ExpectRefused(RunStrata({"info"}, {"FLAGS_strata_sim_memory=much"}),
                "environment variable FLAGS_strata_sim_memory: 'much'");
}

// Once, although the program reads its flags several times.
TEST_F(CommandLineTest, ARemovedFlagIsWarnedOfOnce) {
  constexpr const char* kFlag = "auto_growth_step_plan";
  const CommandResult plain = RunStrata({"info"});
  for (const CommandResult& result :
       {RunStrata({"info", std::string("--no") + kFlag}),
        RunStrata({"info", std::string("--") + kFlag + "=true"}),
        RunStrata({"info"}, {std::string("FLAGS_") + kFlag + "=0"})}) {
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.out, plain.out);
    const std::size_t warning = result.err.find(kFlag);
    ASSERT_NE(warning, std::string::npos);
    EXPECT_THAT(result.err, HasSubstr("has no effect any more"));
    EXPECT_EQ(result.err.find(kFlag, warning + 1), std::string::npos);
  }
}

TEST_F(CommandLineTest, ContradictingFlagsAreNamed) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--use_system_allocator",
                           "--allocator_strategy=auto_growth"}),
                "use_system_allocator contradicts allocator_strategy");
  EXPECT_THAT(
      RunStrata({"replay", small_.path(), "--use_system_allocator"}).out,
      HasSubstr("direct"));
}

TEST_F(CommandLineTest, InfoListsWhatTheBuildHas) {
  const CommandResult result =
      RunStrata({"info", "--format=json", "--strata_platform=sim",
                 "--strata_aligned=0", "--strata_sim_devices=2",
                 "--allocator_strategy=direct", "--strata_stream_lock=word"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["stream_lock"], "word");
  EXPECT_EQ(json["devices"].size(), 2U);
  EXPECT_EQ(json["devices"][0]["total_bytes"], std::uint64_t{80} << 30);
  EXPECT_EQ(json["devices"][0]["caps"]["simulated"], true);
  EXPECT_EQ(json["strategies"], nlohmann::json(StrategyNames()));
  EXPECT_THAT(json["flags"].dump(), HasSubstr("strata_sim_memory"));
  const std::string chain = json["chains"]["device:1"].dump();
  EXPECT_THAT(chain, StartsWith("[\"front\",\"stat\""));
  EXPECT_THAT(chain, HasSubstr("direct"));
  EXPECT_THAT(chain, Not(HasSubstr("aligned")));
}

TEST_F(CommandLineTest, InfoSaysWhichStrategyAutoIsAndWhy) {
  const CommandResult table = RunStrata({"info", "--strata_platform=sim"});
  EXPECT_THAT(table.out,
              HasSubstr("    --allocator_strategy=auto is virtual_memory: the "
                        "device is simulated\n"));
  const CommandResult result =
      RunStrata({"info", "--strata_platform=sim", "--format=json",
                 "--allocator_strategy=auto", "--strata_ipc=legacy"});
  const auto json = nlohmann::json::parse(result.out);
  const auto choice = json["devices"][0]["auto_strategy"];
  EXPECT_EQ(choice["name"], "auto_growth");
  EXPECT_THAT(choice["why"].get<std::string>(),
              StartsWith("--strata_ipc=legacy"));
  EXPECT_THAT(json["chains"]["device:0"].dump(), HasSubstr("auto_growth"));
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

TEST_F(CommandLineTest, InfoSaysWhichLockAStreamHas) {
  const auto lock_of = [](const std::string& option) {
    const CommandResult result =
        RunStrata({"info", "--strata_platform=sim", option});
    const std::string before = "lock of a stream: ";
    const std::size_t start = result.out.find(before);
    if (start == std::string::npos) return result.out + result.err;
    const std::size_t from = start + before.size();
    return result.out.substr(from, result.out.find('\n', from) - from);
  };
  const bool can_own = ProcessBarrier::Instance().is_available();
  const std::string biased = can_own ? "biased" : "word";
  EXPECT_EQ(lock_of("--strata_stream_lock=word"), "word");
  EXPECT_EQ(lock_of("--strata_stream_lock=biased"), biased);
  EXPECT_EQ(lock_of("--strata_stream_lock=auto"),
            IsFasterWithOwnedLocks() ? biased : "word");
}

TEST_F(CommandLineTest, InfoSaysWhichPlatformsCannotBeUsedHere) {
  const CommandResult result =
      RunStrata({"info", "--format=json", "--strata_platform=sim"});
  const auto json = nlohmann::json::parse(result.out);
  for (const auto& [name, problem] : json["platform_problems"].items()) {
    EXPECT_THAT(problem.get<std::string>(),
                StartsWith("strata_platform: " + name + ": "));
  }
  EXPECT_FALSE(json["platform_problems"].contains("sim"));
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

TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsAnError) {
  // Less than a buffer, and more than a buffer.
  for (const char* command : {"--version", "info"}) {
    const CommandResult result = RunStrataTo("/dev/full", {command});
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("strata: stdout: "));
  }
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

// A flag of the command, and an unknown flag.
TEST_F(CommandLineTest, AFlagFileIsReadAsTheCommandLineIs) {
  const TempFile flags(".flags");
  flags.Write("--format=json\n--allocator_strategy=bfc\n");
  const CommandResult result =
      RunStrata({"replay", "--flagfile=" + flags.path(), small_.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"strategy\": \"bfc\""));
  flags.Write("--alocator_strategy=bfc\n");
  ExpectRefused(
      RunStrata({"replay", "--flagfile=" + flags.path(), small_.path()}),
      "alocator_strategy");
}

TEST_F(CommandLineTest, BenchThatMeasuredNothingIsNoSuccess) {
  EXPECT_EQ(RunStrata({"bench", "--bench_allocators=glibc",
                       "--bench_workloads=random_1000000"})
                .code,
            2);
}

// A profile with the name of another malloc would mislead.
TEST_F(CommandLineTest, BenchRunsOnlyTheMallocThatIsThere) {
  ExpectRefused(RunStrata({"bench", "run", "jemalloc", "pair"}),
                "LD_PRELOAD=<path of libjemalloc");
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

TEST_F(CommandLineTest, InfoForPeopleExplainsEveryFlag) {
  const CommandResult result = RunStrata({"info", "--strata_platform=sim"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("--auto_growth_chunk_rule"));
  EXPECT_THAT(result.out, HasSubstr("front > stat"));
  EXPECT_THAT(result.out, HasSubstr("sim:0"));
  ExpectRefused(RunStrata({"info", "extra"}), "unexpected argument 'extra'");
}

}  // namespace
}  // namespace strata
