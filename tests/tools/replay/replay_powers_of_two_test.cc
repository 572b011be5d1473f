// Bundled traces through the strategies that round sizes up to powers of two
// and cache freed blocks: nearly every request is a hit, at a bounded cost in
// memory. docs/guide/choose_a_strategy.md has the effect.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/replay/replay.h"

namespace strata::tools {
namespace {

constexpr const char* kPool =
    "allocator_strategy=pool,pool_rounder=pow2,pool_size_limit=1000";
constexpr const char* kPoolAsAsked = "allocator_strategy=pool";
constexpr const char* kAsync =
    "allocator_strategy=cuda_malloc_async,cuda_malloc_async_bins=pow2";
constexpr const char* kAsyncAsAsked = "allocator_strategy=cuda_malloc_async";

struct RoundedTrace {
  const char* name;
  double reserved_ratio;       // limit, relative to live bytes
  std::uint64_t memory_calls;  // limit, in 1000 operations
  const char* rounded = kPool;
  const char* as_asked = kPoolAsAsked;

  friend std::ostream& operator<<(std::ostream& out,
                                  const RoundedTrace& trace) {
    return out << trace.name;
  }
};

RoundedTrace Async(const char* name, double ratio, std::uint64_t calls) {
  return {name, ratio, calls, kAsync, kAsyncAsAsked};
}

class ReplayPowersOfTwoTest : public ::testing::TestWithParam<RoundedTrace> {
 protected:
  ReplayResult With(const char* options) const {
    return CheckedReplay(trace_, Options::Parse(options));
  }
  static std::uint64_t MemoryCalls(const ReplayResult& result) {
    std::uint64_t calls = 0;
    for (const char* name :
         {"mem_alloc", "mem_free", "malloc_from_pool_async", "free_async"}) {
      const auto found = result.device_calls.find(name);
      if (found != result.device_calls.end()) calls += found->second;
    }
    return calls;
  }

  const Trace trace_ = ReadRmmLog(BundledTrace(GetParam().name));
};

TEST_P(ReplayPowersOfTwoTest, AreNearlyAlwaysHits) {
  const ReplayResult result = With(GetParam().rounded);
  ASSERT_FALSE(result.failed_event) << result.failure;
  EXPECT_LE(1000 * MemoryCalls(result),
            GetParam().memory_calls * trace_.events.size());
  EXPECT_LE(
      static_cast<double>(result.peak_reserved_bytes),
      GetParam().reserved_ratio * static_cast<double>(trace_.peak_live_bytes));
  EXPECT_LT(MemoryCalls(result), MemoryCalls(With(GetParam().as_asked)));
}

INSTANTIATE_TEST_SUITE_P(
    Pool, ReplayPowersOfTwoTest,
    ::testing::Values(RoundedTrace{"gen_fsdp", 1.64, 24},
                      RoundedTrace{"gen_pipeline4", 2.28, 24},
                      RoundedTrace{"gen_producer_consumer8", 2.10, 4},
                      RoundedTrace{"gen_recompute_offload", 1.48, 13},
                      RoundedTrace{"gpt_serve_kvcache", 1.82, 5},
                      RoundedTrace{"gpt_varlen_train", 2.10, 58},
                      RoundedTrace{"gpt_varlen_two_streams", 2.10, 54},
                      RoundedTrace{"llama1b_ckpt_varlen", 1.19, 46},
                      RoundedTrace{"mobilenet_multiscale", 2.00, 88},
                      RoundedTrace{"resnet50_train", 1.52, 114}),
    ::testing::PrintToStringParamName());

// A large block that changes streams needs no call for memory.
INSTANTIATE_TEST_SUITE_P(
    CudaMallocAsync, ReplayPowersOfTwoTest,
    ::testing::Values(Async("gen_fsdp", 1.64, 24),
                      Async("gen_pipeline4", 2.28, 25),
                      Async("gen_producer_consumer8", 2.15, 9),
                      Async("gen_recompute_offload", 1.45, 13),
                      Async("gpt_serve_kvcache", 1.83, 5),
                      Async("gpt_varlen_train", 2.11, 53),
                      Async("gpt_varlen_two_streams", 2.11, 53),
                      Async("llama1b_ckpt_varlen", 1.20, 40),
                      Async("mobilenet_multiscale", 2.00, 88),
                      Async("resnet50_train", 1.52, 115)),
    ::testing::PrintToStringParamName());

}  // namespace
}  // namespace strata::tools
