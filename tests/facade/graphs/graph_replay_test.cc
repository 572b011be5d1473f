// Ten graphs that share a pool and compute. They are replayed while a program
// allocates, writes and frees beside them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/check/hazard_monitor.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kGraphs = 10;
constexpr std::size_t kResultBytes = 4096;
// Size of each temporary of the largest graph.
constexpr std::size_t kLargestBytes = std::size_t{640} << 10;
constexpr int kForeign = 10'000;
constexpr int kRounds = 20;

// Argument of a kernel besides its ranges.
struct Mix {
  std::uint64_t seed = 0;
  std::size_t from_words = 0;
  std::size_t with_words = 0;
  std::size_t to_words = 0;
};

// Every word of ranges[2] depends on the words of the other two.
void MixWords(void* argument, void* const* ranges) {
  const auto& mix = *static_cast<const Mix*>(argument);
  const auto* from = static_cast<const std::uint64_t*>(ranges[0]);
  const auto* with = static_cast<const std::uint64_t*>(ranges[1]);
  auto* to = static_cast<std::uint64_t*>(ranges[2]);
  std::fill_n(to, mix.to_words, mix.seed);
  const std::size_t words = std::max(mix.from_words, mix.to_words);
  std::size_t f = 0;
  std::size_t w = 0;
  std::size_t t = 0;
  for (std::size_t i = 0; i < words; ++i) {
    to[t] = (to[t] ^ from[f]) * 0x9E3779B97F4A7C15u + with[w];
    if (++f == mix.from_words) f = 0;
    if (++w == mix.with_words) w = 0;
    if (++t == mix.to_words) t = 0;
  }
}

PlatformOptions Backed(const std::string& progress) {
  PlatformOptions options;
  options.sim_progress = progress;
  options.sim_data = "backed";
  options.sim_check_hazards = "report";
  return options;
}

class GraphReplayTest : public GraphFixture,
                        public testing::WithParamInterface<const char*> {
 protected:
  using Words = std::vector<std::uint64_t>;

  GraphReplayTest()
      : GraphFixture(Backed(GetParam())),
        stream_(NewStream()),
        foreign_{NewStream(), NewStream(), stream_} {
    platform_->hazard_monitor()->SetHandler(
        [this](const check::HazardReport& report) {
          reports_ += ToString(report);
        });
    Build();
    seed_ = Alloc(kResultBytes, stream_);
    EXPECT_EQ(device().MemsetAsync(AddressOf(seed_), 7, kResultBytes, stream_),
              Status::kSuccess);
    for (AllocationPtr& result : results_) {
      result = Alloc(kResultBytes, stream_);
    }
    EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  }
  ~GraphReplayTest() override { EXPECT_EQ(reports_, ""); }

  static DevicePtr AddressOf(const AllocationPtr& allocation) {
    return reinterpret_cast<DevicePtr>(allocation->data());
  }

  // Computes `to` from `from` and `with`, in stream_.
  void Compute(const AllocationPtr& from, const AllocationPtr& with,
               const AllocationPtr& to) {
    const WorkRange ranges[] = {{AddressOf(from), from->size(), false},
                                {AddressOf(with), with->size(), false},
                                {AddressOf(to), to->size(), true}};
    mixes_.push_back(
        {mixes_.size(), from->size() / 8, with->size() / 8, to->size() / 8});
    EXPECT_EQ(platform_->work(0)->Launch(stream_, ranges, 3, &MixWords,
                                         &mixes_.back()),
              Status::kSuccess);
  }

  // Bytes of each temporary of graph `i`; the first graph is the largest.
  static std::size_t BytesOf(std::size_t i) {
    return kLargestBytes * (kGraphs - i) / kGraphs;
  }

  // Graph `i` computes results_[i] from the result of the previous graph. The
  // first one also leaves state_, which lies in the pool and which the others
  // read.
  Graph Capture(std::size_t i, GraphPoolId pool) {
    CaptureGuard guard(facade(), stream_, pool);
    const AllocationPtr& before = i == 0 ? seed_ : results_[i - 1];
    if (i == 0) {
      state_ = Alloc(kResultBytes, stream_);
      Compute(seed_, seed_, state_);
    }
    AllocationPtr a = Alloc(BytesOf(i), stream_);
    Compute(before, state_, a);
    AllocationPtr b = Alloc(BytesOf(i), stream_);
    Compute(a, before, b);
    a.reset();
    AllocationPtr c = Alloc(BytesOf(i), stream_);
    Compute(b, b, c);
    Compute(c, state_, results_[i]);
    temporaries_.push_back(AddressOf(b));
    temporaries_.push_back(AddressOf(c));
    return guard.End();
  }

  void CaptureAll(GraphPoolId pool) {
    for (std::size_t i = 0; i < kGraphs; ++i) {
      graphs_.push_back(Capture(i, pool));
      GraphExec exec;
      ASSERT_EQ(device().GraphInstantiate(&exec, graphs_.back(), 0),
                Status::kSuccess);
      execs_.push_back(exec);
    }
  }
  void DropLast() {
    EXPECT_EQ(device().GraphExecDestroy(execs_.back()), Status::kSuccess);
    EXPECT_EQ(device().GraphDestroy(graphs_.back()), Status::kSuccess);
    execs_.pop_back();
    graphs_.pop_back();
    DropGraphs();  // the device reports the end of this graph
  }
  void DropAll() {
    while (!graphs_.empty()) DropLast();
  }

  // A pool without an active capture.
  GraphPoolId NewPool() {
    const GraphPoolId pool = facade().PrepareMemoryPoolForCUDAGraph(0, stream_);
    facade().CaptureEnded(pool);
    return pool;
  }

  // Replays all graphs in order, and returns all their results.
  Words Replay() {
    for (const GraphExec& exec : execs_) Launch(exec, stream_);
    EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
    Words words;
    for (const AllocationPtr& result : results_) {
      const auto* begin = static_cast<const std::uint64_t*>(
          device().HostView(AddressOf(result), kResultBytes));
      words.insert(words.end(), begin, begin + kResultBytes / 8);
    }
    return words;
  }
  // Clears the results, so that a replay without effect is detected.
  void ClearResults() {
    for (const AllocationPtr& result : results_) {
      EXPECT_EQ(
          device().MemsetAsync(AddressOf(result), 0, kResultBytes, stream_),
          Status::kSuccess);
    }
  }

  // An allocation of the concurrent program. It is fully written, and kept for
  // a while. Sometimes two streams use it.
  void AllocateForeign(std::mt19937_64& random) {
    const std::size_t log_bytes = 4 + random() % 15;
    const std::size_t bytes =
        1 + random() % (std::size_t{1} << log_bytes) + random() % 64;
    const Stream& stream = foreign_[random() % 3];
    AllocationPtr block = Alloc(bytes, stream);
    const DevicePtr begin = AddressOf(block);
    for (const DevicePtr taken : temporaries_) {
      ASSERT_FALSE(begin <= taken && taken < begin + block->size());
    }
    const int value = static_cast<int>(random() % 256);
    EXPECT_EQ(device().MemsetAsync(begin, value, bytes, stream),
              Status::kSuccess);
    if (random() % 8 == 0) {
      const Stream& other = foreign_[stream == foreign_[0] ? 1 : 0];
      Join(stream, other);
      EXPECT_EQ(device().MemsetAsync(begin, value, bytes, other),
                Status::kSuccess);
      facade().RecordStream(block, other);
    }
    held_.push_back(std::move(block));
    while (held_.size() > random() % 64) {
      std::swap(held_[random() % held_.size()], held_.back());
      held_.pop_back();
    }
  }

  const Stream stream_;
  const Stream foreign_[3];  // one of them is the graphs' stream
  std::string reports_;
  std::deque<Mix> mixes_;  // of all kernels; must outlive the graphs
  AllocationPtr seed_;
  AllocationPtr state_;
  AllocationPtr results_[kGraphs];
  std::vector<DevicePtr> temporaries_;
  std::vector<Graph> graphs_;
  std::vector<GraphExec> execs_;
  std::vector<AllocationPtr> held_;
};

