// What the checker finds in seeded programs is what brute force finds.

#include "strata/tests/testing/hazard_program.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "strata/platform/call_trace.h"
#include "strata/platform/check/hazard_checker.h"
#include "strata/tests/testing/hazard_oracle.h"
#include "strata/tests/testing/stress_settings.h"

namespace strata {
namespace {

// The numbers of the records at which a hazard shows.
std::set<std::uint64_t> Found(const std::vector<CallRecord>& program) {
  std::set<std::uint64_t> found;
  HazardChecker checker([&found](const HazardReport& report) {
    found.insert(report.second.number);
  });
  for (const CallRecord& record : program) checker.Observe(record);
  return found;
}

std::string Text(const std::vector<CallRecord>& program) {
  std::ostringstream text;
  std::size_t number = 0;
  for (const CallRecord& record : program) {
    text << ++number << ": " << ToCsv(record) << "\n";
  }
  return text.str();
}

void ExpectSame(const std::vector<CallRecord>& program, std::uint64_t seed) {
  const std::set<std::uint64_t> expected = HazardOracle().Judge(program);
  const std::set<std::uint64_t> found = Found(program);
  if (found == expected) return;
  std::ostringstream difference;
  for (const std::uint64_t number : expected) {
    if (found.count(number) == 0) difference << " missed " << number;
  }
  for (const std::uint64_t number : found) {
    if (expected.count(number) == 0) difference << " wrong " << number;
  }
  ADD_FAILURE() << "seed " << seed << ":" << difference.str() << "\n"
                << Text(program);
}

TEST(HazardProgramTest, NothingIsReportedInCorrectPrograms) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const auto program = MakeProgram(seed, ProgramBreak::kNone);
    ASSERT_EQ(HazardOracle().Judge(program), std::set<std::uint64_t>())
        << "seed " << seed << "\n"
        << Text(program);
    ASSERT_EQ(Found(program), std::set<std::uint64_t>())
        << "seed " << seed << "\n"
        << Text(program);
  }
}

class BrokenProgramTest : public testing::TestWithParam<ProgramBreak> {};

// 21 kinds of 50 programs each.
TEST_P(BrokenProgramTest, EveryBrokenProgramIsFound) {
  constexpr int kPrograms = 50;
  int broken = 0;
  std::uint64_t seed = 0;
  while (broken < kPrograms) {
    // Some other call may do what was left out, but seldom.
    ASSERT_LT(seed, 10U * kPrograms) << broken << " of them are broken";
    const auto program = MakeProgram(++seed, GetParam());
    if (HazardOracle().Judge(program).empty()) {
      ASSERT_TRUE(Found(program).empty()) << "seed " << seed;
      continue;
    }
    ++broken;
    ASSERT_FALSE(Found(program).empty()) << "seed " << seed << "\n"
                                         << Text(program);
    ExpectSame(program, seed);
  }
}

std::vector<ProgramBreak> AllBreaks() {
  std::vector<ProgramBreak> all;
  for (int i = 1; i < static_cast<int>(ProgramBreak::kCount); ++i) {
    all.push_back(static_cast<ProgramBreak>(i));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllBreaks, BrokenProgramTest,
                         testing::ValuesIn(AllBreaks()),
                         [](const testing::TestParamInfo<ProgramBreak>& info) {
                           return std::string(ProgramBreakName(info.param));
                         });

// T84: the verdict on every single call is that of brute force. More programs
// with STRATA_HAZARD_PROGRAMS.
TEST(HazardProgramTest, VerdictsOnRandomProgramsAreThoseOfBruteForce) {
  const std::uint64_t programs =
      NumberFromEnvironment("STRATA_HAZARD_PROGRAMS", 10'000);
  std::uint64_t hazards = 0;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const auto program =
        MakeRandomProgram(seed, 20 + static_cast<int>(seed % 100));
    hazards += Found(program).size();
    ExpectSame(program, seed);
    if (HasFailure()) return;
  }
  // Most programs have some, most calls none.
  EXPECT_GT(hazards, programs);
}

}  // namespace
}  // namespace strata
