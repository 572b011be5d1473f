// The memory cost of the front cache for work with random sizes: hotpath.md
// §9.4, over several seeds, because one chunk is several per cent of a result.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tools/bench/subject.h"

namespace strata::tools {
namespace {

struct Case {
  const char* name;
  const char* allocator;
  const char* workload;
  const char* mode;  // of the front cache
  double most;       // ratio of reserved bytes to those without a cache
  std::uint64_t seeds;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.allocator << ' ' << c.workload << ' ' << c.mode;
}

// Peak reserved bytes divided by peak live bytes.
double ReservedRatio(const Case& c, const std::string& mode,
                     std::uint64_t seed) {
  BenchScriptOptions script_options;
  script_options.pairs = 4000;
  script_options.seed = seed;
  const BenchWorkload workload = FindBenchWorkload(c.workload, script_options);
  const BenchScript script = workload.make(script_options);
  const Options options = Options::Parse(
      "strata_platform=sim,strata_sim_memory=1TiB,strata_front_cache=" + mode);
  const auto subject = MakeBenchSubject(FindBenchAllocator(c.allocator),
                                        workload, script, options, {});
  subject->Run(2 * script.pairs());
  return static_cast<double>(subject->peak_reserved_bytes().value()) /
         static_cast<double>(subject->peak_live_bytes());
}

class FrontCacheMemoryTest : public testing::TestWithParam<Case> {};

TEST_P(FrontCacheMemoryTest, CostsAsMuchMemoryAsItsModeSays) {
  double logs = 0;
  for (std::uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
    logs += std::log(ReservedRatio(GetParam(), GetParam().mode, seed) /
                     ReservedRatio(GetParam(), "off", seed));
  }
  const double mean = std::exp(logs / static_cast<double>(GetParam().seeds));
  RecordProperty("mean", std::to_string(mean));
  EXPECT_LE(mean, GetParam().most);
}

INSTANTIATE_TEST_SUITE_P(
    All, FrontCacheMemoryTest,
    testing::Values(
        Case{"random_memory", "auto_growth", "random_1000", "memory", 1.01, 32},
        Case{"small_memory", "auto_growth", "random_small_1000", "memory", 1.01,
             32},
        Case{"training_memory", "auto_growth", "training", "memory", 1.01, 32},
        Case{"jittered_memory", "auto_growth", "training_jittered", "memory",
             1.01, 32},
        Case{"random_speed", "auto_growth", "random_1000", "speed", 1.05, 32},
        Case{"small_speed", "auto_growth", "random_small_1000", "speed", 1.05,
             32},
        Case{"training_speed", "auto_growth", "training", "speed", 1.05, 32},
        Case{"jittered_speed", "auto_growth", "training_jittered", "speed",
             1.05, 8},
        Case{"driver_random_memory", "cuda_malloc_async", "random_1000",
             "memory", 1.01, 8},
        Case{"driver_training_memory", "cuda_malloc_async", "training",
             "memory", 1.01, 8},
        Case{"driver_jittered_memory", "cuda_malloc_async", "training_jittered",
             "memory", 1.01, 2},
        Case{"driver_random_speed", "cuda_malloc_async", "random_1000", "speed",
             1.05, 8},
        Case{"driver_training_speed", "cuda_malloc_async", "training", "speed",
             1.05, 8},
        Case{"driver_jittered_speed", "cuda_malloc_async", "training_jittered",
             "speed", 1.05, 2}),
    [](const testing::TestParamInfo<Case>& instance) {
      return instance.param.name;
    });

}  // namespace
}  // namespace strata::tools
