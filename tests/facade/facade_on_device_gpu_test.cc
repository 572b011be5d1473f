// The facade on the GPU of this machine. A read returns the bytes written to
// the block, whatever the earlier use of the memory. FacadeOnDeviceGpuTest
// also runs on the simulated device, to validate the test itself.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/device_work.h"
#include "strata/platform/registry.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

constexpr const char* kSimulated =
    "strata_platform=sim,strata_sim_memory=4GiB,strata_sim_data=backed,"
    "strata_sim_progress=seeded";

// Words that work copies to the host, and their expected values.
class Answers {
 public:
  explicit Answers(Device& device) : device_(device) {
    EXPECT_EQ(device.MallocHost(&memory_, kMost * sizeof(std::uint64_t), 0),
              Status::kSuccess);
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() { EXPECT_EQ(device_.FreeHost(memory_), Status::kSuccess); }

  bool full() const { return expected_.size() == kMost; }
  // Copies the word at `ptr` by work in `stream`, and expects `word`.
  void Ask(DevicePtr ptr, const Stream& stream, std::uint64_t word) {
    const auto target = reinterpret_cast<DevicePtr>(words() + expected_.size());
    EXPECT_EQ(device_.MemcpyAsync(target, ptr, sizeof(word), stream),
              Status::kSuccess);
    expected_.push_back(word);
  }
  // Compares the copied words after the work is complete.
  void Check() const {
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      ASSERT_EQ(words()[i], expected_[i]) << "answer " << i;
    }
  }
  void Clear() {
    std::memset(memory_, 0, kMost * sizeof(std::uint64_t));
    expected_.clear();
  }

 private:
  static constexpr std::size_t kMost = 1024;

  std::uint64_t* words() const { return static_cast<std::uint64_t*>(memory_); }

  Device& device_;
  void* memory_ = nullptr;
  std::vector<std::uint64_t> expected_;
};

class FacadeOnDeviceGpuTest
    : public testing::TestWithParam<std::tuple<const char*, std::string>> {
 protected:
  void SetUp() override {
    std::string text = std::get<0>(GetParam()) == std::string("sim")
                           ? kSimulated
                           : "strata_platform=cuda";
    text += ",gpu_allocator_retry_time=0,allocator_strategy=";
    const Options options = Options::Parse(text + std::get<1>(GetParam()));
    try {
      platform_ = MakePlatform(options.platform);
    } catch (const std::exception& error) {
      // No driver, or a build without the CUDA platform.
      if (options.platform.platform == "sim") throw;
      GTEST_SKIP() << error.what();
    }
    facade_ = std::make_unique<AllocatorFacade>(options, platform_);
    EXPECT_EQ(device().EventCreate(&event_, kEventDisableTiming),
              Status::kSuccess);
  }
  void TearDown() override {
    if (facade_ == nullptr) return;
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    EXPECT_EQ(device().EventDestroy(event_), Status::kSuccess);
  }

  Device& device() { return platform_->device(0); }
  AllocatorFacade& facade() { return *facade_; }

  std::vector<Stream> NewStreams(std::size_t count) {
    std::vector<Stream> streams(count);
    for (Stream& stream : streams) {
      EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
    }
    return streams;
  }
  void End(const std::vector<Stream>& streams) {
    for (const Stream& stream : streams) {
      facade().StreamDestroyed(stream);
      EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
    }
  }
  void Write(const AllocationPtr& block, const Stream& stream,
             std::uint64_t word) {
    const WorkRange range{At(block), block->size() / 8 * 8, true};
    EXPECT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 0, word),
              Status::kSuccess);
  }
  static DevicePtr At(const AllocationPtr& block) {
    return reinterpret_cast<DevicePtr>(block->data());
  }
  // The last whole word of a block.
  static DevicePtr LastWord(const AllocationPtr& block) {
    return At(block) + block->size() / 8 * 8 - 8;
  }

  bool IsSimulated() { return device().caps().simulated; }

  // Allocates blocks of 512 bytes to 8 MiB, up to 40 at once, writes them,
  // reads them in their own and in other streams, and frees them. Fewer and
  // smaller blocks if the host does the work.
  void Churn(std::uint32_t seed, const std::vector<Stream>& streams, int steps);

  std::shared_ptr<Platform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Event event_;  // used by one thread only
};

struct Held {
  AllocationPtr block;
  Stream stream;
  std::uint64_t word = 0;
};

