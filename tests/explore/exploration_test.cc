// Every program of 3 streams, 4 live blocks and a few steps, on the simulated
// device under its checker (cuda_semantics.md §5; docs/streams.md,
// docs/graphs.md). STRATA_EXPLORE_STEPS makes them longer.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/testing/explorer.h"
#include "strata/tests/testing/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kSteps = 5;
// Programs that are run at least, by their steps.
constexpr std::array<std::uint64_t, 9> kPrograms = {
    0, 2, 14, 110, 900, 8'000, 70'000, 600'000, 5'000'000};

struct ExploreCase {
  std::string name;
  ExploreOptions options;
};

std::ostream& operator<<(std::ostream& out, const ExploreCase& one) {
  return out << one.name;
}

bool IsShared(const std::string& strategy) {
  return strategy != "auto_growth" && strategy != "cuda_malloc_async" &&
         strategy != "direct";
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
  // Bytes, which take most of the time, in those alone.
  const std::size_t backed = cases.size();
  // Streams that are made to wait for each other.
  cases.push_back(
      CaseOf("auto_growth_waits", "auto_growth", "strata_cross_stream_wait"));
  cases.push_back(CaseOf("bfc_waits", "bfc", "strata_cross_stream_wait"));
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

std::uint64_t Steps() {
  return NumberFromEnvironment("STRATA_EXPLORE_STEPS", kSteps);
}

class ExplorationTest : public ::testing::TestWithParam<ExploreCase> {};

TEST_P(ExplorationTest, NoProgramMeetsAHazardOrLeavesAnything) {
  const std::uint64_t steps = Steps();
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

// That states are told apart by enough to leave programs out.
TEST_P(ExplorationTest, EqualStatesHaveEqualFutures) {
  ExploreOptions options = GetParam().options;
  options.data = "phantom";
  // Without leaving any out, so of fewer steps.
  EXPECT_EQ(DifferentFutures(options, std::min(Steps(), kSteps) - 1), "");
}

INSTANTIATE_TEST_SUITE_P(All, ExplorationTest, ::testing::ValuesIn(Cases()),
                         [](const auto& one) { return one.param.name; });

// What the exploration is worth: a layer that is left out is missed.
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
