// Bundled traces through the driver pool: nothing overlaps, nothing leaks, and
// the memory of the driver equals the memory in use on the device.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/replay/replay.h"

namespace strata::tools {
namespace {

struct AsyncTrace {
  const char* name;
  double reserved_ratio;  // at most

  friend std::ostream& operator<<(std::ostream& out, const AsyncTrace& trace) {
    return out << trace.name;
  }
};

class ReplayCudaMallocAsyncTest : public ::testing::TestWithParam<AsyncTrace> {
 protected:
  static Options Async(const std::string& more = "") {
    return Options::Parse("allocator_strategy=cuda_malloc_async " + more);
  }

  const Trace trace_ = ReadRmmLog(BundledTrace(GetParam().name));
};

TEST_P(ReplayCudaMallocAsyncTest, ReplaysChecked) {
  const ReplayResult result =
      CheckedReplay(trace_, Async("strata_front_cache=off"));
  ASSERT_FALSE(result.failed_event) << result.failure;
  const double ratio = static_cast<double>(result.peak_reserved_bytes) /
                       static_cast<double>(trace_.peak_live_bytes);
  EXPECT_GE(ratio, 1.0);
  EXPECT_LE(ratio, GetParam().reserved_ratio);
  // One call for each request and each free, and no call of the system.
  EXPECT_EQ(result.device_calls.at("malloc_from_pool_async"),
            trace_.allocated_bytes.size());
  EXPECT_EQ(result.device_calls.count("mem_alloc"), 0U);
  EXPECT_EQ(result.device_calls.count("stream_synchronize"), 0U);
}

// The cache reduces the number of calls, and costs no memory.
TEST_P(ReplayCudaMallocAsyncTest, ReplaysWithWhatItKeeps) {
  const ReplayResult result = CheckedReplay(trace_, Async());
  ASSERT_FALSE(result.failed_event) << result.failure;
  const ReplayResult off =
      CheckedReplay(trace_, Async("strata_front_cache=off"));
  EXPECT_LE(result.peak_reserved_bytes, off.peak_reserved_bytes / 100 * 101);
  EXPECT_LT(result.device_calls.at("malloc_from_pool_async"),
            trace_.allocated_bytes.size());
  EXPECT_EQ(result.device_calls.count("stream_synchronize"), 0U);
}

INSTANTIATE_TEST_SUITE_P(Bundled, ReplayCudaMallocAsyncTest,
                         ::testing::Values(AsyncTrace{"resnet50_train", 1.05},
                                           AsyncTrace{"gpt_varlen_two_streams",
                                                      1.75}),
                         [](const ::testing::TestParamInfo<AsyncTrace>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace strata::tools
