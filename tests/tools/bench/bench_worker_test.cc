// One worker of `strata bench`, and its process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tools/bench/bench.h"
#include "strata/tools/bench/child_process.h"

namespace strata::tools {
namespace {

using testing::HasSubstr;

constexpr const char* kSim = "strata_platform=sim";

BenchTask TaskOf(const char* allocator, const char* workload,
                 const char* options = kSim) {
  BenchTask task;
  task.allocator = FindBenchAllocator(allocator);
  task.script.pairs = 5;
  task.workload = FindBenchWorkload(workload, task.script);
  task.pairs = 5;
  task.options = Options::Parse(options);
  return task;
}

std::vector<nlohmann::json> Answers(const BenchTask& task) {
  std::istringstream in("round\nround\nround\n");
  std::ostringstream out;
  ServeBench(task, in, out);
  std::vector<nlohmann::json> answers;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    answers.push_back(nlohmann::json::parse(line));
  }
  return answers;
}

TEST(BenchWorkerTest, AnswersEveryLineWithARound) {
  for (const char* allocator : {"auto_growth", "c:auto_growth"}) {
    const std::vector<nlohmann::json> answers =
        Answers(TaskOf(allocator, "random_small_20"));
    ASSERT_EQ(answers.size(), 3U);
    for (const nlohmann::json& answer : answers) {
      EXPECT_GT(answer.at("pair_ns"), 0);
      EXPECT_GE(answer.at("reserved_ratio"), 1);
    }
  }
}

// If workers prepared during their wait, they would disturb the one that
// measures, and measure each other.
TEST(BenchWorkerTest, DoesNothingBeforeItIsAsked) {
  std::istringstream in;
  std::ostringstream out;
  ServeBench(TaskOf("glibc", "random_300000"), in, out);
  EXPECT_EQ(out.str(), "");  // not even that it would be left out
}

TEST(BenchWorkerTest, HasNoReservedRatioForMalloc) {
  const std::vector<nlohmann::json> answers =
      Answers(TaskOf("glibc", "random_small_20"));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_TRUE(answers[0].at("reserved_ratio").is_null());
}

// Reserved bytes are reported for a fixed amount of work, independent of the
// duration of a round.
TEST(BenchWorkerTest, TheReservedRatioIsTheSameInEveryRun) {
  BenchTask task = TaskOf("auto_growth", "random_20");
  task.script.pairs = 500;
  const nlohmann::json ratio = Answers(task).at(0).at("reserved_ratio");
  task.pairs = 5000;
  EXPECT_EQ(Answers(task).at(2).at("reserved_ratio"), ratio);
}

TEST(BenchWorkerTest, ASimulatedDeviceIsAsLargeAsAWorkloadNeeds) {
  // 100 GiB and more; the default device has 80 GiB.
  EXPECT_EQ(Answers(TaskOf("direct", "random_25000")).size(), 3U);
}

TEST(BenchWorkerTest, LeavesOutWhatTheDeviceCannotHold) {
  for (const char* allocator : {"auto_growth", "c:bfc", "peer:paddle"}) {
    BenchTask task = TaskOf(allocator, "random_1000",
                            "strata_platform=sim,strata_sim_memory=1GiB");
    task.has_own_memory = true;
    const std::vector<nlohmann::json> answers = Answers(task);
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_THAT(answers[0].at("left_out").get<std::string>(),
                HasSubstr("the device has 1.0 GiB"));
  }
}

TEST(BenchWorkerTest, LeavesOutWhatAMallocIsNotAskedFor) {
  const std::vector<nlohmann::json> answers =
      Answers(TaskOf("glibc", "random_300000"));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0].at("left_out").get<std::string>(),
              HasSubstr("more than a malloc is asked for"));
}

TEST(BenchWorkerTest, ReportsExhaustionAsAnError) {
  const std::vector<nlohmann::json> answers =
      Answers(TaskOf("direct", "random_small_20",
                     "strata_platform=sim,strata_sim_fault='mem_alloc:nth=7'"));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0].at("error").get<std::string>(),
              HasSubstr("cannot allocate"));
}

TEST(BenchWorkerTest, RunsATaskOnceForProfilers) {
  EXPECT_NO_THROW(RunBenchTask(TaskOf("auto_growth", "hand_over")));
  EXPECT_ANY_THROW(RunBenchTask(
      TaskOf("direct", "random_small_20",
             "strata_platform=sim,strata_sim_fault='mem_alloc:nth=22'")));
}

TEST(ChildProcessTest, AnswersLineForLine) {
  ChildProcess cat({"/bin/cat"}, "");
  EXPECT_EQ(cat.Ask("one", std::chrono::minutes(1)), "one");
  EXPECT_EQ(cat.Ask("two", std::chrono::minutes(1)), "two");
}

TEST(ChildProcessTest, SetsOrClearsThePreload) {
  const std::vector<std::string> command = {
      "/bin/sh", "-c", "read line; echo \"[$LD_PRELOAD]\""};
  EXPECT_EQ(ChildProcess(command, "").Ask("", std::chrono::minutes(1)), "[]");
  // If the library cannot be loaded, the loader only prints a warning.
  EXPECT_EQ(
      ChildProcess(command, "/no/such.so").Ask("", std::chrono::minutes(1)),
      "[/no/such.so]");
}

std::string ScriptError(const std::string& script,
                        std::chrono::milliseconds timeout) {
  ChildProcess process({"/bin/sh", "-c", script}, "");
  try {
    return "answered: " + process.Ask("go", timeout);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(ChildProcessTest, SaysHowTheProcessEnded) {
  EXPECT_EQ(ScriptError("exit 3", std::chrono::minutes(1)),
            "it ended with exit code 3");
  EXPECT_EQ(ScriptError("kill -9 $$", std::chrono::minutes(1)),
            "it was ended by signal 9");
}

TEST(ChildProcessTest, GivesUpOnAProcessThatIsSilent) {
  EXPECT_EQ(ScriptError("read line; read never", std::chrono::milliseconds(1)),
            "it did not answer in 1 ms");
}

TEST(ChildProcessTest, ReportsAProgramThatDoesNotExist) {
  EXPECT_THROW(ChildProcess({"/no/such/program"}, ""), std::runtime_error);
}

}  // namespace
}  // namespace strata::tools
