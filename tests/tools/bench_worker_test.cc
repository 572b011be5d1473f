// One worker of `strata bench`, and the process that a worker is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tools/bench.h"
#include "strata/tools/child_process.h"

namespace strata {
namespace {

using testing::HasSubstr;

constexpr const char* kSim = "strata_platform=sim";

std::vector<nlohmann::json> Answers(const std::string& allocator,
                                    const Options& options) {
  std::istringstream in("round\nround\nround\n");
  std::ostringstream out;
  ServeBench(FindBenchAllocator(allocator), FindBenchWorkload("random_small"),
             {.pairs = 5, .trace = ""}, 5, options, in, out);
  std::vector<nlohmann::json> answers;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    answers.push_back(nlohmann::json::parse(line));
  }
  return answers;
}

TEST(BenchWorkerTest, AnswersEveryLineWithARound) {
  const std::vector<nlohmann::json> answers =
      Answers("auto_growth", Options::Parse(kSim));
  ASSERT_EQ(answers.size(), 3U);
  for (const nlohmann::json& answer : answers) {
    EXPECT_TRUE(answer.at("pair_ns").is_number());
    EXPECT_GE(answer.at("reserved_ratio"), 1);
  }
}

TEST(BenchWorkerTest, HasNoReservedRatioForMalloc) {
  const std::vector<nlohmann::json> answers =
      Answers("glibc", Options::Parse(kSim));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_TRUE(answers[0].at("reserved_ratio").is_null());
}

TEST(BenchWorkerTest, ReportsExhaustionAsAnError) {
  const std::vector<nlohmann::json> answers = Answers(
      "auto_growth", Options::Parse("strata_platform=sim,strata_sim_memory="
                                    "2MiB"));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0].at("error").get<std::string>(),
              HasSubstr("cannot allocate"));
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
  // A library that cannot be loaded is only warned of, by the loader.
  EXPECT_EQ(
      ChildProcess(command, "/no/such.so").Ask("", std::chrono::minutes(1)),
      "[/no/such.so]");
}

std::string ErrorOf(const std::string& script,
                    std::chrono::milliseconds timeout) {
  ChildProcess process({"/bin/sh", "-c", script}, "");
  try {
    return "answered: " + process.Ask("go", timeout);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(ChildProcessTest, SaysHowTheProcessEnded) {
  EXPECT_EQ(ErrorOf("exit 3", std::chrono::minutes(1)),
            "it ended with exit code 3");
  EXPECT_EQ(ErrorOf("kill -9 $$", std::chrono::minutes(1)),
            "it was ended by signal 9");
}

TEST(ChildProcessTest, GivesUpOnAProcessThatIsSilent) {
  EXPECT_EQ(ErrorOf("read line; read never", std::chrono::milliseconds(1)),
            "it did not answer in 1 ms");
}

TEST(ChildProcessTest, ReportsAProgramThatDoesNotExist) {
  EXPECT_THROW(ChildProcess({"/no/such/program"}, ""), std::runtime_error);
}

}  // namespace
}  // namespace strata
