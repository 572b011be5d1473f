// Memory of several streams of one place together: little more than the same
// trace needs on one stream. Replays are deterministic.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/replay/replay.h"

namespace strata::tools {
namespace {

struct Exchange {
  const char* name;
  std::size_t streams;
  double ratio = 1.05;  // limit, relative to one stream

  friend std::ostream& operator<<(std::ostream& out, const Exchange& exchange) {
    return out << exchange.name << "_on_" << exchange.streams;
  }
};

std::uint64_t CallsOf(const ReplayResult& result, const char* name) {
  const auto found = result.device_calls.find(name);
  return found == result.device_calls.end() ? 0 : found->second;
}

class ExchangeTracesTest : public ::testing::TestWithParam<Exchange> {
 protected:
  ReplayResult On(std::size_t streams, Options options = {}) const {
    Trace trace = trace_;
    trace.FoldStreams(streams);
    options.allocator_strategy = "auto_growth";
    return CheckedReplay(trace, options);
  }
  std::uint64_t frees() const {
    return trace_.events.size() - trace_.allocated_bytes.size();
  }

  const Trace trace_ = ReadRmmLog(BundledTrace(GetParam().name));
};

TEST_P(ExchangeTracesTest, StreamsNeedWhatOneStreamNeeds) {
  // Best fit only: a front cache changes the result randomly, in both
  // directions.
  Options plain;
  plain.strategy.front_cache = "off";
  const auto one = static_cast<double>(On(1, plain).peak_reserved_bytes);
  const auto several =
      static_cast<double>(On(GetParam().streams).peak_reserved_bytes);
  EXPECT_LE(several, GetParam().ratio * one);
}

TEST_P(ExchangeTracesTest, OneEventServesManyFrees) {
  EXPECT_LE(64 * CallsOf(On(GetParam().streams), "event_record"), frees());
}

// Likewise with pending work at the time of the frees.
TEST_P(ExchangeTracesTest, OneEventServesManyFreesOfABusyDevice) {
  Options options;
  options.platform.sim_progress = "timed";
  Trace trace = trace_;
  trace.FoldStreams(GetParam().streams);
  trace.work_ns = 4000;
  const ReplayResult result = CheckedReplay(trace, options);
  EXPECT_LE(64 * CallsOf(result, "event_record"), frees());
}

INSTANTIATE_TEST_SUITE_P(
    Bundled, ExchangeTracesTest,
    ::testing::Values(Exchange{"gen_pipeline4", 4},
                      Exchange{"gen_producer_consumer8", 8},
                      Exchange{"gen_producer_consumer8", 2, 1.07},
                      Exchange{"gen_fsdp", 2},
                      Exchange{"gen_recompute_offload", 2},
                      Exchange{"gpt_varlen_two_streams", 2}),
    ::testing::PrintToStringParamName());

// With a shared strategy, two streams need as much as one: a stream first
// reuses its own freed memory.
TEST(SharedTracesTest, TwoStreamsOfBfcNeedWhatOneNeeds) {
  const Trace two = ReadRmmLog(BundledTrace("gpt_varlen_two_streams"));
  Trace one = two;
  one.FoldStreams(1);
  const Options options = Options::Parse("allocator_strategy=bfc");
  const ReplayResult result = CheckedReplay(two, options);
  EXPECT_EQ(result.peak_reserved_bytes,
            CheckedReplay(one, options).peak_reserved_bytes);
  const std::uint64_t frees = two.events.size() - two.allocated_bytes.size();
  EXPECT_LE(32 * CallsOf(result, "event_record"), frees);
}

TEST(SharedTracesTest, TwoStreamsOfBfcThatWaitNeedWhatOneNeeds) {
  Trace two = ReadRmmLog(BundledTrace("gpt_varlen_two_streams"));
  Trace one = two;
  one.FoldStreams(1);
  two.work_ns = 4000;
  // Freed memory is in use until the host waits.
  const char* lazy = "allocator_strategy=bfc,strata_sim_progress=lazy";
  const std::uint64_t one_needs =
      Replay(one, Options::Parse(lazy)).peak_reserved_bytes;
  EXPECT_EQ(Replay(two, Options::Parse(lazy)).peak_reserved_bytes,
            2 * one_needs);
  EXPECT_EQ(Replay(two, Options::Parse(std::string(lazy) +
                                       ",strata_cross_stream_wait=true"))
                .peak_reserved_bytes,
            one_needs);
}

}  // namespace
}  // namespace strata::tools
