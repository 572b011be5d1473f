#include "strata/tools/replay/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "strata/tests/tools/trace/trace_text.h"

namespace strata::tools {
namespace {

Options Direct() {
  Options options;
  options.allocator_strategy = "direct";
  options.platform.platform = "sim";
  return options;
}

void NoProgress(int /*replays*/) {}

std::optional<Fit> FitOf(const Trace& trace, const Options& options,
                         std::uint64_t enough_bytes) {
  return FindFit(trace, options, enough_bytes, &NoProgress);
}

TEST(FitTest, WholeFramesFitOnTheirSum) {
  const Trace trace = TraceOf("+a 4194304, +b 2097152, -a, +c 4194304");
  const auto fit = FitOf(trace, Direct(), 8 * kFrame);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->capacity_bytes, 3 * kFrame);
  EXPECT_EQ(fit->failures_above, 0);
}

TEST(FitTest, DirectNeedsWholeFramesForEachBlock) {
  // 3 MiB each: two frames each on the device, although only 6 MiB are live.
  const Trace trace = TraceOf("+a 3145728, +b 3145728");
  EXPECT_EQ(FitOf(trace, Direct(), 8 * kFrame)->capacity_bytes, 4 * kFrame);
}

TEST(FitTest, ReactionToExhaustionCounts) {
  // The idle chunk of 20 MiB must be released before 24 MiB fit.
  const Trace trace = TraceOf("+a 20971520, -a, +b 25165824, -b");
  Options options;
  options.allocator_strategy = "auto_growth";
  EXPECT_EQ(FitOf(trace, options, 64 * kFrame)->capacity_bytes, 12 * kFrame);
}

TEST(FitTest, RaisesACapacityThatIsNotEnough) {
  const Trace trace = TraceOf("+a 3145728, +b 3145728, +c 3145728");
  EXPECT_EQ(FitOf(trace, Direct(), 1)->capacity_bytes, 6 * kFrame);
}

TEST(FitTest, TraceWithoutBytesFitsOnOneFrame) {
  EXPECT_EQ(FitOf(TraceOf("+a 0, -a"), Direct(), 0)->capacity_bytes, kFrame);
}

TEST(FitTest, ReportsNothingIfNoDeviceIsLargeEnough) {
  // 8 TiB: above the largest simulated device.
  EXPECT_FALSE(FitOf(TraceOf("+a 8796093022208"), Direct(), 1));
}

TEST(FitTest, TellsProgressBeforeEachReplay) {
  std::vector<int> replays;
  const Trace trace = TraceOf("+a 20971520");
  FindFit(trace, Direct(), 20971520, [&](int n) { replays.push_back(n); });
  // The fit itself is tried first, then 10 to 12 frames.
  EXPECT_THAT(replays, ::testing::ElementsAre(0, 1, 2));
}

TEST(FitTest, SearchFindsTheLeastCapacity) {
  for (std::uint64_t least = 1; least <= 40; ++least) {
    const auto fit = SearchFit(0, 40 * kFrame, [&](std::uint64_t capacity) {
      return capacity >= least * kFrame;
    });
    ASSERT_TRUE(fit);
    EXPECT_EQ(fit->capacity_bytes, least * kFrame);
    EXPECT_EQ(fit->failures_above, 0);
  }
}

TEST(FitTest, SearchNeverGoesBelowWhatIsLive) {
  const auto fit =
      SearchFit(7 * kFrame + 1, 9 * kFrame, [](std::uint64_t capacity) {
        EXPECT_GE(capacity, 8 * kFrame);
        return true;
      });
  EXPECT_EQ(fit->capacity_bytes, 8 * kFrame);
}

TEST(FitTest, CountsTheCapacitiesAboveThatFail) {
  std::set<std::uint64_t> tried;
  const auto fit =
      SearchFit(1000 * kFrame, 1000 * kFrame, [&](std::uint64_t capacity) {
        const std::uint64_t frames = capacity / kFrame;
        tried.insert(frames);
        return frames != 1005 && frames != 1100 && frames != 1101;
      });
  // Steps of 5 frames: 1005 and 1100 are tried, 1101 is not.
  EXPECT_EQ(fit->failures_above, 2);
  EXPECT_EQ(tried.size(), 1U + kFitTries);
  EXPECT_EQ(*tried.rbegin(), 1200U);
}

TEST(FitTest, TriesEachFrameOnceBelowTwoHundredFrames) {
  std::vector<std::uint64_t> tried;
  SearchFit(20 * kFrame, 20 * kFrame, [&](std::uint64_t capacity) {
    tried.push_back(capacity / kFrame);
    return true;
  });
  EXPECT_THAT(tried, ::testing::ElementsAre(20, 21, 22, 23, 24));
}

}  // namespace
}  // namespace strata::tools