TEST_P(GraphReplayTest, ForeignAllocationsChangeNoResult) {
  const GraphPoolId pool = NewPool();
  CaptureAll(pool);
  const Words expected = Replay();
  ASSERT_NE(std::count(expected.begin(), expected.end(), 0),
            static_cast<std::ptrdiff_t>(expected.size()));
  const std::size_t reserved = facade().GraphPoolReserved(pool);
  std::mt19937_64 random(1);
  for (int round = 0; round < kRounds; ++round) {
    ClearResults();
    for (int i = 0; i < kForeign / kRounds; ++i) {
      AllocateForeign(random);
      // Also between the graphs of a sequence, while the work is pending.
      if (i % 100 == 0) Launch(execs_.front(), stream_);
    }
    if (round % 5 == 4) Release();
    ASSERT_EQ(Replay(), expected) << "round " << round;
  }
  EXPECT_EQ(facade().GraphPoolReserved(pool), reserved);
  held_.clear();
  DropAll();
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
}

// paddle.md §5 A4 (#60516): ten graphs in one pool need the maximum of their
// separate needs, not the sum.
TEST_P(GraphReplayTest, ASharedPoolHoldsWhatTheLargestGraphNeeds) {
  std::size_t largest = 0;
  std::size_t sum = 0;
  state_ = Alloc(kResultBytes, stream_);
  for (std::size_t i = 0; i < kGraphs; ++i) {
    const GraphPoolId own = NewPool();
    const Graph graph = Capture(i, own);
    const std::size_t bytes = facade().GraphPoolReserved(own);
    largest = std::max(largest, bytes);
    sum += bytes;
    facade().RemoveMemoryPoolOfCUDAGraph(own);
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  }
  state_.reset();
  const GraphPoolId shared = NewPool();
  CaptureAll(shared);
  EXPECT_EQ(facade().GraphPoolReserved(shared), largest);
  EXPECT_GE(largest, 2 * BytesOf(0));
  EXPECT_GE(sum, 5 * largest);
  DropAll();
  facade().RemoveMemoryPoolOfCUDAGraph(shared);
}

TEST_P(GraphReplayTest, ThePoolGoesWithItsLastGraph) {
  const GraphPoolId pool = NewPool();
  const std::size_t before = Reserved();
  CaptureAll(pool);
  const std::size_t with_pool = Reserved();
  EXPECT_GT(with_pool, before);
  state_.reset();
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
  const Words expected = Replay();
  while (graphs_.size() > 1) {
    DropLast();
    Sweep();
    EXPECT_EQ(Reserved(), with_pool) << graphs_.size() << " graphs are left";
  }
  ClearResults();
  const Words last = Replay();
  EXPECT_TRUE(std::equal(last.begin(), last.begin() + kResultBytes / 8,
                         expected.begin()));
  DropLast();
  Sweep();
  EXPECT_EQ(Reserved(), before);
}

INSTANTIATE_TEST_SUITE_P(Progress, GraphReplayTest,
                         testing::Values("inline", "lazy", "seeded"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace strata
