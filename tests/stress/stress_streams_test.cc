// Random programs of streams and graphs under the checker: with work that runs
// late or in any order, on full devices and on failing ones.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/models/stream_model.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

// 10^6 over all cases.
constexpr std::uint64_t kStreamOperations = 36'000;
// A checker stores every stream that ever existed, so devices are replaced.
constexpr std::uint64_t kOperationsOfADevice = 6'000;

struct StreamsCase {
  std::string name;
  StreamModelOptions options;
};

std::ostream& operator<<(std::ostream& out, const StreamsCase& one) {
  return out << one.name;
}

std::vector<StreamsCase> Cases() {
  std::vector<StreamsCase> cases;
  for (const std::string& strategy : StrategyNames()) {
    const auto add = [&](const char* name, const char* more, bool has_faults) {
      StreamsCase one;
      one.name = strategy;
      one.name.append("_").append(name);
      one.options.facade = "allocator_strategy=";
      one.options.facade.append(strategy).append(" ").append(more);
      one.options.has_faults = has_faults;
      cases.push_back(one);
      return &cases.back().options;
    };
    add("lazy", "", false);
    add("waits", "strata_cross_stream_wait", false)->progress = "seeded";
    add("faults", "", true);
    add("full", "", true)->device_bytes = Mebibytes(24);
  }
  return cases;
}

class StressStreamsTest : public ::testing::TestWithParam<StreamsCase> {
 protected:
  // Suppresses the log of failed device calls.
  void SetUp() override { FLAGS_minloglevel = google::GLOG_FATAL; }
  void TearDown() override { FLAGS_minloglevel = google::GLOG_INFO; }
};

// The seed of the nth device. STRATA_STRESS_SEED is the seed of the first one,
// so each failure can be repeated by its own seed.
std::uint64_t SeedOf(std::uint64_t nth) {
  return nth == 0
             ? StressSeed()
             : StressSeed() * 0x9e3779b97f4a7c15 + nth * 0x2545f4914f6cdd1d;
}

TEST_P(StressStreamsTest, CorrectProgramsMeetNoHazard) {
  const std::uint64_t operations = StressOperations(kStreamOperations);
  StreamModel::Counts counts;
  for (std::uint64_t done = 0; done < operations && !HasFailure();) {
    StreamModelOptions options = GetParam().options;
    options.seed = SeedOf(done / kOperationsOfADevice);
    const std::uint64_t end = std::min(operations, done + kOperationsOfADevice);
    StreamModel model(options);
    for (; done < end && !HasFailure(); ++done) model.Step();
    if (!HasFailure()) model.Finish();
    counts.allocations += model.counts().allocations;
    counts.marks += model.counts().marks;
    counts.launches += model.counts().launches;
    counts.refusals += model.counts().refusals;
    counts.failed_calls += model.counts().failed_calls;
    if (HasFailure()) {
      ADD_FAILURE() << "STRATA_STRESS_SEED=" << options.seed
                    << " STRATA_STRESS_OPERATIONS=" << kOperationsOfADevice
                    << " stress_tests --gtest_filter=*" << GetParam().name;
    }
  }
  std::cout << "  " << counts.allocations << " allocations, " << counts.refusals
            << " refused, " << counts.marks << " marks, " << counts.launches
            << " launches, " << counts.failed_calls << " failed calls"
            << std::endl;
  EXPECT_GT(counts.allocations, 0U);
  EXPECT_GT(counts.marks, 0U);
  EXPECT_GT(counts.launches, 0U);
  if (GetParam().options.has_faults) {
    EXPECT_GT(counts.failed_calls, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, StressStreamsTest, ::testing::ValuesIn(Cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace strata
