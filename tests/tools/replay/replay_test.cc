#include "strata/tools/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "strata/base/size.h"
#include "strata/tests/tools/temp_file.h"
#include "strata/tests/tools/trace/trace_text.h"
#include "strata/tools/readers/rmm_log.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

Options DirectOn(std::uint64_t capacity_bytes) {
  Options options;
  options.allocator_strategy = "direct";
  options.platform.platform = "sim";
  options.platform.sim_memory_bytes = capacity_bytes;
  return options;
}

TEST(ReplayTest, CountsTheDeviceCallsOfTheTraceAndNotOfTheEnd) {
  // c stays live: its free belongs to the replay, not to the trace.
  const Trace trace = TraceOf("+a 100, +b 3000000, -a, +c 5");
  const ReplayResult result = Replay(trace, DirectOn(Gibibytes(1)));
  EXPECT_THAT(result.device_calls,
              UnorderedElementsAre(Pair("mem_alloc", 3), Pair("mem_free", 1),
                                   Pair("stream_synchronize", 1)));
  EXPECT_GT(result.modelled_device_us, 0);
  EXPECT_FALSE(result.failed_event);
}

TEST(ReplayTest, PeakReservedIsWhatTheDeviceShowsAsTaken) {
  const Trace trace = TraceOf("+a 2097153, -a, +b 2097152, +c 1");
  EXPECT_EQ(Replay(trace, DirectOn(Gibibytes(1))).peak_reserved_bytes,
            2 * kFrame);
}

TEST(ReplayTest, CheckedReplayComesToTheSame) {
  const Trace trace = TraceOf("+a 100, +b 3000000 @2, -a, +c 5 @3, -b, +d 0");
  const Options options;
  const ReplayResult plain = Replay(trace, options);
  const ReplayResult checked = CheckedReplay(trace, options);
  EXPECT_EQ(plain.peak_reserved_bytes, checked.peak_reserved_bytes);
  EXPECT_EQ(plain.device_calls, checked.device_calls);
  EXPECT_EQ(plain.modelled_device_us, checked.modelled_device_us);
}

TEST(ReplayTest, StopsAtTheRequestThatMemoryCannotMeet) {
  const Trace trace = TraceOf("+a 2097152, +b 2097152, -a, +c 2097153, +d 1");
  const ReplayResult result = CheckedReplay(trace, DirectOn(2 * kFrame));
  ASSERT_TRUE(result.failed_event);
  EXPECT_EQ(trace.LineOf(*result.failed_event), 5U);
  EXPECT_THAT(result.failure, HasSubstr("2.0 MiB"));
  EXPECT_EQ(result.device_calls.at("mem_free"), 1U);
}

TEST(ReplayTest, ReleaseReturnsIdleMemory) {
  const Trace kept = TraceOf("+a 12582912, -a, +b 20971520");
  const Trace released = TraceOf("+a 12582912, -a, !, +b 20971520");
  for (const char* strategy : {"auto_growth", "peer:pytorch", "peer:paddle"}) {
    Options options;
    options.allocator_strategy = strategy;
    const auto reserved = [&](const Trace& trace) {
      return CheckedReplay(trace, options).peak_reserved_bytes;
    };
    EXPECT_EQ(reserved(kept), 16 * kFrame) << strategy;
    EXPECT_EQ(reserved(released), 10 * kFrame) << strategy;
  }
}

TEST(ReplayTest, ATryThatFailsDoesNotEndTheReplay) {
  const Trace trace = TraceOf("+a 2097152, ?b 6291456, -a, ?c 4194304");
  const ReplayResult result = CheckedReplay(trace, DirectOn(2 * kFrame));
  EXPECT_FALSE(result.failed_event);
  EXPECT_EQ(result.failed_tries, 1U);
  EXPECT_EQ(result.first_failed_try, 1U);
  EXPECT_FALSE(ServesAll(result));
  EXPECT_EQ(result.device_calls.at("mem_free"), 2U);
  EXPECT_TRUE(ServesAll(CheckedReplay(trace, DirectOn(4 * kFrame))));
}

TEST(ReplayTest, RequestAboveEveryDeviceIsOutOfMemory) {
  const Trace trace = TraceOf("+a 18446744073709551615");
  EXPECT_EQ(Replay(trace, DirectOn(Gibibytes(1))).failed_event, 0U);
  EXPECT_EQ(Replay(trace, Options()).failed_event, 0U);
}

TEST(ReplayTest, OtherStreamsHaveChainsOfTheirOwn) {
  // One frame serves all small blocks of a stream.
  Options options;
  const Trace one = TraceOf("+a 100, +b 100, +c 100");
  const Trace three = TraceOf("+a 100 @1, +b 100 @7, +c 100 @9");
  EXPECT_EQ(Replay(one, options).peak_reserved_bytes, kFrame);
  EXPECT_EQ(Replay(three, options).peak_reserved_bytes, 3 * kFrame);
}

TEST(ReplayTest, FoldedStreamsAreOne) {
  Trace trace = TraceOf("+a 100, +b 100 @7, +c 100 @9, -b");
  trace.FoldStreams(2);
  EXPECT_EQ(trace.streams.size(), 2U);
  EXPECT_EQ(trace.events[0].stream(), 0U);
  EXPECT_EQ(trace.events[1].stream(), 1U);
  EXPECT_EQ(trace.events[2].stream(), 0U);
  trace.FoldStreams(1);
  EXPECT_EQ(Replay(trace, Options()).device_calls.at("create_memory"), 1U);
}

TEST(ReplayTest, WorkKeepsMemoryFromOtherStreams) {
  Trace trace = TraceOf("+a 12582912, -a, +b 12582912 @7, -b");
  Options options;
  options.allocator_strategy = "auto_growth";
  options.platform.sim_progress = "timed";
  EXPECT_EQ(Replay(trace, options).device_calls.at("mem_alloc"), 1U);
  trace.work_ns = 1'000'000'000;
  EXPECT_EQ(Replay(trace, options).device_calls.at("mem_alloc"), 2U);
}

TEST(ReplayTest, FailureOfTheDeviceNamesTheLine) {
  Options options = DirectOn(Gibibytes(1));
  options.platform.sim_faults = "mem_alloc:nth=2,status=IllegalAddress";
  const Trace trace = TraceOf("+a 100, +b 100");
  EXPECT_THAT([&] { Replay(trace, options); },
              ThrowsMessage<std::runtime_error>(HasSubstr("test.csv:3: ")));
}

TEST(ReplayTest, RefusesAWrongOption) {
  Options options = DirectOn(0);
  EXPECT_THROW(Replay(TraceOf("+a 1"), options), std::invalid_argument);
}

TEST(ReplayTest, RecordingOfAReplayReplaysAlike) {
  const Trace trace =
      TraceOf("+a 100, +b 3000000 @2, -a, +c 5000000 @2, -b, !, +d 777");
  const TempFile file;
  Options options;
  const ReplayResult first = Replay(trace, options);
  options.decorators.trace_path = file.path();
  Replay(trace, options);
  const Trace recorded = ReadRmmLog(file.path());
  EXPECT_EQ(recorded.allocated_bytes, trace.allocated_bytes);
  EXPECT_EQ(recorded.peak_live_bytes, trace.peak_live_bytes);
  EXPECT_EQ(recorded.releases, 1U);
  EXPECT_TRUE(recorded.events[5].is_release());
  const ReplayResult again = Replay(recorded, Options());
  EXPECT_EQ(again.peak_reserved_bytes, first.peak_reserved_bytes);
  EXPECT_EQ(again.device_calls, first.device_calls);
}

}  // namespace
}  // namespace strata::tools
