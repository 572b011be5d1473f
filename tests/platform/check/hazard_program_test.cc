// In seeded programs, the checker and the brute-force oracle find equal
// hazards.

#include "strata/tests/testing/hazards/hazard_program.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "strata/tests/testing/hazards/hazard_oracle.h"
#include "strata/tests/testing/hazards/hazard_verdict.h"

namespace strata::check {
namespace {

TEST(HazardProgramTest, NothingIsReportedInCorrectPrograms) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const auto program = MakeProgram(seed, ProgramBreak::kNone);
    ASSERT_EQ(HazardOracle().Judge(program), std::set<std::uint64_t>())
        << "seed " << seed << "\n"
        << ProgramText(program);
    ASSERT_EQ(HazardsFound(program), std::set<std::uint64_t>())
        << "seed " << seed << "\n"
        << ProgramText(program);
  }
}

class BrokenProgramTest : public testing::TestWithParam<ProgramBreak> {};

// 21 kinds with 50 programs each.
TEST_P(BrokenProgramTest, EveryBrokenProgramIsFound) {
  constexpr int kPrograms = 50;
  int broken = 0;
  std::uint64_t seed = 0;
  while (broken < kPrograms) {
    // Some other call may replace the omitted one, but rarely.
    ASSERT_LT(seed, 10U * kPrograms) << broken << " of them are broken";
    const auto program = MakeProgram(++seed, GetParam());
    if (HazardOracle().Judge(program).empty()) {
      ASSERT_TRUE(HazardsFound(program).empty()) << "seed " << seed;
      continue;
    }
    ++broken;
    ASSERT_FALSE(HazardsFound(program).empty()) << "seed " << seed << "\n"
                                                << ProgramText(program);
    ASSERT_EQ(VerdictDifference(program), "") << "seed " << seed;
  }
}

std::vector<ProgramBreak> AllBreaks() {
  std::vector<ProgramBreak> all;
  for (int i = 1; i < static_cast<int>(ProgramBreak::kCount); ++i) {
    all.push_back(static_cast<ProgramBreak>(i));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    AllBreaks, BrokenProgramTest, testing::ValuesIn(AllBreaks()),
    [](const testing::TestParamInfo<ProgramBreak>& instance) {
      return std::string(ProgramBreakName(instance.param));
    });

// T84: the verdict on every call equals the verdict of brute force.
TEST(HazardProgramTest, VerdictsOnRandomProgramsAreThoseOfBruteForce) {
  constexpr std::uint64_t kPrograms = 10'000;
  std::uint64_t hazards = 0;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const auto program =
        MakeRandomProgram(seed, 20 + static_cast<int>(seed % 100));
    hazards += HazardsFound(program).size();
    ASSERT_EQ(VerdictDifference(program), "") << "seed " << seed;
  }
  // Most programs contain hazards, most calls do not.
  EXPECT_GT(hazards, kPrograms);
}

}  // namespace
}  // namespace strata::check
