#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kThreadOperations = 16000;  // total of all threads
constexpr std::uint64_t kThreads = 4;
constexpr int kThreadDevices = 2;
constexpr std::uint64_t kDeviceBytes = Mebibytes(256);
constexpr std::size_t kMaxInMailbox = 64;

// Passes allocations between threads.
class Mailbox {
 public:
  void Put(AllocationPtr allocation) {
    const std::lock_guard<std::mutex> guard(mutex_);
    held_.push_back(std::move(allocation));
  }
  // Null if there is none.
  AllocationPtr Take() {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (held_.empty()) return nullptr;
    AllocationPtr taken = std::move(held_.back());
    held_.pop_back();
    return taken;
  }
  std::size_t count() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return held_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<AllocationPtr> held_;
};

class BlockCounter final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override { ++layers; }
  void VisitBlocks(const Allocator& /*layer*/,
                   const std::vector<BlockInfo>& blocks) override {
    for (const BlockInfo& block : blocks) bytes += block.size_bytes;
  }
  std::uint64_t layers = 0;
  std::uint64_t bytes = 0;
};

using Setting = std::tuple<std::string, std::string>;

class StressThreadsTest : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    // Threads here hold memory that others wait for, so most waits fail.
    options_ = Options::Parse("allocator_strategy=" + std::get<0>(GetParam()) +
                              " gpu_allocator_retry_time=2 " +
                              std::get<1>(GetParam()));
    PlatformOptions platform;
    platform.platform = "sim";
    platform.sim_devices = kThreadDevices;
    platform.sim_memory_bytes = kDeviceBytes;
    platform_ = std::make_shared<SimPlatform>(platform);
    facade_ = std::make_unique<AllocatorFacade>(options_, platform_);
    for (int i = 0; i < kThreadDevices; ++i) {
      shared_.push_back(platform_->device(i).LegacyStream());
      shared_.push_back(NewStream(i));
    }
  }

  Stream NewStream(int device) {
    Stream stream;
    EXPECT_EQ(
        platform_->device(device).StreamCreate(&stream, kStreamNonBlocking),
        Status::kSuccess);
    return stream;
  }

  void DestroyStream(Stream stream) {
    facade_->StreamDestroyed(stream);
    EXPECT_EQ(platform_->device(stream.device).StreamDestroy(stream),
              Status::kSuccess);
  }

  // The range is removed from the map before its memory can be allocated again.
  void Free(AllocationPtr allocation) {
    if (allocation == nullptr) return;
    EXPECT_TRUE(ranges_.Remove(*allocation));
    ++frees_;
  }

  AllocationPtr Allocate(std::mt19937_64& engine, Stream stream) {
    std::uniform_real_distribution<double> exponent(0, 24.5);
    Request request;
    request.bytes = static_cast<std::size_t>(std::exp2(exponent(engine)));
    if (engine() % 16 == 0) request.alignment = 4096;
    Failure failure;
    AllocationPtr made =
        facade_->TryAlloc(DevicePlace(stream.device), request, stream, failure);
    if (made == nullptr) {
      EXPECT_TRUE(failure.IsExhaustion()) << failure.ToString();
      return nullptr;
    }
    ++allocations_;
    EXPECT_GE(made->size(), request.bytes);
    EXPECT_TRUE(ranges_.Add(*made)) << "handed out twice";
    return made;
  }

  // Random operations of one thread.
  void Work(std::uint64_t thread, std::uint64_t operations);
  void UseMemory(std::mt19937_64& engine, Stream own,
                 std::vector<AllocationPtr>& live);
  void LookAround(std::mt19937_64& engine);
  // Expects exact sums over all live allocations.
  void ExpectExactSums();

  Options options_;
  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  std::vector<Stream> shared_;  // live until the test ends
  Mailbox mailbox_;
  LiveRanges ranges_;
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> frees_{0};
};

void StressThreadsTest::UseMemory(std::mt19937_64& engine, Stream own,
                                  std::vector<AllocationPtr>& live) {
  const std::size_t choice = engine() % 100;
  if (choice < 45) {
    const bool on_own = engine() % 2 == 0;
    const Stream stream = on_own ? own : shared_[engine() % shared_.size()];
    if (AllocationPtr made = Allocate(engine, stream)) {
      live.push_back(std::move(made));
    }
    return;
  }
  if (choice < 55) {
    Free(mailbox_.Take());
    return;
  }
  if (live.empty()) return;
  const std::size_t index = engine() % live.size();
  if (choice < 65) {
    facade_->RecordStream(live[index], shared_[engine() % shared_.size()]);
    return;
  }
  AllocationPtr last = std::move(live[index]);
  live[index] = std::move(live.back());
  live.pop_back();
  if (choice < 80 && mailbox_.count() < kMaxInMailbox) {
    mailbox_.Put(std::move(last));
  } else {
    Free(std::move(last));
  }
}

void StressThreadsTest::LookAround(std::mt19937_64& engine) {
  const Place place = DevicePlace(static_cast<int>(engine() % kThreadDevices));
  const Stats stats = facade_->GetStats(place);
  EXPECT_LE(stats.reserved_bytes, kDeviceBytes);
  if (stats.reserved_limit_bytes != 0) {
    EXPECT_LE(stats.reserved_bytes, stats.reserved_limit_bytes);
  }
  EXPECT_LE(stats.peak_in_use_bytes, stats.peak_reserved_bytes);
  BlockCounter counter;
  switch (engine() % 4) {
    case 0:
      facade_->Release(place);
      break;
    case 1:
      EXPECT_NE(facade_->StatsJson().find(ToString(place)), std::string::npos);
      break;
    case 2:
      facade_->AcceptAll(place, counter);
      EXPECT_GT(counter.layers, 0U);
      break;
    default:
      facade_->ResetPeak(place);
      EXPECT_LE(facade_->LargestStreamPeak(place), kDeviceBytes);
      break;
  }
}

