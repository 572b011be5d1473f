// The bundled traces: exact counts of their requests, and bounds for the
// results of auto_growth and of virtual_memory.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/rmm_log.h"
#include "strata/tools/replay/replay.h"

namespace strata::tools {
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
  double fit_ratio;       // of a device that serves the trace
  // The two bounds for virtual_memory.
  double mapped_reserved_ratio;
  double mapped_fit_ratio;

  friend std::ostream& operator<<(std::ostream& out, const Golden& golden) {
    return out << golden.name;
  }
};

class GoldenTracesTest : public ::testing::TestWithParam<Golden> {
 private:
  double RatioOf(std::uint64_t bytes) const {
    EXPECT_GE(bytes, trace_.peak_live_bytes);
    return static_cast<double>(bytes) /
           static_cast<double>(trace_.peak_live_bytes);
  }

 protected:
  static Options Of(const char* strategy) {
    Options options;
    options.allocator_strategy = strategy;
    return options;
  }
  static Options Chunks() { return Of("auto_growth"); }
  static Options Mapped() { return Of("virtual_memory"); }

  // Peak of reserved bytes, over the peak of live bytes.
  double ReservedRatio(const Options& options) const {
    const ReplayResult result = CheckedReplay(trace_, options);
    EXPECT_FALSE(result.failed_event);
    return RatioOf(result.peak_reserved_bytes);
  }
  // Whether a device of `ratio` times the peak of live bytes serves the trace.
  bool IsServedBy(double ratio, Options options) const {
    options.platform.sim_memory_bytes = static_cast<std::uint64_t>(
        ratio * static_cast<double>(trace_.peak_live_bytes));
    return ServesAll(Replay(trace_, options));
  }

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

TEST_P(GoldenTracesTest, ChunksKeepReservedMemoryLow) {
  EXPECT_LE(ReservedRatio(Chunks()), GetParam().reserved_ratio);
}

TEST_P(GoldenTracesTest, ChunksFitOnASmallDevice) {
  EXPECT_TRUE(IsServedBy(GetParam().fit_ratio, Chunks()));
}

TEST_P(GoldenTracesTest, MappedMemoryIsReservedSparingly) {
  EXPECT_LE(ReservedRatio(Mapped()), GetParam().mapped_reserved_ratio);
}

TEST_P(GoldenTracesTest, MappedMemoryFitsOnASmallDevice) {
  EXPECT_TRUE(IsServedBy(GetParam().mapped_fit_ratio, Mapped()));
}

INSTANTIATE_TEST_SUITE_P(
    Bundled, GoldenTracesTest,
    ::testing::Values(Golden{"resnet50_train", 7560, 3829, 815, 4535563664, 1,
                             1.05, 1.05, 1.03, 1.01},
                      Golden{"gpt_varlen_train", 23747, 11948, 790, 13809079892,
                             1, 1.05, 1.05, 1.03, 1.01},
                      Golden{"gpt_varlen_two_streams", 23747, 11948, 790,
                             13809079892, 2, 1.07, 1.08, 1.03, 1.01},
                      Golden{"llama1b_ckpt_varlen", 39843, 20068, 1478,
                             22978112108, 1, 1.04, 1.04, 1.04, 1.01},
                      Golden{"mobilenet_multiscale", 11287, 5670, 867,
                             5564031000, 1, 1.06, 1.06, 1.03, 1.01},
                      Golden{"gpt_serve_kvcache", 89997, 45141, 297, 1834678784,
                             1, 1.15, 1.15, 1.07, 1.03},
                      Golden{"gen_pipeline4", 60774, 30536, 740, 24492580752, 4,
                             1.18, 1.14, 1.03, 1.01},
                      Golden{"gen_producer_consumer8", 39024, 19512, 67,
                             943943739, 8, 1.27, 1.19, 1.2, 1.03},
                      Golden{"gen_fsdp", 14750, 7426, 221, 21947565008, 2, 1.08,
                             1.08, 1.06, 1.01},
                      Golden{"gen_recompute_offload", 11979, 6042, 122,
                             12631883484, 2, 1.07, 1.06, 1.04, 1.01},
                      Golden{"torch/compile_gpt", 18126, 9286, 737, 19252856292,
                             1, 1.13, 1.06, 1.01, 1.003},
                      Golden{"torch/detection_boxes", 29986, 15215, 681,
                             20012272432, 1, 1.09, 1.03, 1.035, 1.005},
                      Golden{"torch/fsdp8", 41087, 20873, 907, 18160766176, 3,
                             1.52, 1.13, 1.23, 1.003},
                      Golden{"torch/gnn_sampled", 16178, 8103, 47, 14390116668,
                             1, 1.16, 1.05, 1.04, 1.003},
                      Golden{"torch/graphs_train", 27430, 14086, 1183,
                             18740863956, 3, 1.04, 1.03, 1.02, 1.003},
                      Golden{"torch/leak_losses", 43949, 23431, 3134,
                             43805119828, 1, 1.04, 1.04, 1.01, 1.003},
                      Golden{"torch/llama1b_pack", 43260, 21852, 809,
                             29269364872, 1, 1.11, 1.05, 1.04, 1.01},
                      Golden{"torch/llama8b_full_ckpt", 79442, 40305, 1752,
                             64352028460, 1, 1.05, 1.02, 1.03, 1.01},
                      Golden{"torch/moe_train", 142675, 71727, 1832,
                             23452192040, 1, 1.12, 1.02, 1.01, 1.003},
                      Golden{"torch/offload_side_stream", 19347, 9895, 737,
                             28311086104, 2, 1.28, 1.1, 1.03, 1.003},
                      Golden{"torch/resnet50_val", 22654, 11570, 809,
                             7405903900, 1, 1.06, 1.04, 1.03, 1.005},
                      Golden{"torch/serve_generate", 143133, 71605, 114,
                             7960915792, 1, 1.1, 1.02, 1.035, 1.005},
                      Golden{"torch/tp8", 34911, 17893, 1457, 23551858736, 1,
                             1.35, 1.13, 1.07, 1.01},
                      Golden{"torch/vit_l_multires", 85946, 43760, 2796,
                             44077634472, 1, 1.02, 1.02, 1.01, 1.003}),
    [](const ::testing::TestParamInfo<Golden>& test) {
      const std::string name = test.param.name;
      return name.substr(name.find('/') + 1);
    });

}  // namespace
}  // namespace strata::tools
