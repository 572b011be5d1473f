// Frees with stamps: tf_bfc.md R9, R29, R30, R35 to R40, W7, W8, with the
// worked examples number for number.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "strata/strategy/bfc/arena/timestamps.h"
#include "strata/strategy/bfc/bfc_allocator.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"
#include "strata/tests/testing/manual_clock.h"

namespace strata {
namespace {

TEST(SharedCounterTest, CountsFromOne) {  // R35
  SharedCounter counter;
  EXPECT_EQ(counter.Get(), 0U);
  EXPECT_EQ(counter.Next(), 1U);
  EXPECT_EQ(counter.Next(), 2U);
  EXPECT_EQ(counter.Get(), 2U);
}

BfcOptions Stamped(BfcOptions options) {
  options.counter = std::make_shared<SharedCounter>();
  return options;
}

// A pool full of blocks of 256 bytes.
class StampedPool {
 public:
  explicit StampedPool(std::size_t bytes) : pool_(Stamped(BfcWhole(bytes))) {
    for (std::size_t i = 0; i < bytes / 256; ++i) {
      blocks_.push_back(pool_.Take(256));
    }
  }

  void Free(const std::vector<std::size_t>& order) {
    for (const std::size_t i : order) pool_.Free(blocks_[i]);
  }
  std::int64_t Offset(std::size_t bytes, std::uint64_t freed_before) {
    Request request{bytes};
    request.freed_before = freed_before;
    return BfcPool::Offset(pool_.Take(request));
  }
  void SetSafeFrontier(std::uint64_t count) {
    pool_.bfc().SetSafeFrontier(count);
  }
  // Offset and stamp of the waiting blocks.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> Waiting() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> waiting;
    for (const auto& chunk : pool_.bfc().Snapshot().chunks) {
      if (chunk.freed_at_count == 0) continue;
      waiting.emplace_back(chunk.address - (std::uintptr_t{1} << 40),
                           chunk.freed_at_count);
    }
    EXPECT_EQ(waiting.size(), pool_.bfc().waiting_count());
    return waiting;
  }
  BfcPool& pool() { return pool_; }