void FacadeOnDeviceGpuTest::Churn(std::uint32_t seed,
                                  const std::vector<Stream>& streams,
                                  int steps) {
  constexpr std::size_t kMostHeld = 40;
  const double most_doublings = IsSimulated() ? 8 : 14;
  if (IsSimulated()) steps /= 10;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> fraction(0, 1);
  Answers answers(device());
  std::vector<Held> held;
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  for (int step = 0; step < steps; ++step) {
    if (held.size() < kMostHeld && random() % 5 != 0) {
      const double log_bytes = 9 + fraction(random) * most_doublings;
      Held next;
      next.stream = streams[random() % streams.size()];
      next.word = (std::uint64_t{seed} << 32) + static_cast<unsigned>(step);
      next.block = facade().Alloc(
          DevicePlace(0), static_cast<std::size_t>(std::exp2(log_bytes)),
          next.stream);
      Write(next.block, next.stream, next.word);
      held.push_back(std::move(next));
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      const Held& last = held.back();
      answers.Ask(LastWord(last.block), last.stream, last.word);
      const Stream& other = streams[random() % streams.size()];
      if (!answers.full() && !(other == last.stream)) {
        EXPECT_EQ(device().EventRecord(event, last.stream, 0),
                  Status::kSuccess);
        EXPECT_EQ(device().StreamWaitEvent(other, event, 0), Status::kSuccess);
        answers.Ask(At(last.block), other, last.word);
        facade().RecordStream(last.block, other);
      }
      held.pop_back();
    }
    if (answers.full()) {
      for (const Stream& stream : streams) {
        ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
      }
      answers.Check();
      answers.Clear();
    }
  }
  for (const Stream& stream : streams) {
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }
  answers.Check();
  held.clear();
  ASSERT_EQ(device().EventDestroy(event), Status::kSuccess);
}

INSTANTIATE_TEST_SUITE_P(Devices, FacadeOnDeviceGpuTest,
                         testing::Combine(testing::Values("sim", "cuda"),
                                          testing::ValuesIn(StrategyNames())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

TEST_P(FacadeOnDeviceGpuTest, BlocksHoldWhatTheirOwnersWrote) {
  const std::vector<Stream> streams = NewStreams(3);
  Churn(1, streams, 20'000);
  End(streams);
}

TEST_P(FacadeOnDeviceGpuTest, ThreadsWithStreamsOfTheirOwn) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      const std::vector<Stream> streams = NewStreams(2);
      Churn(i + 2, streams, 5'000);
      End(streams);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A captured step, replayed while the program continues beside it.
TEST_P(FacadeOnDeviceGpuTest, GraphsKeepTheirMemory) {
  const std::vector<Stream> streams = NewStreams(2);
  Answers answers(device());
  Write(facade().Alloc(DevicePlace(0), 8, streams[0]), streams[0], 0);
  Graph graph;
  {
    CaptureGuard guard(facade(), streams[0]);
    std::vector<AllocationPtr> live;
    for (std::uint64_t i = 1; i <= 60; ++i) {
      live.push_back(facade().Alloc(DevicePlace(0), i * 40'000, streams[0]));
      Write(live.back(), streams[0], i);
      if (i % 3 != 0) continue;  // freed memory serves the next request
      answers.Ask(LastWord(live[live.size() / 2]), streams[0],
                  i - (live.size() - 1 - live.size() / 2));
      live.clear();
    }
    graph = guard.End();
  }
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(device().GraphLaunch(exec, streams[0]), Status::kSuccess);
    Churn(i + 10, {streams[1]}, 100);
    ASSERT_EQ(device().StreamSynchronize(streams[0]), Status::kSuccess);
    answers.Check();
  }
  ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  End(streams);
}

// Allocates all memory of the device, and then releases all of it.
TEST_P(FacadeOnDeviceGpuTest, ExhaustionIsSurvivedAndReleaseGivesAllBack) {
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  facade().Alloc(DevicePlace(0), 8);
  facade().Release(DevicePlace(0));
  ASSERT_EQ(device().MemGetInfo(&before, &total), Status::kSuccess);
  const Stream stream = facade().GetDefaultStream(DevicePlace(0));
  std::vector<AllocationPtr> blocks;
  Failure failure;
  for (int round = 0; round < 2; ++round) {
    while (AllocationPtr block =
               facade().TryAlloc(DevicePlace(0), Request{.bytes = Gibibytes(1)},
                                 stream, failure)) {
      blocks.push_back(std::move(block));
    }
    EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
    EXPECT_GE(blocks.size(), before / Gibibytes(1) / 2);
    EXPECT_EQ(
        device().MemsetAsync(LastWord(blocks.back()) - 4096, 0, 4096, stream),
        Status::kSuccess);
    blocks.resize(blocks.size() / 2);
  }
  blocks.clear();
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  facade().Release(DevicePlace(0));
  ASSERT_EQ(device().MemGetInfo(&after, &total), Status::kSuccess);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace strata
