// The `strata` program as users meet it: exit codes, and what it prints where.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "strata/strategy/registry.h"
#include "strata/tests/tools/command.h"
#include "strata/tests/tools/temp_file.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSmallTrace[] =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,0,allocate,0x10,3145728,0\n"
    "1,0,allocate,0x20,3145728,0x2\n"
    "1,0,free,0x10,3145728,0\n";

// The run is refused: exit code 2, one line on stderr that holds `message`,
// nothing on stdout.
void ExpectRefused(const CommandResult& result, const std::string& message) {
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
      << result.err;
}

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() { small_.Write(kSmallTrace); }

  // Replays a log of these rows.
  static CommandResult ReplayRows(const std::string& rows) {
    const TempFile file;
    file.Write(std::string(kHeader).append(rows));
    return RunStrata({"replay", file.path()});
  }

  const TempFile small_;
};

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
  EXPECT_THAT(result.out, StartsWith("trace "));
  EXPECT_THAT(result.out, HasSubstr("auto_growth"));
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2);
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
  EXPECT_THAT(table.out, HasSubstr("at line 3"));
}

TEST_F(CommandLineTest, UncheckedReplayWorks) {
  EXPECT_EQ(RunStrata({"replay", "--check=false", small_.path()}).code, 0);
}

TEST_F(CommandLineTest, WarnsOnceOfWhatItSkips) {
  const CommandResult result = ReplayRows(
      "1,0,allocate failure,(nil),5,0\n1,0,allocate,1,5,0\n1,0,free,1,0,0\n"
      "1,0,allocate,1,5,0\n1,0,free,1,4,0\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2);
  EXPECT_THAT(result.err, HasSubstr(": 2 frees"));
  EXPECT_THAT(result.err, HasSubstr(": 1 allocate failures"));
}

TEST_F(CommandLineTest, NumbersOfAReplayAreChecked) {
  EXPECT_EQ(RunStrata({"replay", small_.path(), "--streams=1", "--work_ns=100",
                       "--strata_sim_progress=timed"})
                .code,
            0);
  ExpectRefused(RunStrata({"replay", small_.path(), "--streams=0"}),
                "--streams");
  ExpectRefused(RunStrata({"replay", small_.path(), "--work_ns=1us"}),
                "--work_ns");
}

TEST_F(CommandLineTest, MissingFileIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "/nowhere/x.csv"}),
                "strata: /nowhere/x.csv: cannot be opened: No such file");
}

TEST_F(CommandLineTest, ReplayWithoutTraceIsRefused) {
  ExpectRefused(RunStrata({"replay"}), "no trace given");
}

TEST_F(CommandLineTest, CutOffGzipIsRefused) {
  const TempFile whole(".gz");
  whole.WriteGzip(kSmallTrace);
  const std::string bytes = whole.Read();
  const TempFile file(".csv.gz");
  file.Write(bytes.substr(0, bytes.size() - 9));
  ExpectRefused(RunStrata({"replay", file.path()}), "gzip data is cut off");
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
  ExpectRefused(ReplayRows("1,0,allocate,1,5,0\n1,0,allocate,1,5,0\n"),
                ":3: allocate of 0x1, which is live");
  ExpectRefused(ReplayRows(""), "no allocate or free");
}

TEST_F(CommandLineTest, NothingIsPrintedIfTheSecondTraceIsBad) {
  const TempFile bad;
  bad.Write(std::string(kHeader) + "1,0,free,1,5,0\n");
  ExpectRefused(RunStrata({"replay", small_.path(), bad.path()}),
                bad.path() + ":2: ");
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

TEST_F(CommandLineTest, ContradictingFlagsAreNamed) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--use_system_allocator",
                           "--allocator_strategy=auto_growth"}),
                "use_system_allocator contradicts allocator_strategy");
  EXPECT_THAT(
      RunStrata({"replay", small_.path(), "--use_system_allocator"}).out,
      HasSubstr("direct"));
}

