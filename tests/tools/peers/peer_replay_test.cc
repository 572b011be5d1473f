// Peers as rows of `strata replay` and `strata bench`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/tools/command.h"
#include "strata/tests/tools/temp_file.h"
#include "strata/tests/tools/trace/trace_text.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/readers/trace_reader.h"
#include "strata/tools/replay/fit.h"
#include "strata/tools/replay/replay.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Options PeerOptions(const std::string& peer,
                    std::uint64_t memory_bytes = Gibibytes(80)) {
  Options options;
  options.allocator_strategy = peer;
  options.platform.platform = "sim";
  options.platform.sim_memory_bytes = memory_bytes;
  return options;
}

bool SimHasVirtualMemory() {
  SimPlatform platform(PeerOptions("").platform);
  return platform.sim_device(0).caps().virtual_memory;
}

// Peak reserved bytes divided by peak live bytes of the original, on a device
// of 80 GiB.
struct Ratio {
  const char* trace;
  const char* peer;
  double reserved;

  friend std::ostream& operator<<(std::ostream& out, const Ratio& ratio) {
    return out << ratio.peer << " on " << ratio.trace;
  }
};

class PeerTraceTest : public ::testing::TestWithParam<Ratio> {};

TEST_P(PeerTraceTest, ReservesWhatTheOriginalDoes) {
  if (std::string(GetParam().peer) == "peer:pytorch_expandable" &&
      !SimHasVirtualMemory()) {
    GTEST_SKIP() << "the simulated device has no virtual memory";
  }
  const Trace trace = ReadRmmLog(BundledTrace(GetParam().trace));
  const ReplayResult result =
      CheckedReplay(trace, PeerOptions(GetParam().peer));
  ASSERT_FALSE(result.failed_event);
  EXPECT_NEAR(static_cast<double>(result.peak_reserved_bytes) /
                  static_cast<double>(trace.peak_live_bytes),
              GetParam().reserved, 0.005 * GetParam().reserved);
}

constexpr const char* kPlain = "peer:pytorch";
constexpr const char* kExpandable = "peer:pytorch_expandable";
INSTANTIATE_TEST_SUITE_P(
    Pytorch, PeerTraceTest,
    ::testing::Values(Ratio{"gpt_serve_kvcache", kPlain, 1.123},
                      Ratio{"gpt_serve_kvcache", kExpandable, 1.089},
                      Ratio{"gpt_varlen_train", kPlain, 1.322},
                      Ratio{"gpt_varlen_train", kExpandable, 1.012},
                      Ratio{"gpt_varlen_two_streams", kPlain, 1.360},
                      Ratio{"gpt_varlen_two_streams", kExpandable, 1.075},
                      Ratio{"llama1b_ckpt_varlen", kPlain, 1.169},
                      Ratio{"llama1b_ckpt_varlen", kExpandable, 1.028},
                      Ratio{"mobilenet_multiscale", kPlain, 1.298},
                      Ratio{"mobilenet_multiscale", kExpandable, 1.010},
                      Ratio{"resnet50_train", kPlain, 1.044},
                      Ratio{"resnet50_train", kExpandable, 1.013}),
    [](const ::testing::TestParamInfo<Ratio>& test) {
      return std::string(test.param.trace) +
             (test.param.peer == kExpandable ? "_expandable" : "");
    });

// The strategy of this project with the same rules, in independent code.
Options ExactAutoGrowth() {
  Options options = PeerOptions("auto_growth");
  options.strategy.auto_growth_chunk_rule = "exact";
  options.strategy.auto_growth_give_back_limit = 0;
  options.strategy.front_cache = "off";
  return options;
}

class PaddleTraceTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PaddleTraceTest, ReservesWhatAutoGrowthWithExactChunksDoes) {
  const Trace trace = ReadRmmLog(BundledTrace(GetParam()));
  const ReplayResult peer = CheckedReplay(trace, PeerOptions("peer:paddle"));
  const ReplayResult ours = Replay(trace, ExactAutoGrowth());
  ASSERT_FALSE(peer.failed_event);
  // Here, streams lend memory to each other; the peer's streams do not.
  const bool has_streams = std::string(GetParam()) == "gpt_varlen_two_streams";
  EXPECT_NEAR(static_cast<double>(peer.peak_reserved_bytes) /
                  static_cast<double>(ours.peak_reserved_bytes),
              1, has_streams ? 0.01 : 0.002);
}

