// The recordings of `strata`, and the cases in which it refuses to record.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "strata/tests/testing/scoped_variable.h"
#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using CommandLineRecordingsTest = CommandLineTest;

// It keeps flags from the environment.
TEST_F(CommandLineRecordingsTest, InfoWritesOverNoRecording) {
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

TEST_F(CommandLineRecordingsTest, ReplayWritesOverNoTraceItReads) {
  const std::string before = small_.Read();
  for (const char* flag : {"strata_trace_file", "strata_device_trace_file"}) {
    const std::string option = std::string("--") + flag + "=" + small_.path();
    ExpectRefused(RunStrata({"replay", small_.path(), option}),
                  option + " is a file that is read");
  }
  EXPECT_EQ(small_.Read(), before);
}

// Runs that only search for a size write no files, wherever the flag was set.
TEST_F(CommandLineRecordingsTest, AMapOfMemoryIsWrittenOnce) {
  const ScratchFolder folder;
  const std::string prefix = (folder.path() / "map").string();
  const ScopedVariable variable("TF_BFC_MEMORY_DUMP", prefix);
  EXPECT_EQ(
      RunStrata({"replay", small_.path(), "--fit", "--allocator_strategy=bfc",
                 "--strata_sim_memory=4MiB", "--strata_tf_environment"})
          .code,
      1);
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(CommandLineRecordingsTest, TwoRecordingsNeedTwoFiles) {
  const TempFile file;
  ExpectRefused(
      RunStrata({"replay", small_.path(), "--strata_trace_file=" + file.path(),
                 "--strata_device_trace_file=" + file.path()}),
      "contradicts");
}

TEST_F(CommandLineRecordingsTest, DeviceTraceHasTheCallsOfAReplay) {
  const TempFile trace;
  const std::string flag = "--strata_device_trace_file=" + trace.path();
  EXPECT_EQ(RunStrata({"replay", small_.path(), "--fit", flag}).code, 0);
  EXPECT_THAT(trace.Read(), HasSubstr(",0,create_memory,"));
  EXPECT_EQ(RunStrata({"check", trace.path()}).code, 0);
}

// The recorded run is the run of the table. Runs for times or for the smallest
// device are not recorded.
TEST_F(CommandLineRecordingsTest, RecordingsAreOfOneRun) {
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

TEST_F(CommandLineRecordingsTest, ARecordingThatCannotBeWrittenIsAnError) {
  for (const char* flag :
       {"strata_trace_file", "strata_trace_events_file",
        "strata_allocation_log_file", "strata_device_trace_file"}) {
    const CommandResult result = RunStrata(
        {"replay", small_.path(), std::string("--") + flag + "=/dev/full"});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr("'/dev/full' is not complete")) << flag;
  }
}

TEST_F(CommandLineRecordingsTest, APeerRecordsOnlyItsDeviceCalls) {
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

// The recording would have the number of the closed stream.
TEST_F(CommandLineRecordingsTest, NothingMeantForAClosedStreamIsInThem) {
  const TempFile record;
  const std::string command =
      ShellQuoted(STRATA_BINARY) + " replay " + ShellQuoted(small_.path()) +
      " --strata_guard --strata_trace_file=" + ShellQuoted(record.path()) +
      " >/dev/null 2>&-";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(record.Read(), StartsWith("Thread,Time,"));
}

}  // namespace
}  // namespace strata::tools
