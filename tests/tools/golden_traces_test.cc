// The bundled traces: exact counts of their requests, and bounds for the result
// of the default strategy.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/fit.h"
#include "strata/tools/replay.h"
#include "strata/tools/rmm_log.h"

namespace strata {
namespace {

struct Golden {
  const char* name;
  // Counted in the files by a separate program.
  std::size_t operations;
  std::size_t allocates;
  std::size_t most_blocks;  // live at once
  std::uint64_t peak_live_bytes;
  std::size_t streams;
  double reserved_ratio;  // at most
  double fit_ratio;       // at most

  friend std::ostream& operator<<(std::ostream& out, const Golden& golden) {
    return out << golden.name;
  }
};

class GoldenTracesTest : public ::testing::TestWithParam<Golden> {
 protected:
  const Trace trace_ = ReadRmmLog(BundledTrace(GetParam().name));
};

TEST_P(GoldenTracesTest, IsReadCompletely) {
  EXPECT_EQ(trace_.events.size(), GetParam().operations);
  EXPECT_EQ(trace_.allocated_bytes.size(), GetParam().allocates);
  EXPECT_EQ(trace_.slots, GetParam().most_blocks);
  EXPECT_EQ(trace_.peak_live_bytes, GetParam().peak_live_bytes);
  EXPECT_EQ(trace_.streams.size(), GetParam().streams);
  EXPECT_EQ(trace_.failures_skipped, 0U);
  EXPECT_EQ(trace_.frees_of_other_size, 0U);
}

TEST_P(GoldenTracesTest, DefaultStrategyKeepsReservedMemoryLow) {
  const ReplayResult result = CheckedReplay(trace_, Options());
  ASSERT_FALSE(result.failed_event);
  const double ratio = static_cast<double>(result.peak_reserved_bytes) /
                       static_cast<double>(trace_.peak_live_bytes);
  EXPECT_GE(ratio, 1.0);
  EXPECT_LE(ratio, GetParam().reserved_ratio);
}

TEST_P(GoldenTracesTest, DefaultStrategyFitsOnASmallDevice) {
  const auto fit = FindFit(trace_, Options(), 2 * trace_.peak_live_bytes,
                           [](int /*replays*/) {});
  ASSERT_TRUE(fit);
  const double ratio = static_cast<double>(fit->capacity_bytes) /
                       static_cast<double>(trace_.peak_live_bytes);
  EXPECT_GE(ratio, 1.0);
  EXPECT_LE(ratio, GetParam().fit_ratio);
}

INSTANTIATE_TEST_SUITE_P(
    Bundled, GoldenTracesTest,
    ::testing::Values(
        Golden{"resnet50_train", 7560, 3829, 815, 4535563664, 1, 1.05, 1.05},
        Golden{"gpt_varlen_train", 23747, 11948, 790, 13809079892, 1, 1.05,
               1.05},
        Golden{"gpt_varlen_two_streams", 23747, 11948, 790, 13809079892, 2,
               1.07, 1.08},
        Golden{"llama1b_ckpt_varlen", 39843, 20068, 1478, 22978112108, 1, 1.04,
               1.04},
        Golden{"mobilenet_multiscale", 11287, 5670, 867, 5564031000, 1, 1.06,
               1.06},
        Golden{"gpt_serve_kvcache", 89997, 45141, 297, 1834678784, 1, 1.15,
               1.15},
        Golden{"gen_pipeline4", 60774, 30536, 740, 24492580752, 4, 1.18, 1.14},
        Golden{"gen_producer_consumer8", 39024, 19512, 67, 943943739, 8, 1.27,
               1.19},
        Golden{"gen_fsdp", 14750, 7426, 221, 21947565008, 2, 1.08, 1.08},
        Golden{"gen_recompute_offload", 11979, 6042, 122, 12631883484, 2, 1.07,
               1.06}),
    [](const ::testing::TestParamInfo<Golden>& test) {
      return std::string(test.param.name);
    });

}  // namespace
}  // namespace strata