INSTANTIATE_TEST_SUITE_P(
    Bundled, PaddleTraceTest,
    ::testing::Values("gpt_serve_kvcache", "gpt_varlen_train",
                      "gpt_varlen_two_streams", "llama1b_ckpt_varlen",
                      "mobilenet_multiscale", "resnet50_train"),
    [](const ::testing::TestParamInfo<const char*>& test) {
      return std::string(test.param);
    });

TEST(PeerReplayTest, StopsAtTheRequestThatMemoryCannotMeet) {
  const Trace trace = TraceOf("+a 8388608, -a, +b 41943040, +c 41943040");
  const ReplayResult result =
      CheckedReplay(trace, PeerOptions("peer:pytorch", Mebibytes(64)));
  EXPECT_EQ(result.failed_event, 3U);
  EXPECT_THAT(result.failure, HasSubstr("peer:pytorch: cannot allocate 40.0"));
}

// The number reported by PyTorch. The program empties the cache five times. The
// recording began with 702545920 reserved bytes, many of them idle.
TEST(PeerReplayTest, ReservesWhatPytorchDidAroundEmptyCache) {
  const Trace trace = ReadTrace(
      STRATA_SOURCE_DIR "/tests/data/snapshots/empty_cache.pickle.gz", {});
  EXPECT_EQ(trace.releases, 5U);
  EXPECT_EQ(trace.recorded.peak_reserved_bytes, 908066816U);
  EXPECT_EQ(
      CheckedReplay(trace, PeerOptions("peer:pytorch")).peak_reserved_bytes,
      908066816U);
  // Without the layout at that time, and without the releases.
  Trace changed = trace;
  changed.recorded.segments.clear();
  EXPECT_EQ(Replay(changed, PeerOptions("peer:pytorch")).peak_reserved_bytes,
            903872512U);
  std::erase_if(changed.events,
                [](TraceEvent event) { return event.is_release(); });
  EXPECT_EQ(Replay(changed, PeerOptions("peer:pytorch")).peak_reserved_bytes,
            788529152U);
}

// The recorded segments do not fit, but the blocks do.
TEST(PeerReplayTest, BeginsAnewWhereTheRecordedSegmentsDoNotFit) {
  Trace trace = TraceOf("+a 2097152, +b 2097152");
  trace.recorded.segments = {{20 << 20, 0, {{0, 2 << 20}}},
                             {20 << 20, 0, {{0, 2 << 20}}}};
  trace.blocks_before = 2;
  const auto reserved = [&](std::uint64_t memory_bytes) {
    const ReplayResult result =
        CheckedReplay(trace, PeerOptions("peer:pytorch", memory_bytes));
    EXPECT_FALSE(result.failed_event);
    return result.peak_reserved_bytes;
  };
  EXPECT_EQ(reserved(Mebibytes(40)), Mebibytes(40));
  EXPECT_EQ(reserved(Mebibytes(38)), Mebibytes(20));
}

TEST(PeerReplayTest, FitCountsTheReactionToExhaustion) {
  // The idle segment of 20 MiB is released before 40 MiB are refused.
  const Trace trace = TraceOf("+a 8388608, -a, +b 41943040");
  const auto fit = FindFit(trace, PeerOptions("peer:pytorch"), Mebibytes(60),
                           [](int /*replays*/) {});
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->capacity_bytes, Mebibytes(40));
}

TEST(PeerReplayTest, FailureOfTheDeviceNamesTheLine) {
  Options options = PeerOptions("peer:paddle");
  options.platform.sim_faults = "mem_alloc:nth=2,status=IllegalAddress";
  const Trace trace = TraceOf("+a 100, +b 100");
  EXPECT_THAT([&] { Replay(trace, options); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("test.csv:3: mem_alloc failed")));
}