void StressThreadsTest::Work(std::uint64_t thread, std::uint64_t operations) {
  std::mt19937_64 engine(StressSeed() * kThreads + thread);
  Stream own = NewStream(static_cast<int>(thread % kThreadDevices));
  std::vector<AllocationPtr> live;
  for (std::uint64_t i = 0; i < operations; ++i) {
    UseMemory(engine, own, live);
    if (thread == 0 && i % 8 == 0) LookAround(engine);
    if (thread == 1 && i % 64 == 0) {
      // Its allocations stay valid, here and in the mailbox.
      DestroyStream(own);
      own = NewStream(own.device);
    }
    if (HasFailure()) {
      ADD_FAILURE() << "thread " << thread << ", operation " << i;
      break;
    }
  }
  for (AllocationPtr& allocation : live) {
    if (engine() % 2 == 0) {
      mailbox_.Put(std::move(allocation));
    } else {
      Free(std::move(allocation));
    }
  }
  DestroyStream(own);
}

void StressThreadsTest::ExpectExactSums() {
  Stats sum;
  for (int i = 0; i < kThreadDevices; ++i) {
    Accumulate(sum, facade_->GetStats(DevicePlace(i)));
  }
  EXPECT_EQ(sum.allocations, allocations_);
  EXPECT_EQ(sum.frees, frees_);
  EXPECT_EQ(sum.live_allocations(), ranges_.count());
  EXPECT_GE(sum.in_use_bytes, ranges_.bytes());
  EXPECT_GE(sum.reserved_bytes, sum.in_use_bytes);
}

TEST_P(StressThreadsTest, MemoryIsNeverHandedOutTwiceNorLost) {
  const std::uint64_t operations =
      StressOperations(kThreadOperations) / kThreads;
  SCOPED_TRACE("seed " + std::to_string(StressSeed()));
  // Like a real callback: frees memory that the process can spare, on any
  // thread.
  std::atomic<std::uint64_t> callbacks{0};
  std::vector<OutOfMemoryCallback> handles;
  for (int i = 0; i < kThreadDevices; ++i) {
    handles.push_back(facade_->AddOutOfMemoryCallback(
        DevicePlace(i), [&](Place /*place*/, std::size_t /*bytes*/) {
          ++callbacks;
          AllocationPtr spare = mailbox_.Take();
          const std::size_t freed = spare == nullptr ? 0 : spare->size();
          Free(std::move(spare));
          return freed;
        }));
  }
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      Work(i, operations);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectExactSums();
  while (AllocationPtr left = mailbox_.Take()) Free(std::move(left));
  ExpectExactSums();
  EXPECT_EQ(ranges_.count(), 0U);
  for (int i = 0; i < kThreadDevices; ++i) {
    facade_->Release(DevicePlace(i));
    EXPECT_EQ(facade_->GetStats(DevicePlace(i)).reserved_bytes, 0U);
    EXPECT_EQ(facade_->GetStats(DevicePlace(i)).requested_bytes, 0U);
    DestroyStream(shared_[static_cast<std::size_t>(i) * 2 + 1]);
  }
  facade_.reset();
  EXPECT_EQ(platform_->LeakReport(), "");
}

TEST_P(StressThreadsTest, FacadeMayGoWhileThreadsFree) {
  const std::uint64_t rounds = StressOperations(kThreadOperations) / 1600 + 1;
  std::mt19937_64 engine(StressSeed());
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("seed " + std::to_string(StressSeed()) + ", round " +
                 std::to_string(round));
    if (facade_ == nullptr) {
      facade_ = std::make_unique<AllocatorFacade>(options_, platform_);
    }
    std::array<std::vector<AllocationPtr>, 2> owned;
    for (std::size_t i = 0; i < 400; ++i) {
      const Stream stream = shared_[engine() % shared_.size()];
      const std::size_t bytes = 1 + engine() % 200000;
      owned[i % 2].push_back(
          facade_->Alloc(DevicePlace(stream.device), bytes, stream));
      facade_->RecordStream(owned[i % 2].back(),
                            shared_[engine() % shared_.size()]);
    }
    std::latch start(3);
    std::vector<std::thread> threads;
    for (std::vector<AllocationPtr>& mine : owned) {
      threads.emplace_back([&start, &mine] {
        start.arrive_and_wait();
        for (AllocationPtr& allocation : mine) allocation.reset();
      });
    }
    start.arrive_and_wait();
    facade_.reset();
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < kThreadDevices; ++i) {
      const SimLeaks leaks = platform_->sim_device(i).Leaks();
      EXPECT_EQ(leaks.allocations, 0U) << platform_->LeakReport();
      EXPECT_EQ(leaks.events, 0U) << platform_->LeakReport();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, StressThreadsTest,
    ::testing::Combine(
        ::testing::ValuesIn(StrategyNames()),
        ::testing::Values("", "free_idle_chunk strata_stream_lock=biased",
                          "auto_growth_chunk_rule=exact "
                          "gpu_memory_limit_mb=96",
                          "free_when_no_cache_hit "
                          "strata_in_use_limit=64MiB "
                          "strata_exact_peak")),
    [](const auto& setting) {
      return NameOf(std::get<0>(setting.param)) + "_" +
             NameOf(std::get<1>(setting.param));
    });

}  // namespace
}  // namespace strata
