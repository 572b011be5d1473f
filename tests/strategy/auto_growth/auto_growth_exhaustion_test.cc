// auto_growth at exhaustion, and with several streams and threads. Rule numbers
// are those of paddle.md §3.3, fault numbers those of its §5.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

TestPlaceOptions Memory(std::uint64_t mebibytes) {
  TestPlaceOptions options;
  options.memory_bytes = Mebibytes(mebibytes);
  return options;
}

TestPlaceOptions ExactMemory(std::uint64_t mebibytes) {
  TestPlaceOptions options = Memory(mebibytes);
  options.strategy_options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule =
      "exact";
  return options;
}

std::vector<CallRecord> CallsOf(const TestPlace& place,
                                const std::function<void()>& act) {
  std::vector<CallRecord> calls;
  place.device().SetCallObserver(
      [&calls](const CallRecord& call) { calls.push_back(call); });
  act();
  place.device().SetCallObserver(nullptr);
  return calls;
}

std::uint64_t CountOf(const std::vector<CallRecord>& calls, DeviceCall kind) {
  std::uint64_t count = 0;
  for (const CallRecord& call : calls) count += call.call == kind ? 1 : 0;
  return count;
}

// Fault B16: growth by the minimum chunk failed although the request would fit.
TEST(AutoGrowthExhaustionTest, BacksOffToExactSize) {
  TestPlace place(Memory(4));
  const TestChain chain = place.AddChain();
  const AllocationPtr graded = chain->Allocate(Mebibytes(3));
  EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(4));

  TestPlaceOptions options = Memory(6);
  options.limit_bytes = Mebibytes(3);
  TestPlace limited(options);
  const TestChain limited_chain = limited.AddChain();
  const AllocationPtr exact = limited_chain->Allocate(Mebibytes(3));
  EXPECT_EQ(limited.pool()->reserved_bytes(), Mebibytes(3));
}

// A size class holds more blocks than a request that may grow compares.
TEST(AutoGrowthExhaustionTest, NothingIsRefusedWhileABlockFits) {
  TestPlace place(ExactMemory(64));
  const TestChain chain = place.AddChain();
  chain->Allocate(Mebibytes(60)).reset();  // all later blocks are in this chunk
  AllocationPtr fits = chain->Allocate(Mebibytes(4) + Kibibytes(12));
  std::vector<AllocationPtr> too_small;
  std::vector<AllocationPtr> between;
  for (int i = 0; i < 8; ++i) {
    between.push_back(chain->Allocate(Mebibytes(2)));
    too_small.push_back(chain->Allocate(Mebibytes(4)));
  }
  between.push_back(chain->Allocate(Mebibytes(8) - Kibibytes(12)));
  ASSERT_EQ(place.pool()->reserved_bytes(), Mebibytes(60));
  fits.reset();
  too_small.clear();
  const std::size_t wanted = Mebibytes(4) + Kibibytes(4);
  // A request that may not grow finds it too.
  EXPECT_NO_THROW(chain->Allocate(Request{wanted, 0, kNoGrowth}));
  EXPECT_NO_THROW(chain->Allocate(wanted));
  EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(60));
}

// Fault A1 and paddle.md §6.4: an idle chunk of another stream is reused
// without the system.
TEST(AutoGrowthExhaustionTest, AnotherStreamsIdleChunkIsTakenAfterAnEvent) {
  TestPlaceOptions options = Memory(20);
  options.progress = "manual";
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_give_back_limit = 0;
  TestPlace place(options);
  const TestChain a = place.AddChain();
  const TestChain b = place.AddChain();
  a->Allocate(Mebibytes(20)).reset();
  // With completed work, no wait would be necessary.
  ASSERT_EQ(place.device().Enqueue(a.stream(), nullptr, 0, 1000, 0),
            Status::kSuccess);
  AllocationPtr taken;
  const std::vector<CallRecord> calls =
      CallsOf(place, [&] { taken = b->Allocate(Mebibytes(18)); });
  EXPECT_EQ(CountOf(calls, DeviceCall::kMemFree), 0U);
  EXPECT_EQ(CountOf(calls, DeviceCall::kStreamSynchronize), 0U);
  std::vector<std::pair<DeviceCall, std::uint64_t>> ordering;
  for (const CallRecord& call : calls) {
    if (call.call == DeviceCall::kEventRecord ||
        call.call == DeviceCall::kStreamWaitEvent) {
      ordering.emplace_back(call.call, call.stream_uid);
    }
  }
  EXPECT_THAT(
      ordering,
      ElementsAre(std::pair(DeviceCall::kEventRecord, a.stream().uid),
                  std::pair(DeviceCall::kStreamWaitEvent, b.stream().uid)));
  EXPECT_EQ(a.auto_growth().stats().reserved_bytes, 0U);
  EXPECT_EQ(b.auto_growth().stats().reserved_bytes, Mebibytes(20));
  EXPECT_EQ(taken->size(), Mebibytes(18));
}

