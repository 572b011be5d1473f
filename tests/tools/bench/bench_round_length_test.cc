// The number of pairs in a round of `strata bench`.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "strata/tools/bench/round_length.h"
#include "strata/tools/bench/subject.h"
#include "strata/tools/bench/workloads/script.h"

namespace strata::tools {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A pair takes 100 ns. Each run takes additional time from a list.
class PacedSubject final : public BenchSubject {
 public:
  explicit PacedSubject(std::vector<nanoseconds> extra = {})
      : extra_(std::move(extra)) {}

  nanoseconds Run(std::size_t pairs) override {
    const nanoseconds extra =
        runs_.size() < extra_.size() ? extra_[runs_.size()] : nanoseconds(0);
    runs_.push_back(pairs);
    return extra + pairs * nanoseconds(100);
  }
  std::optional<std::uint64_t> allocations() override { return {}; }
  std::optional<std::uint64_t> peak_reserved_bytes() override { return {}; }
  std::uint64_t peak_live_bytes() const override { return 0; }

  const std::vector<std::size_t>& runs() const { return runs_; }

 private:
  std::vector<nanoseconds> extra_;
  std::vector<std::size_t> runs_;
};

constexpr std::size_t kMany = 1'000'000;

// A loop of `pairs` pairs.
BenchScript ScriptOf(std::size_t pairs, bool is_uniform) {
  BenchScript script;
  script.loop.resize(2 * pairs);
  script.is_uniform = is_uniform;
  return script;
}

TEST(PairsPerRoundTest, ARoundTakesTheTimeItIsGiven) {
  PacedSubject subject;
  EXPECT_EQ(PairsPerRound(subject, ScriptOf(5, true), milliseconds(2), kMany),
            20'000U);
}

TEST(PairsPerRoundTest, PairsThatDifferComeInWholeLoops) {
  PacedSubject subject;
  EXPECT_EQ(
      PairsPerRound(subject, ScriptOf(3000, false), milliseconds(2), kMany),
      18'000U);
  for (const std::size_t pairs : subject.runs()) EXPECT_EQ(pairs % 3000, 0U);
}

// A fixed cost of every run, such as waking threads and reading the clock.
TEST(PairsPerRoundTest, WhatEveryRunTakesDoesNotMakeARoundShort) {
  PacedSubject subject(std::vector<nanoseconds>(100, microseconds(100)));
  EXPECT_NEAR(static_cast<double>(PairsPerRound(subject, ScriptOf(1, true),
                                                milliseconds(2), kMany)),
              19'000, 1000);
}

TEST(PairsPerRoundTest, ARunThatIsInterruptedDoesNotMakeARoundShort) {
  for (std::size_t which = 0; which < 30; ++which) {
    std::vector<nanoseconds> extra(which + 1);
    extra[which] = milliseconds(4);
    PacedSubject subject(extra);
    EXPECT_EQ(PairsPerRound(subject, ScriptOf(1, true), milliseconds(2), kMany),
              20'000U)
        << which;
  }
}

TEST(PairsPerRoundTest, ALoopThatTakesLongerIsRunOnce) {
  PacedSubject subject;
  EXPECT_EQ(
      PairsPerRound(subject, ScriptOf(50'000, false), milliseconds(2), kMany),
      50'000U);
}

TEST(PairsPerRoundTest, NoMoreThanAsked) {
  PacedSubject subject;
  EXPECT_EQ(PairsPerRound(subject, ScriptOf(5, true), milliseconds(2), 7), 7U);
  EXPECT_EQ(PairsPerRound(subject, ScriptOf(5, false), milliseconds(2), 12),
            10U);
  for (const std::size_t pairs : subject.runs()) EXPECT_LE(pairs, 10U);
  // But at least one loop, or one pair.
  EXPECT_EQ(PairsPerRound(subject, ScriptOf(5, false), milliseconds(2), 1), 5U);
  EXPECT_EQ(PairsPerRound(subject, ScriptOf(5, true), milliseconds(2), 0), 1U);
}

}  // namespace
}  // namespace strata::tools