 private:
  BfcPool pool_;
  std::vector<Allocation*> blocks_;
};

using Stamps = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(BfcStampsTest, ABlockFreedEarlyEnoughIsTaken) {  // R9, R40
  StampedPool pool(1024);
  pool.Free({0, 1});
  EXPECT_EQ(pool.Offset(256, 1), 0);
}

TEST(BfcStampsTest, ABlockFreedTooLateIsPassedOver) {  // R9, R40
  StampedPool pool(1024);
  pool.Free({1, 0});
  EXPECT_EQ(pool.Offset(256, 1), 256);
}

TEST(BfcStampsTest, BlocksAreNotJoinedForARequestWithAStamp) {  // R40
  StampedPool pool(1024);
  pool.Free({0, 1});
  EXPECT_EQ(pool.Offset(512, 1), -1);
  EXPECT_EQ(pool.Offset(512, 2), -1);
}

TEST(BfcStampsTest, BlocksAreJoinedForARequestWithoutAStamp) {  // R39, R40
  StampedPool pool(1024);
  pool.Free({0, 1});
  EXPECT_EQ(pool.Offset(512, 0), 0);
}

TEST(BfcStampsTest, BlocksFreedBeforeTheFrontierAreJoined) {  // R38, R40
  StampedPool pool(1024);
  pool.Free({0, 1});
  pool.SetSafeFrontier(2);
  EXPECT_EQ(pool.Offset(512, 2), -1);  // strictly before
  pool.SetSafeFrontier(3);
  pool.SetSafeFrontier(1);  // it does not go backward
  EXPECT_EQ(pool.Offset(512, 2), 0);
}

// R37: the frontier wakes waiting requests, as a free does.
TEST(BfcStampsTest, AnAdvancingFrontierServesRequestsThatWait) {
  ManualClock clock;
  RetryOptions retry;
  retry.time = std::chrono::seconds(10);
  retry.alone = true;
  retry.clock = &clock;
  BfcPool pool(Stamped(BfcWhole(1024)), {}, std::make_shared<Reclaimer>(retry));
  Allocation* const first = pool.Take(256);
  Allocation* const second = pool.Take(256);
  pool.Take(512);
  pool.Free(first);   // 1
  pool.Free(second);  // 2
  AllocationPtr found;
  std::thread asker([&] {
    Request request{512};
    request.freed_before = 2;
    Failure failure;
    found = pool.bfc().AllocateOrNull(request, failure);
  });
  clock.AwaitWaiters(1);
  pool.bfc().SetSafeFrontier(3);
  asker.join();
  EXPECT_NE(found, nullptr);
  EXPECT_EQ(clock.waits(), 1U);
}

TEST(BfcStampsTest, OnlyAsManyBlocksAreJoinedAsItTakes) {  // R39, R40
  StampedPool pool(2048);
  pool.Free({0, 1, 2, 4, 5});
  EXPECT_EQ(pool.Offset(512, 0), 0);
  EXPECT_EQ(pool.Waiting(), (Stamps{{512, 3}, {1024, 4}, {1280, 5}}));
}

// A block that is large enough, but not after alignment, does not end the
// search.
TEST(BfcStampsTest, BlocksAreJoinedUntilOneCanBeAligned) {  // R13, R39
  BfcPool pool(Stamped(BfcWhole(Kibibytes(64))));
  const std::vector<Allocation*> blocks =
      pool.TakeMany({256, 4096, 3840, 2048, 2048, Kibibytes(52)});
  for (const std::size_t i : {1U, 3U, 4U}) pool.Free(blocks[i]);
  EXPECT_EQ(pool.Offset(pool.Take(Request{4096, 4096})), 8192);
}

TEST(BfcStampsTest, AJoinedBlockHasTheLatestStamp) {  // R30, R39
  StampedPool pool(2048);
  pool.Free({3, 0, 1});
  EXPECT_EQ(pool.Offset(768, 0), -1);  // joins all it can
  EXPECT_EQ(pool.Waiting(), (Stamps{{0, 3}, {768, 1}}));
  EXPECT_EQ(pool.Offset(512, 2), -1);
  EXPECT_EQ(pool.Offset(512, 3), 0);
}

TEST(BfcStampsTest, NothingWaitsOnceTheFrontierHasPassed) {  // R38
  StampedPool pool(2048);
  pool.Free({0, 1, 2, 4, 5});
  pool.SetSafeFrontier(6);
  EXPECT_EQ(pool.Offset(768, 0), 0);
  EXPECT_EQ(pool.Waiting(), Stamps());
}

TEST(BfcStampsTest, TheRestOfASplitKeepsItsStampAndWaits) {  // R11
  BfcPool pool(Stamped(BfcWhole(4096)));
  pool.Free(pool.Take(4096));
  EXPECT_NE(pool.Take(256), nullptr);
  EXPECT_EQ(pool.bfc().waiting_count(), 1U);
  Request request{256};
  request.freed_before = 1;
  EXPECT_NE(pool.Take(request), nullptr);
  pool.bfc().SetSafeFrontier(2);
  EXPECT_NE(pool.Take(256), nullptr);
  EXPECT_EQ(pool.bfc().waiting_count(), 0U);
}

// W7: a block that was joined without success was forgotten, together with its
// neighbour.
TEST(BfcStampsTest, ABlockThatWasJoinedInVainIsNotForgotten) {  // W7
  for (const std::uint64_t freed_before : {50U, 0U}) {
    StampedPool pool(1024);
    pool.Free({0});
    EXPECT_EQ(pool.Offset(512, 0), -1);
    pool.Free({1});
    pool.SetSafeFrontier(100);
    EXPECT_EQ(pool.Offset(512, freed_before), 0);
  }
}

// W8: a region was released although its blocks might be in use, and the queue
// still contained them.
TEST(BfcStampsTest, ARegionIsNotCollectedBeforeItsBlocksAreSafe) {  // W8
  BfcPool pool(Stamped(BfcLimit(16 * Mebibytes(1))));
  for (Allocation* one : pool.TakeMany({Mebibytes(2), Mebibytes(4)})) {
    pool.Free(one);
  }
  EXPECT_EQ(pool.Take(Mebibytes(16)), nullptr);
  EXPECT_EQ(pool.bfc().Release(), 0U);
  EXPECT_EQ(pool.RegionBytes().size(), 2U);
  pool.bfc().SetSafeFrontier(2);
  EXPECT_EQ(pool.bfc().Release(), Mebibytes(2));
  pool.bfc().SetSafeFrontier(3);
  EXPECT_NE(pool.Take(Mebibytes(16)), nullptr);
  EXPECT_EQ(pool.bfc().waiting_count(), 0U);
}

TEST(BfcStampsTest, ACollectedRegionLeavesNothingInTheQueue) {  // W8
  BfcPool pool(Stamped(BfcLimit(16 * Mebibytes(1))));
  pool.Free(pool.Take(Mebibytes(2)));
  EXPECT_EQ(pool.bfc().waiting_count(), 1U);
  // Safe, but not drained yet.
  pool.bfc().SetSafeFrontier(2);
  EXPECT_EQ(pool.bfc().Release(), Mebibytes(2));
  EXPECT_EQ(pool.bfc().waiting_count(), 0U);
  EXPECT_NE(pool.Take(256), nullptr);
}

TEST(BfcStampsTest, NoGrowthStillJoins) {  // R7 step 6
  StampedPool pool(1024);
  pool.Free({0, 1});
  Failure failure;
  Allocation* one =
      pool.pool().bfc().TryAllocate(Request{512, 0, kNoGrowth}, failure);
  ASSERT_NE(one, nullptr);
  pool.pool().bfc().DoFree(one);
}

TEST(BfcStampsTest, TheHitPathHasNoStamps) {
  BfcPool pool(Stamped(BfcWhole(1024)));
  EXPECT_EQ(pool.bfc().hit_path(), nullptr);
}

TEST(BfcStampsTest, ACounterIsSharedWithWhoeverElseStamps) {  // R35
  BfcOptions options = Stamped(BfcWhole(1024));
  const std::shared_ptr<SharedCounter> counter = options.counter;
  BfcPool pool(options);
  EXPECT_EQ(pool.bfc().counter(), counter);
  EXPECT_EQ(counter->Next(), 1U);
  pool.Free(pool.Take(1024));
  EXPECT_EQ(counter->Get(), 2U);
  Request request{1024};
  request.freed_before = 1;
  EXPECT_EQ(pool.Take(request), nullptr);
  request.freed_before = 2;
  EXPECT_NE(pool.Take(request), nullptr);
}

// After any sequence of frees, joins, splits and allocations, no memory is
// forgotten: once all blocks are free and safe, the pool is one block again.
TEST(BfcStampsTest, NoMemoryIsForgotten) {  // W7
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BfcOptions options = Stamped(BfcWhole(Kibibytes(64)));
    const std::shared_ptr<SharedCounter> counter = options.counter;
    BfcPool pool(options);
    std::mt19937_64 random(seed);
    std::vector<Allocation*> live;
    for (int i = 0; i < 3000; ++i) {
      if (random() % 40 == 0) {
        pool.bfc().SetSafeFrontier(random() % (counter->Get() + 2));
      }
      if (!live.empty() && random() % 2 == 0) {
        std::swap(live[random() % live.size()], live.back());
        pool.Free(live.back());
        live.pop_back();
      } else {
        Request request{1 + random() % 6000};
        if (random() % 3 == 0) request.freed_before = counter->Get() / 2;
        if (random() % 8 == 0) request.alignment = 4096;
        if (Allocation* one = pool.Take(request)) live.push_back(one);
      }
      if (i % 10 == 0) {
        ASSERT_TRUE(pool.bfc().IsConsistent()) << seed;
      }
    }
    for (Allocation* one : live) pool.Free(one);
    pool.bfc().SetSafeFrontier(counter->Get() + 1);
    EXPECT_NE(pool.Take(Kibibytes(64)), nullptr) << seed;
    EXPECT_EQ(pool.bfc().waiting_count(), 0U);
  }
}

TEST(BfcStampsThreadsTest, TheFrontierMovesBesideAllocations) {
  BfcOptions options = Stamped(BfcLimit(Mebibytes(8)));
  const std::shared_ptr<SharedCounter> counter = options.counter;
  BfcPool pool(options);
  std::atomic<bool> stop{false};
  std::thread tracker([&] {
    while (!stop) pool.bfc().SetSafeFrontier(counter->Get());
  });
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([&pool, seed] {
      std::minstd_rand random(seed + 1);
      for (int i = 0; i < 2000; ++i) {
        Failure failure;
        Allocation* one =
            pool.bfc().TryAllocate(Request{1 + random() % 60'000}, failure);
        if (one != nullptr) pool.bfc().DoFree(one);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  tracker.join();
  EXPECT_TRUE(pool.bfc().IsConsistent());
  EXPECT_EQ(pool.bfc().GetNumbers().bytes_in_use, 0U);
}

}  // namespace
}  // namespace strata
