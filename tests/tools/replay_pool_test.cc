// Bundled traces through the strategy pool with sizes of powers of two and room
// for what they leave: nearly every request is a hit, at a bounded price in
// memory. docs/strategies.md has the times.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/replay.h"
#include "strata/tools/rmm_log.h"

namespace strata {
namespace {

struct PoolTrace {
  const char* name;
  double reserved_ratio;       // to what is live, at most
  std::uint64_t system_calls;  // in 1000 operations, at most

  friend std::ostream& operator<<(std::ostream& out, const PoolTrace& trace) {
    return out << trace.name;
  }
};

class ReplayPoolTest : public ::testing::TestWithParam<PoolTrace> {
 protected:
  ReplayResult With(const char* options) const {
    return CheckedReplay(
        trace_,
        Options::Parse(std::string("allocator_strategy=pool,") + options));
  }
  static std::uint64_t SystemCalls(const ReplayResult& result) {
    std::uint64_t calls = 0;
    for (const char* name : {"mem_alloc", "mem_free"}) {
      const auto found = result.device_calls.find(name);
      if (found != result.device_calls.end()) calls += found->second;
    }
    return calls;
  }

  const Trace trace_ = ReadRmmLog(BundledTrace(GetParam().name));
};

TEST_P(ReplayPoolTest, PowersOfTwoWithRoomAreNearlyAlwaysHits) {
  const ReplayResult result = With("pool_rounder=pow2,pool_size_limit=1000");
  ASSERT_FALSE(result.failed_event) << result.failure;
  EXPECT_LE(1000 * SystemCalls(result),
            GetParam().system_calls * trace_.events.size());
  EXPECT_LE(
      static_cast<double>(result.peak_reserved_bytes),
      GetParam().reserved_ratio * static_cast<double>(trace_.peak_live_bytes));
  EXPECT_LT(SystemCalls(result), SystemCalls(With("pool_rounder=none")));
}

INSTANTIATE_TEST_SUITE_P(
    Bundled, ReplayPoolTest,
    ::testing::Values(PoolTrace{"gen_fsdp", 1.64, 24},
                      PoolTrace{"gen_pipeline4", 2.28, 24},
                      PoolTrace{"gen_producer_consumer8", 2.10, 4},
                      PoolTrace{"gen_recompute_offload", 1.48, 13},
                      PoolTrace{"gpt_serve_kvcache", 1.82, 5},
                      PoolTrace{"gpt_varlen_train", 2.10, 58},
                      PoolTrace{"gpt_varlen_two_streams", 2.10, 54},
                      PoolTrace{"llama1b_ckpt_varlen", 1.19, 46},
                      PoolTrace{"mobilenet_multiscale", 2.00, 88},
                      PoolTrace{"resnet50_train", 1.52, 114}),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace strata