TEST(AutoGrowthExhaustionTest, AnIdleChunkThatIsTooSmallIsReleased) {
  TestPlaceOptions options = Memory(20);
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_give_back_limit = 0;
  TestPlace place(options);
  const TestChain a = place.AddChain();
  const TestChain b = place.AddChain();
  a->Allocate(Mebibytes(12)).reset();
  const std::vector<CallRecord> calls =
      CallsOf(place, [&] { EXPECT_NE(b->Allocate(Mebibytes(20)), nullptr); });
  EXPECT_EQ(CountOf(calls, DeviceCall::kStreamWaitEvent), 0U);
  EXPECT_EQ(CountOf(calls, DeviceCall::kMemFree), 1U);
  // Memory is released to the system only after the work that used it.
  EXPECT_EQ(CountOf(calls, DeviceCall::kStreamSynchronize), 1U);
}

TEST(AutoGrowthExhaustionTest, AChunkChangesStreamsUnderALimitToo) {
  TestPlaceOptions options = ExactMemory(64);
  options.limit_bytes = Mebibytes(20);
  TestPlace place(options);
  const TestChain a = place.AddChain();
  const TestChain b = place.AddChain();
  a->Allocate(Mebibytes(12)).reset();
  const AllocationPtr taken = b->Allocate(Mebibytes(10));
  EXPECT_EQ(place.device().CallCount(DeviceCall::kMemFree), 0U);
  EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(12));
}

TEST(AutoGrowthExhaustionTest, AnImpossibleRequestGivesNobodysCacheAway) {
  TestPlace place(Memory(32));
  const TestChain a = place.AddChain();
  const TestChain b = place.AddChain();
  AllocationPtr cached = a->Allocate(Mebibytes(12));
  const AllocationPtr live = b->Allocate(Mebibytes(10));
  cached.reset();
  EXPECT_THROW(b->Allocate(Mebibytes(30)), OutOfMemory);
  EXPECT_EQ(a.auto_growth().stats().idle_bytes, Mebibytes(12));
  EXPECT_EQ(place.device().CallCount(DeviceCall::kMemFree), 0U);
  EXPECT_EQ(place.device().CallCount(DeviceCall::kStreamSynchronize), 0U);
}

// A chunk of 1.25 MiB occupies a frame of 2 MiB: six of them are 12 MiB.
TEST(AutoGrowthExhaustionTest, ReleasesChunksThatHoldMoreThanTheirSize) {
  TestPlace place(ExactMemory(12));
  const TestChain chain = place.AddChain();
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 6; ++i) live.push_back(chain->Allocate(Kibibytes(1280)));
  live.clear();
  EXPECT_NE(chain->Allocate(Mebibytes(12)), nullptr);
}

TEST(AutoGrowthExhaustionTest, IdleMemoryIsReusedBeforeMoreIsTaken) {
  TestPlace place(Memory(256));
  const TestChain a = place.AddChain();
  const TestChain b = place.AddChain();
  const AllocationPtr live = a->Allocate(Mebibytes(40));
  AllocationPtr idle = a->Allocate(Mebibytes(30));
  a->Allocate(Mebibytes(20)).reset();
  idle.reset();
  const AllocationPtr more = b->Allocate(Mebibytes(34));
  EXPECT_EQ(place.pool()->stats().peak_reserved_bytes, Mebibytes(90));
  EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(74));
}