TEST_F(CommandLineTest, InfoListsWhatTheBuildHas) {
  const CommandResult result = RunStrata(
      {"info", "--format=json", "--strata_platform=sim", "--strata_aligned=0",
       "--strata_sim_devices=2", "--allocator_strategy=direct"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = nlohmann::json::parse(result.out);
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

// A flag of the environment stays set for it.
TEST_F(CommandLineTest, InfoWritesOverNoRecording) {
  for (const char* flag :
       {"strata_trace_file", "strata_trace_events_file",
        "strata_allocation_log_file", "strata_device_trace_file"}) {
    const TempFile recorded;
    recorded.Write("a recording");
    EXPECT_EQ(
        RunStrata({"info", std::string("--") + flag + "=" + recorded.path()})
            .code,
        0);
    EXPECT_EQ(recorded.Read(), "a recording") << flag;
  }
}

TEST_F(CommandLineTest, ReplayWritesOverNoTraceItReads) {
  const std::string before = small_.Read();
  for (const char* flag : {"strata_trace_file", "strata_device_trace_file"}) {
    const std::string option = std::string("--") + flag + "=" + small_.path();
    ExpectRefused(RunStrata({"replay", small_.path(), option}),
                  option + " is the trace");
  }
  EXPECT_EQ(small_.Read(), before);
}

TEST_F(CommandLineTest, TwoRecordingsNeedTwoFiles) {
  const TempFile file;
  ExpectRefused(
      RunStrata({"replay", small_.path(), "--strata_trace_file=" + file.path(),
                 "--strata_device_trace_file=" + file.path()}),
      "contradicts");
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

TEST_F(CommandLineTest, DeviceTraceHasTheCallsOfAReplay) {
  const TempFile trace;
  const std::string flag = "--strata_device_trace_file=" + trace.path();
  EXPECT_EQ(RunStrata({"replay", small_.path(), "--fit", flag}).code, 0);
  EXPECT_THAT(trace.Read(), HasSubstr(",0,mem_alloc,"));
  EXPECT_EQ(RunStrata({"check", trace.path()}).code, 0);
}

// Of the run that the table is about, not of those that take its time or look
// for the smallest device.
TEST_F(CommandLineTest, RecordingsAreOfOneRun) {
  for (const char* flag : {"strata_trace_file", "strata_allocation_log_file",
                           "strata_device_trace_file"}) {
    const TempFile once;
    const TempFile fitted;
    const std::string option = std::string("--") + flag + "=";
    RunStrata({"replay", small_.path(), option + once.path()});
    RunStrata({"replay", small_.path(), "--fit", option + fitted.path()});
    const auto lines = [](const TempFile& file) {
      const std::string text = file.Read();
      return std::count(text.begin(), text.end(), '\n');
    };
    EXPECT_GT(lines(once), 2) << flag;
    EXPECT_EQ(lines(once), lines(fitted)) << flag;
    ExpectRefused(RunStrata({"replay", small_.path(), small_.path(),
                             option + once.path()}),
                  std::string("--") + flag + "=");
  }
}

TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsAnError) {
  // Less than a buffer, and more.
  for (const char* command : {"--version", "info"}) {
    const CommandResult result = RunStrataTo("/dev/full", {command});
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("strata: stdout: "));
  }
}

// A flag of the command, and one that nobody has.
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

TEST_F(CommandLineTest, APeerRecordsOnlyItsDeviceCalls) {
  const TempFile record;
  const auto replay = [&](const char* flag) {
    return RunStrata({"replay", "--allocator_strategy=peer:pytorch",
                      std::string("--") + flag + "=" + record.path(),
                      small_.path()});
  };
  for (const char* flag : {"strata_trace_file", "strata_trace_events_file",
                           "strata_allocation_log_file"}) {
    ExpectRefused(replay(flag), "peer:pytorch has no layer that records");
  }
  EXPECT_EQ(replay("strata_device_trace_file").code, 0);
  EXPECT_THAT(record.Read(), HasSubstr("mem_alloc"));
}

TEST_F(CommandLineTest, ARecordingThatCannotBeWrittenIsAnError) {
  for (const char* flag :
       {"strata_trace_file", "strata_trace_events_file",
        "strata_allocation_log_file", "strata_device_trace_file"}) {
    const CommandResult result = RunStrata(
        {"replay", small_.path(), std::string("--") + flag + "=/dev/full"});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr("'/dev/full' is not complete")) << flag;
  }
}

TEST_F(CommandLineTest, BenchThatMeasuredNothingIsNoSuccess) {
  EXPECT_EQ(RunStrata({"bench", "--bench_allocators=glibc",
                       "--bench_workloads=random_1000000"})
                .code,
            2);
}

// A profile of another malloc than its name says would mislead.
TEST_F(CommandLineTest, BenchRunsOnlyTheMallocThatIsThere) {
  ExpectRefused(RunStrata({"bench", "run", "jemalloc", "pair"}),
                "LD_PRELOAD=<path of libjemalloc");
}

TEST_F(CommandLineTest, FreesInAnotherStreamAreSaid) {
  const CommandResult result = ReplayRows(
      "1,0,allocate,0x10,1024,0x2\n"
      "1,0,free,0x10,1024,0x3\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("1 frees give another stream"));
}

constexpr char kCalls[] =
    "Time_ns,Thread,Device,Call,Pointer,Bytes,Value,Stream,Status,Node\n"
    "0,1,0,stream_create,0x30,0,0x1,3,0,0x0\n"
    "1,1,0,mem_alloc,0x1000,4096,0x0,0,0,0x0\n"
    "2,1,0,memset_async,0x1000,4096,0x0,3,0,0x0\n";

TEST_F(CommandLineTest, CheckFindsNothingInACleanTrace) {
  const TempFile calls;
  calls.Write(std::string(kCalls) +
              "3,1,0,stream_synchronize,0x0,0,0x0,3,0,0x0\n"
              "4,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n");
  const CommandResult result = RunStrata({"check", calls.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": 5 calls, 0 hazards"));
}

TEST_F(CommandLineTest, CheckShowsHazardsWithTheirLines) {
  const TempFile calls;
  calls.Write(std::string(kCalls) + "3,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n");
  const CommandResult table = RunStrata({"check", calls.path()});
  EXPECT_EQ(table.code, 1);
  EXPECT_THAT(table.out, HasSubstr("free-in-use"));
  EXPECT_THAT(table.out, HasSubstr("never waited for stream 3's memset_async"));
  EXPECT_THAT(table.out, HasSubstr(": 4 calls, 1 hazards"));
  const CommandResult result =
      RunStrata({"check", "--format=json", calls.path()});
  EXPECT_EQ(result.code, 1);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json[0]["hazards"], 1);
  const auto& report = json[0]["reports"][0];
  EXPECT_EQ(report["kind"], "free-in-use");
  EXPECT_EQ(report["first"]["line"], 4);
  EXPECT_EQ(report["second"]["line"], 5);
  EXPECT_EQ(report["second"]["call"], "mem_free");
  EXPECT_TRUE(report["second_life"].is_null());
}

TEST_F(CommandLineTest, CheckReadsGzip) {
  const TempFile calls(".csv.gz");
  calls.WriteGzip(std::string(kCalls) +
                  "3,1,0,mem_free,0x1000,0,0x0,0,0,0x0\n");
  const CommandResult result = RunStrata({"check", calls.path()});
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr(": 4 calls, 1 hazards"));
  calls.Write(calls.Read().substr(0, calls.Read().size() - 9));
  ExpectRefused(RunStrata({"check", calls.path()}), "gzip data is cut off");
}

TEST_F(CommandLineTest, CheckRefusesWhatIsNoTraceOfCalls) {
  const TempFile calls;
  calls.Write(std::string(kCalls) + "3,1,0,mem_fr");
  ExpectRefused(RunStrata({"check", calls.path()}), ":5: 4 fields, not 10");
  ExpectRefused(RunStrata({"check", small_.path()}), ":1: is no call trace");
  ExpectRefused(RunStrata({"check"}), "no recorded calls given");
  ExpectRefused(RunStrata({"check", "/no/such/file"}), "cannot be opened");
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
