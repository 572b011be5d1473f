// Several passes of a replay in one allocator.

#include "strata/tools/replay/replay_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/platform/sim/faults/cost_table.h"
#include "strata/tests/tools/temp_file.h"
#include "strata/tests/tools/trace/trace_text.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/replay/fit.h"
#include "strata/tools/replay/replay.h"
#include "strata/tools/terminal/interrupt.h"

namespace strata::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::uint32_t kFivePercent = 50'000;

Options On(const std::string& strategy, std::uint64_t capacity_bytes) {
  Options options;
  options.allocator_strategy = strategy;
  options.platform.platform = "sim";
  options.platform.sim_memory_bytes = capacity_bytes;
  return options;
}

PassPlan Plan(std::uint64_t passes, std::uint32_t jitter_ppm = 0) {
  return {passes, jitter_ppm, nullptr};
}

std::vector<std::uint64_t> PassesOf(const ReplayResult& result) {
  std::vector<std::uint64_t> passes;
  for (const PassSample& sample : result.passes) passes.push_back(sample.pass);
  return passes;
}

TEST(JitterTest, FirstPassHasTheRecordedSizes) {
  EXPECT_EQ(JitteredBytes(12345, kFivePercent, 1, 7), 12345U);
  EXPECT_EQ(JitteredBytes(12345, 0, 2, 7), 12345U);
  EXPECT_EQ(JitteredBytes(0, kFivePercent, 2, 7), 0U);
}

// 1000 bytes and 5 %: 101 sizes.
TEST(JitterTest, SizesVaryUpToThePercentageAndReachIt) {
  std::set<std::uint64_t> sizes;
  for (std::uint64_t pass = 2; pass < 102; ++pass) {
    for (std::uint64_t request = 0; request < 100; ++request) {
      sizes.insert(JitteredBytes(1000, kFivePercent, pass, request));
    }
  }
  EXPECT_EQ(*sizes.begin(), 950U);
  EXPECT_EQ(*sizes.rbegin(), 1050U);
  EXPECT_EQ(sizes.size(), 101U);
}

TEST(JitterTest, LargestSizesDoNotOverflow) {
  for (std::uint64_t request = 0; request < 100; ++request) {
    EXPECT_GE(JitteredBytes(UINT64_MAX, kMostJitterPpm, 2, request),
              UINT64_MAX / 2);
    EXPECT_GE(JitteredBytes(1, kMostJitterPpm, 2, request), 1U);
  }
}

TEST(PassSampleTest, FewPassesAreSampled) {
  std::vector<std::uint64_t> sampled;
  for (std::uint64_t pass = 1; pass <= 1000; ++pass) {
    if (IsSampledPass(pass)) sampled.push_back(pass);
  }
  EXPECT_THAT(sampled, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 50, 100,
                                   200, 500, 1000));
}

TEST(ReplayPassesTest, LastPassIsSampledToo) {
  const ReplayResult result =
      Replay(TraceOf("+a 100"), On("direct", Gibibytes(1)), Plan(13));
  EXPECT_EQ(result.passes_done, 13U);
  EXPECT_THAT(PassesOf(result), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13));
  EXPECT_EQ(result.SampleOf(10)->pass, 10U);
  EXPECT_EQ(result.SampleOf(11), nullptr);
}

// b is live at the end of a pass; its free belongs to the pass.
TEST(ReplayPassesTest, PassEndsWithTheFreesOfLiveBlocks) {
  const Trace trace = TraceOf("+a 100, -a, +b 3000000, +c 0");
  const ReplayResult result =
      CheckedReplay(trace, On("direct", Gibibytes(1)), Plan(2));
  const auto calls = UnorderedElementsAre(
      Pair("mem_alloc", 2), Pair("mem_free", 2), Pair("stream_synchronize", 2));
  ASSERT_EQ(result.passes.size(), 2U);
  EXPECT_THAT(result.passes[0].device_calls, calls);
  EXPECT_THAT(result.passes[1].device_calls, calls);
  EXPECT_EQ(result.passes[1].CallCount(), 6U);
  EXPECT_EQ(result.device_calls.at("mem_alloc"), 4U);
}

TEST(ReplayPassesTest, SecondPassOfACacheNeedsNoDevice) {
  const Trace trace = TraceOf("+a 100, +b 30000000 @2, -a, +c 5000000");
  for (const char* strategy : {"auto_growth", "peer:pytorch", "peer:paddle"}) {
    const ReplayResult result =
        CheckedReplay(trace, On(strategy, Gibibytes(1)), Plan(2));
    EXPECT_GT(result.passes[0].CallCount(), 0U) << strategy;
    EXPECT_GT(result.passes[0].modelled_ns, 0U) << strategy;
    EXPECT_THAT(result.passes[1].device_calls, IsEmpty()) << strategy;
    EXPECT_EQ(result.passes[1].modelled_ns, 0U) << strategy;
    EXPECT_EQ(result.passes[1].longest_request_ns, 0U) << strategy;
    EXPECT_EQ(result.passes[1].peak_reserved_bytes,
              result.passes[0].peak_reserved_bytes)
        << strategy;
  }
}

TEST(ReplayPassesTest, LongestRequestIsOfOneAllocation) {
  const Trace trace = TraceOf("+a 2097152, +b 6291456, -b, +c 4194304");
  const ReplayResult result =
      Replay(trace, On("direct", Gibibytes(1)), Plan(1));
  EXPECT_EQ(result.passes[0].longest_request_ns,
            sim::CallCostNs(DeviceCall::kMemAlloc, 6291456));
  EXPECT_GT(result.passes[0].modelled_ns,
            3 * sim::CallCostNs(DeviceCall::kMemAlloc, 2097152));
}