TEST(AutoGrowthExhaustionTest, FailedGrowthAtAnyStepLeavesEverythingAsItWas) {
  for (std::uint64_t refused = 0; refused <= 4; ++refused) {
    TestPlaceOptions options = Memory(64);
    options.decorators = DecoratorOptions();
    TestPlace place(options);
    const TestChain chain = place.AddChain();
    const AllocationPtr live = chain->Allocate(Mebibytes(12));
    const Stats before = chain->stats();
    const Stats strategy = chain.auto_growth().stats();
    FaultRule rule = FailNth(DeviceCall::kMemAlloc, 1);
    rule.count = refused;
    if (refused != 0) place.device().AddFault(rule);
    Failure failure;
    // Four blocks, two blocks, one in whole steps of 2 MiB, and one.
    const AllocationPtr grown =
        chain->AllocateOrNull(Request{Mebibytes(3), 0, kNoRetry}, failure);
    const std::size_t chunk[] = {12, 6, 4, 3, 0};
    EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(12 + chunk[refused]));
    EXPECT_EQ(grown != nullptr, refused < 4);
    EXPECT_TRUE(chain.auto_growth().IsConsistent());
    if (grown != nullptr) continue;
    EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
    EXPECT_EQ(chain->stats().allocations, before.allocations);
    EXPECT_EQ(chain->stats().in_use_bytes, before.in_use_bytes);
    EXPECT_EQ(chain.auto_growth().stats().free_blocks, strategy.free_blocks);
    EXPECT_EQ(chain.auto_growth().stats().chunks, strategy.chunks);
    EXPECT_EQ(place.device().Leaks().allocations, 1U);
    EXPECT_NE(chain->Allocate(Mebibytes(3)), nullptr);
  }
}

// 3.3-10: the cached bytes after each free, with the four flag combinations, on
// a device of 12 MiB.
TEST(AutoGrowthExhaustionTest, Rule10CachesWhatTheFlagsSay) {
  for (const bool idle : {false, true}) {
    for (const bool on_miss : {false, true}) {
      TestPlaceOptions options = ExactMemory(12);
      options.strategy_options.Edit<AutoGrowthOptions>().free_idle_chunk = idle;
      options.strategy_options.Edit<AutoGrowthOptions>()
          .free_when_no_cache_hit = on_miss;
      TestPlace place(options);
      const TestChain chain = place.AddChain();
      const auto cached_after = [&](std::size_t mebibytes) {
        chain->Allocate(Mebibytes(mebibytes)).reset();
        return chain.auto_growth().stats().idle_bytes / Mebibytes(1);
      };
      const std::string flags = std::string(idle ? "free_idle_chunk " : "") +
                                (on_miss ? "free_when_no_cache_hit" : "");
      EXPECT_EQ(cached_after(4), idle ? 0U : 4U) << flags;
      // Only the latest chunk, or both.
      EXPECT_EQ(cached_after(6), idle ? 0U : (on_miss ? 6U : 10U)) << flags;
      // Out of memory with both: then only the new one.
      EXPECT_EQ(cached_after(12), idle ? 0U : 12U) << flags;
      EXPECT_EQ(cached_after(2), idle ? 0U : 12U) << flags;
    }
  }
}

// The growth is refused, so a long-lived block is split from a free one. This
// counts as a miss, not as a hit.
TEST(AutoGrowthExhaustionTest, ARequestMetInTheEndIsOneMiss) {
  TestPlace place(ExactMemory(12));
  const TestChain chain = place.AddChain();
  const AllocationPtr kept = chain->Allocate(Mebibytes(2));
  chain->Allocate(Mebibytes(10)).reset();
  const AllocationPtr cut =
      chain->Allocate(Request{Mebibytes(1), 0, kLongLived | kNoRetry});
  EXPECT_EQ(place.pool()->reserved_bytes(), Mebibytes(12));
  EXPECT_EQ(chain.auto_growth().stats().cache_misses, 3U);
  EXPECT_EQ(chain.auto_growth().stats().cache_hits, 0U);
}

// A source that frees the blocks that a test adds.
class FreeingSource final : public Reclaimer::Source {
 public:
  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return 0;
  }
  std::size_t Reclaim(Stream /*stream*/,
                      std::size_t /*bytes*/) noexcept override {
    ++asked;
    if (act) act();
    return 1;
  }
  std::function<void()> act;
  int asked = 0;
};