TEST(PeerReplayTest, EachStreamOfTheTraceIsAStreamOfThePeer) {
  const Trace one = TraceOf("+a 100, -a, +b 100, -b");
  const Trace two = TraceOf("+a 100 @1, -a @1, +b 100 @2, -b @2");
  for (const char* peer : {"peer:pytorch", "peer:paddle"}) {
    EXPECT_EQ(Replay(one, PeerOptions(peer)).device_calls.at("mem_alloc"), 1U);
    EXPECT_EQ(Replay(two, PeerOptions(peer)).device_calls.at("mem_alloc"), 2U);
  }
  EXPECT_EQ(
      Replay(two, PeerOptions("peer:rmm_pool")).device_calls.at("mem_alloc"),
      1U);
}

class PeerCommandTest : public ::testing::Test {
 protected:
  PeerCommandTest() {
    trace_.Write(std::string(kHeader).append(
        "1,0,allocate,0x10,3145728,0\n1,0,free,0x10,3145728,0\n"));
  }

  CommandResult Replay(const std::string& strategies,
                       const std::string& flag = "--format=json") {
    return RunStrata(
        {"replay", trace_.path(), "--allocator_strategy=" + strategies, flag});
  }

  const TempFile trace_;
};

TEST_F(PeerCommandTest, RowOfAPeerHasTheKeysOfAStrategy) {
  const CommandResult result =
      Replay("auto_growth,peer:rmm_pool,direct,peer:tf_bfc");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 4U);
  const auto keys = [](const nlohmann::json& row) {
    std::set<std::string> names;
    for (const auto& [key, value] : row.items()) names.insert(key);
    return names;
  };
  EXPECT_EQ(rows[1]["strategy"], "peer:rmm_pool");
  EXPECT_EQ(rows[3]["strategy"], "peer:tf_bfc");
  EXPECT_EQ(keys(rows[1]), keys(rows[0]));
  EXPECT_EQ(keys(rows[3]), keys(rows[0]));
  EXPECT_GT(rows[1]["ns_per_op"], 0);
  EXPECT_EQ(rows[1]["peak_reserved_bytes"], 4 << 20);
}

TEST_F(PeerCommandTest, UnknownPeerIsRefusedWithTheKnownOnes) {
  const CommandResult result = Replay("auto_growth,peer:jemalloc");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("no peer 'peer:jemalloc'"));
  EXPECT_THAT(result.err, HasSubstr("peer:pytorch_expandable"));
}

TEST_F(PeerCommandTest, PeerContradictsUseSystemAllocator) {
  const CommandResult result = Replay("peer:pytorch", "--use_system_allocator");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("use_system_allocator contradicts "
                                    "allocator_strategy=peer:pytorch"));
}

TEST_F(PeerCommandTest, PeerIsNoStrategyOfTheLibrary) {
  const CommandResult result =
      RunStrata({"info", "--allocator_strategy=peer:pytorch"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown strategy 'peer:pytorch'"));
  EXPECT_THAT(result.err, HasSubstr("strata replay and strata bench"));
}

TEST_F(PeerCommandTest, HelpOfReplayNamesThePeers) {
  EXPECT_THAT(RunStrata({"replay", "--help"}).out,
              HasSubstr("peer:pytorch_expandable"));
}

TEST_F(PeerCommandTest, BenchMeasuresPeers) {
  const CommandResult result = RunStrata(
      {"bench", "--format=json", "--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=pair,random_small_100",
       "--bench_allocators=peer:pytorch,peer:paddle"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 4U);
  for (const auto& row : rows) {
    EXPECT_EQ(row["status"], "ok") << row;
    EXPECT_GE(row["reserved_ratio"], 1) << row;
  }
}

// On a device that holds little more than the peak of live bytes.
TEST_F(PeerCommandTest, BenchSaysWhenAPeerIsOutOfMemory) {
  const CommandResult result = RunStrata(
      {"bench", "--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=random_1000", "--bench_allocators=peer:rmm_pool",
       "--strata_platform=sim", "--strata_sim_memory=5300MiB"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("peer:rmm_pool: cannot allocate"));
}

}  // namespace
}  // namespace strata::tools
