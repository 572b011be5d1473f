// Every program of 3 streams, 4 live blocks and a few steps, on the simulated
// device under its checker (cuda_semantics.md §5; docs/streams.md,
// docs/graphs.md). STRATA_EXPLORE_STEPS sets the number of steps.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/testing/explore/explorer.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kSteps = 5;
// Number of steps less than kSteps if no program is omitted.
constexpr std::uint64_t kFewer = 1;
// Minimum number of programs, by number of steps.
constexpr std::array<std::uint64_t, 9> kPrograms = {
    0, 2, 14, 110, 900, 8'000, 70'000, 600'000, 5'000'000};

struct ExploreCase {
  std::string name;
  ExploreOptions options;
  // Number of steps less than in the other cases. Not 0 for a case in which a
  // program can choose between more steps at each point.
  std::uint64_t fewer_steps = 0;
};

std::ostream& operator<<(std::ostream& out, const ExploreCase& one) {
  return out << one.name;
}

bool IsShared(const std::string& strategy) {
  return strategy != "auto_growth" && strategy != "virtual_memory" &&
         strategy != "cuda_malloc_async" && strategy != "direct";
}

ExploreCase CaseOf(const std::string& name, const std::string& strategy,
                   const std::string& more = "") {
  ExploreCase one;
  one.name = name;
  one.options.facade = "allocator_strategy=";
  one.options.facade.append(strategy).append(" ").append(more);
  one.options.shares_strategy = IsShared(strategy);
  return one;
}

std::vector<ExploreCase> Cases() {
  std::vector<ExploreCase> cases;
  for (const std::string& strategy : StrategyNames()) {
    cases.push_back(CaseOf(strategy, strategy));
  }
  // Stored bytes take most of the time, so only these cases have them.
  const std::size_t backed = cases.size();
  // Streams that wait for each other on the device.
  cases.push_back(
      CaseOf("auto_growth_waits", "auto_growth", "strata_cross_stream_wait"));
  cases.push_back(CaseOf("bfc_waits", "bfc", "strata_cross_stream_wait"));
  // Marks that name the event behind the use. They do not cover all work before
  // the free.
  for (const char* strategy : {"auto_growth", "bfc"}) {
    ExploreCase named = CaseOf(strategy, strategy);
    named.name.append("_record_use");
    named.options.marks_name_events = true;
    cases.push_back(named);
  }
  // Captures with graphs that share memory. They begin with a graph of two
  // streams that used a block, which is still allocated.
  ExploreCase pooled = CaseOf("auto_growth_one_pool", "auto_growth");
  pooled.options.shares_pool = true;
  pooled.options.begin_with = {{StepKind::kBegin, 0, 0},
                               {StepKind::kAlloc, 0, 0},
                               {StepKind::kUse, 1, 0},
                               {StepKind::kMark, 1, 0},
                               {StepKind::kEnd, 0, 0}};
  pooled.options.streams = 2;
  pooled.fewer_steps = 1;
  cases.push_back(pooled);
  // As before, and then the other stream captures. The first stream joins that
  // capture.
  pooled.name.append("_joined");
  pooled.options.begin_with.insert(pooled.options.begin_with.end(),
                                   {{StepKind::kBegin, 1, 1},
                                    {StepKind::kAlloc, 1, 1},
                                    {StepKind::kUse, 0, 1}});
  cases.push_back(pooled);
  // A capture that used memory, beside pending work of another stream.
  ExploreCase beside = CaseOf("auto_growth_beside_work", "auto_growth");
  beside.options.begin_with = {{StepKind::kAlloc, 0, 0},
                               {StepKind::kBegin, 0, 0},
                               {StepKind::kAlloc, 0, 1},
                               {StepKind::kUse, 0, 1},
                               {StepKind::kUse, 1, 0}};
  beside.options.streams = 2;
  beside.fewer_steps = 1;
  cases.push_back(beside);
  // Blocks with a size that the front cache of a stream keeps whole.
  ExploreCase kept = CaseOf("auto_growth_kept_whole", "auto_growth");
  kept.options.block_bytes = std::size_t{64} << 10;
  for (std::uint8_t i = 0; i < 3; ++i) {
    kept.options.begin_with.push_back({StepKind::kAlloc, 0, i});
    kept.options.begin_with.push_back({StepKind::kFree, 0, i});
  }
  cases.push_back(kept);
  // The ladder of reactions to exhaustion.
  for (const char* strategy : {"auto_growth", "bfc"}) {
    ExploreCase full = CaseOf(strategy, strategy, "gpu_allocator_retry_time=0");
    full.name.append("_full");
    full.options.block_bytes = std::size_t{2} << 20;
    full.options.device_bytes = std::uint64_t{4} << 20;
    full.options.fitting_blocks = 2;
    cases.push_back(full);
  }
  for (std::size_t i = backed; i < cases.size(); ++i) {
    cases[i].options.data = "phantom";
  }
  return cases;
}

std::uint64_t StepsOf(const ExploreCase& one) {
  const std::uint64_t steps =
      NumberFromEnvironment("STRATA_EXPLORE_STEPS", kSteps);
  return steps - std::min(steps, one.fewer_steps);
}

class ExplorationTest : public ::testing::TestWithParam<ExploreCase> {};

TEST_P(ExplorationTest, NoProgramMeetsAHazardOrLeavesAnything) {
  const std::uint64_t steps = StepsOf(GetParam());
  const Exploration found = Explore(GetParam().options, steps);
  EXPECT_EQ(found.finding, "");
  std::cout << "  " << steps << " steps: " << found.states << " states go on, "
            << found.programs << " programs, " << found.refusals
            << " requests refused" << std::endl;
  RecordProperty("states", std::to_string(found.states));
  RecordProperty("programs", std::to_string(found.programs));
  EXPECT_GE(found.programs,
            kPrograms[std::min<std::size_t>(steps, kPrograms.size() - 1)]);
}

// Checks that states contain enough to omit programs with equal states.
TEST_P(ExplorationTest, EqualStatesHaveEqualFutures) {
  ExploreOptions options = GetParam().options;
  options.data = "phantom";
  // No program is omitted, so fewer steps.
  const std::uint64_t steps = std::min(StepsOf(GetParam()), kSteps);
  EXPECT_EQ(DifferentFutures(options, steps - std::min(steps, kFewer)), "");
}

INSTANTIATE_TEST_SUITE_P(All, ExplorationTest, ::testing::ValuesIn(Cases()),
                         [](const auto& one) { return one.param.name; });

// Checks the exploration itself: it finds the fault when a layer is removed.
TEST(ExplorationFindsTest, ReuseOfWhatMarksWouldHaveKept) {
  ExploreCase broken =
      CaseOf("", "auto_growth", "use_stream_safe_cuda_allocator=0");
  broken.options.data = "phantom";
  const Exploration found = Explore(broken.options, 5);
  EXPECT_NE(found.finding.find("allocator knew of stream"), std::string::npos)
      << found.finding;
}

TEST(ExplorationFindsTest, ReuseOfWhatGraphsName) {
  ExploreCase broken = CaseOf("", "auto_growth", "strata_cuda_graph=0");
  broken.options.streams = 1;
  broken.options.blocks = 2;
  broken.options.captures = 1;
  broken.options.data = "phantom";
  const Exploration found = Explore(broken.options, 6);
  EXPECT_NE(found.finding.find("dangling-operand"), std::string::npos)
      << found.finding;
}

}  // namespace
}  // namespace strata