// A callback of the user may free, and may allocate to do so.
TEST(AutoGrowthExhaustionTest, ACallbackMayFreeAndAllocate) {
  TestPlace place(Memory(32));
  const TestChain chain = place.AddChain();
  AllocationPtr held = chain->Allocate(Mebibytes(30));
  FreeingSource callback;
  const auto registration = Reclaimer::Register(
      place.reclaimer(), Reclaimer::Step::kCallbacks, callback);
  callback.act = [&] {
    Failure failure;
    EXPECT_EQ(chain->AllocateOrNull(Request{Mebibytes(20)}, failure), nullptr);
    EXPECT_NE(chain->AllocateOrNull(Request{Kibibytes(1)}, failure), nullptr);
    held.reset();
  };
  EXPECT_NE(chain->Allocate(Mebibytes(20)), nullptr);
  EXPECT_EQ(callback.asked, 1);
}

TEST(AutoGrowthExhaustionTest, LiveBlocksOutliveNoChunkSilently) {
  TestPlace place(Memory(32));
  Allocation* live = nullptr;
  ::testing::internal::CaptureStderr();
  {
    const TestChain chain = place.AddChain();
    live = chain->Allocate(1000).release();
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("auto_growth: destroyed with live blocks"));
  EXPECT_EQ(place.device().Leaks().allocations, 1U);
  EXPECT_NE(live->data(), nullptr);
}

// Fault B5: growth held the lock during the driver call, and other threads of
// the stream spun. Here, the call returns only after another thread's hit.
TEST(AutoGrowthThreadsTest, NoDriverCallUnderLock) {
  for (const DeviceCall kind : {DeviceCall::kMemAlloc, DeviceCall::kMemFree,
                                DeviceCall::kStreamSynchronize}) {
    TestPlace place(Memory(256));
    const TestChain chain = place.AddChain();
    const AllocationPtr kept = chain->Allocate(1000);
    chain->Allocate(Mebibytes(30)).reset();
    std::atomic<bool> in_driver{false};
    std::atomic<bool> hit_done{false};
    place.device().SetCallObserver([&](const CallRecord& call) {
      EXPECT_EQ(HeldLocks(), 0);
      if (call.call != kind || in_driver.exchange(true)) return;
      while (!hit_done) std::this_thread::yield();
    });
    AllocationPtr grown;
    std::atomic<bool> finished{false};
    std::thread slow([&] {
      if (kind == DeviceCall::kMemAlloc) {
        grown = chain->Allocate(Mebibytes(50));
      } else {
        chain->Release();
      }
      finished = true;
    });
    while (!in_driver && !finished) std::this_thread::yield();
    EXPECT_TRUE(in_driver) << DeviceCallName(kind);
    EXPECT_NE(chain->Allocate(1000), nullptr);
    EXPECT_GT(chain.auto_growth().stats().reserved_bytes, 0U);
    hit_done = true;
    slow.join();
    place.device().SetCallObserver(nullptr);
  }
}

// Fault A1: without a lock, Release crashed while others allocated; with a
// lock, it deadlocked. Two chains with two threads, on a device too small for
// their caches.
TEST(AutoGrowthThreadsTest, ReleaseWhileOthersAllocate) {
  TestPlaceOptions options = Memory(48);
  options.decorators = DecoratorOptions();
  TestPlace place(options);
  const TestChain chains[] = {place.AddChain(), place.AddChain()};
  LiveRanges ranges;
  std::atomic<int> working{4};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      const TestChain& chain = chains[t % 2];
      for (int i = 0; i < 250; ++i) {
        Failure failure;
        std::vector<AllocationPtr> live;
        for (int n = 0; n < 3; ++n) {
          AllocationPtr one = chain->AllocateOrNull(
              Request{1 + random() % Mebibytes(3)}, failure);
          if (one == nullptr) continue;
          ASSERT_TRUE(ranges.Add(*one));
          live.push_back(std::move(one));
        }
        for (AllocationPtr& one : live) {
          ASSERT_TRUE(ranges.Remove(*one));
          one.reset();
        }
      }
      --working;
    });
  }
  while (working != 0) {
    for (const TestChain& chain : chains) chain->Release();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  for (const TestChain& chain : chains) {
    EXPECT_TRUE(chain.auto_growth().IsConsistent());
    EXPECT_EQ(chain->stats().in_use_bytes, 0U);
    chain->Release();
  }
  place.pool()->Release();
  EXPECT_EQ(place.device().Leaks().allocations, 0U);
  EXPECT_EQ(place.device().Leaks().events, 0U);
}

}  // namespace
}  // namespace strata