TEST(ReplayPassesTest, WithoutPassesNothingIsMeasuredOrFreed) {
  const ReplayResult result =
      Replay(TraceOf("+a 100"), On("direct", Gibibytes(1)));
  EXPECT_THAT(result.passes, IsEmpty());
  EXPECT_EQ(result.passes_done, 0U);
  EXPECT_THAT(result.device_calls, UnorderedElementsAre(Pair("mem_alloc", 1)));
}

// The jitter determines the size of the block of a pass.
TEST(ReplayPassesTest, PeakReservedIsThatOfThePass) {
  constexpr std::uint64_t kBytes = 20 * kFrame;
  const ReplayResult result =
      CheckedReplay(TraceOf("+a 41943040"), On("direct", Gibibytes(1)),
                    Plan(10, kMostJitterPpm));
  std::uint64_t most = 0;
  for (const PassSample& sample : result.passes) {
    const std::uint64_t bytes =
        JitteredBytes(kBytes, kMostJitterPpm, sample.pass, 0);
    EXPECT_EQ(sample.peak_reserved_bytes, AlignUp(bytes, kFrame));
    most = std::max(most, sample.peak_reserved_bytes);
  }
  EXPECT_GT(most, kBytes);
  EXPECT_EQ(result.peak_reserved_bytes, most);
}

TEST(ReplayPassesTest, SizesAreTheSameForEveryStrategy) {
  const Trace trace = TraceOf("+a 100000, +b 3000000, -a, +c 70000, ?d 9000");
  std::vector<std::vector<std::uint64_t>> sizes;
  for (const char* strategy : {"direct", "auto_growth"}) {
    const TempFile file;
    Options options = On(strategy, Gibibytes(1));
    options.decorators.trace_path = file.path();
    Replay(trace, options, Plan(3, kFivePercent));
    sizes.push_back(ReadRmmLog(file.path()).allocated_bytes);
  }
  EXPECT_EQ(sizes[0], sizes[1]);
  ASSERT_EQ(sizes[0].size(), 12U);
  const std::vector<std::uint64_t>& all = sizes[0];
  EXPECT_TRUE(
      std::equal(all.begin(), all.begin() + 4, trace.allocated_bytes.begin()));
  for (std::uint64_t i = 4; i < 12; ++i) {
    EXPECT_EQ(all[i], JitteredBytes(trace.allocated_bytes[i % 4], kFivePercent,
                                    i / 4 + 1, i % 4));
  }
  EXPECT_NE(all[4], all[8]);
}

// One frame serves all sizes up to a frame.
TEST(ReplayPassesTest, PassThatRunsOutOfMemoryIsNamed) {
  std::uint64_t pass = 2;
  while (pass < 100 && JitteredBytes(kFrame, kFivePercent, pass, 0) <= kFrame) {
    ++pass;
  }
  const ReplayResult result = Replay(
      TraceOf("+a 2097152"), On("direct", kFrame), Plan(1000, kFivePercent));
  ASSERT_TRUE(result.failed_event);
  EXPECT_EQ(*result.failed_event, 0U);
  EXPECT_EQ(result.failed_pass, pass);
  EXPECT_EQ(result.passes_done, pass - 1);
  EXPECT_EQ(result.passes.back().pass, pass - 1);
}

TEST(ReplayPassesTest, ARequestThatFailsInEachPassCountsOnce) {
  const ReplayResult result = CheckedReplay(
      TraceOf("+a 2097152, ?b 6291456, -a"), On("direct", kFrame), Plan(3));
  EXPECT_EQ(result.passes_done, 3U);
  EXPECT_EQ(result.failed_tries, 1U);
  EXPECT_EQ(result.first_failed_try, 1U);
}

TEST(ReplayPassesTest, SegmentsOfARecordingAreRestoredOnce) {
  Trace trace = TraceOf("+a 1024, +b 2048");
  trace.recorded.segments = {{kFrame, 0, {{0, 1024}}}};
  const ReplayResult result =
      CheckedReplay(trace, On("peer:pytorch", Gibibytes(1)), Plan(3));
  EXPECT_THAT(result.device_calls, UnorderedElementsAre(Pair("mem_alloc", 1)));
}

// In a separate process, because a noted SIGINT stays noted.
TEST(ReplayPassesDeathTest, CtrlCEndsThePasses) {
  const auto interrupt_third = [] {
    const InterruptScope interrupts;
    std::uint64_t last = 0;
    PassPlan plan = Plan(1'000'000);
    plan.on_pass = [&](std::uint64_t pass) {
      last = pass;
      if (pass == 3) std::raise(SIGINT);
    };
    try {
      Replay(TraceOf("+a 1"), On("direct", kFrame), plan);
    } catch (const Interrupted&) {
      std::exit(last == 3 ? 7 : 8);
    }
  };
  EXPECT_EXIT(interrupt_third(), ::testing::ExitedWithCode(7), "");
}

TEST(ReplayPassesTest, FitRunsEveryPass) {
  std::uint64_t most = 0;
  for (std::uint64_t pass = 1; pass <= 6; ++pass) {
    most = std::max(most, JitteredBytes(20 * kFrame, kMostJitterPpm, pass, 0));
  }
  ASSERT_GT(most, 21 * kFrame);
  const auto fit = FindFit(
      TraceOf("+a 41943040"), On("direct", kFrame), 20 * kFrame,
      [](int /*replays*/) {}, Plan(6, kMostJitterPpm));
  EXPECT_EQ(fit->capacity_bytes, AlignUp(most, kFrame));
}

}  // namespace
}  // namespace strata::tools
