#include "strata/allocation/hit/chain_lock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/block_flags.h"
#include "strata/allocation/hit/remote_frees.h"
#include "strata/platform/biased_lock/biased_lock.h"
#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {
namespace {

// Counts the blocks that it frees, under the lock.
class CountingFrees final : public RemoteFrees {
 public:
  void FreeLeft(std::span<Block* const> left) noexcept override {
    ++batches;
    for (Block* block : left) ++block->requested;
    blocks += left.size();
  }

  int batches = 0;
  std::size_t blocks = 0;
};

class ChainLockTest : public testing::Test {
 protected:
  static Block LiveBlock() {
    Block block;
    block.flags = kBlockLive;
    return block;
  }
  void Open() {
    const std::lock_guard<ChainLock> guard(lock_);
    lock_.Open(frees_);
  }

  ChainLock lock_;
  CountingFrees frees_;
};

TEST_F(ChainLockTest, IsClosedAtFirst) {
  Block block = LiveBlock();
  {
    const std::lock_guard<ChainLock> guard(lock_);
    EXPECT_FALSE(lock_.is_open());
  }
  EXPECT_FALSE(frees_.Leave(block));
  EXPECT_TRUE(IsPlain(block));
}

TEST_F(ChainLockTest, WhoLocksNextTakesInAllThatWaits) {
  Open();
  std::array<Block, 3> blocks{LiveBlock(), LiveBlock(), LiveBlock()};
  for (Block& block : blocks) EXPECT_TRUE(frees_.Leave(block));
  EXPECT_TRUE(lock_.has_waiting());
  EXPECT_EQ(frees_.blocks, 0U);
  lock_.lock();
  EXPECT_EQ(frees_.blocks, 3U);
  EXPECT_EQ(frees_.batches, 1);
  EXPECT_FALSE(lock_.has_waiting());
  lock_.unlock();
  EXPECT_TRUE(lock_.is_open());
}

// A hit calls nothing: queued blocks stay queued until a call that must count
// them.
TEST_F(ChainLockTest, TryLockTakesInNothing) {
  Open();
  Block block = LiveBlock();
  ASSERT_TRUE(frees_.Leave(block));
  ASSERT_TRUE(lock_.try_lock());
  EXPECT_TRUE(lock_.has_waiting());
  EXPECT_FALSE(lock_.try_lock());
  EXPECT_EQ(HeldLocks(), 1);
  EXPECT_TRUE(lock_.TakeIn());
  EXPECT_FALSE(lock_.TakeIn());
  EXPECT_FALSE(lock_.has_waiting());
  EXPECT_EQ(frees_.blocks, 1U);
  lock_.unlock();
  EXPECT_EQ(HeldLocks(), 0);
}

TEST_F(ChainLockTest, NorDoesTryLockOfItsOwner) {
  ChainLock lock(/*may_bias=*/true);
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  for (std::uint32_t i = 0; i < BiasedLockMachine::kFirstRun; ++i) {
    const std::lock_guard<ChainLock> guard(lock);
    lock.Open(frees_);
  }
  Block block = LiveBlock();
  ASSERT_TRUE(frees_.Leave(block));
  ASSERT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.has_waiting());
  lock.unlock();
  { const std::lock_guard<ChainLock> guard(lock); }
  EXPECT_EQ(frees_.blocks, 1U);
}

TEST_F(ChainLockTest, CloseTakesInAndRefuses) {
  Open();
  Block block = LiveBlock();
  lock_.lock();
  ASSERT_TRUE(frees_.Leave(block));
  lock_.Close();
  EXPECT_EQ(frees_.blocks, 1U);
  block = LiveBlock();
  EXPECT_FALSE(frees_.Leave(block));
  lock_.Open(frees_);
  EXPECT_TRUE(frees_.Leave(block));
  lock_.unlock();
  const std::lock_guard<ChainLock> guard(lock_);
}

// The owner keeps the lock while other threads queue blocks.
TEST_F(ChainLockTest, LeavingRemovesNoOwner) {
  ChainLock biased(true);
  for (int i = 0; i < 1000; ++i) {
    const std::lock_guard<ChainLock> guard(biased);
    biased.Open(frees_);
  }
  Block block = LiveBlock();
  bool was_locked = true;
  std::thread([&] {
    was_locked = biased.try_lock();
    if (was_locked) return biased.unlock();
    EXPECT_TRUE(frees_.Leave(block));
  }).join();
  if (was_locked) GTEST_SKIP() << "no biased locks on this system";
  { const std::lock_guard<ChainLock> guard(biased); }
  EXPECT_EQ(frees_.blocks, 1U);
  // A removed owner would fail: it would first have to lock again.
  ASSERT_TRUE(biased.try_lock());
  biased.unlock();
}

class ChainLockThreadsTest : public ChainLockTest,
                             public testing::WithParamInterface<bool> {};

// Each queued block is drained once, under any sequence of lock, open and
// close.
TEST_P(ChainLockThreadsTest, NothingIsLostOrTakenTwice) {
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kBlocks = 2000;
  ChainLock lock(GetParam());
  std::vector<std::vector<Block>> blocks(
      kThreads, std::vector<Block>(kBlocks, LiveBlock()));
  std::atomic<std::size_t> left{0};
  std::atomic<std::size_t> running{kThreads};
  std::vector<std::thread> threads;
  for (std::vector<Block>& own : blocks) {
    threads.emplace_back([&] {
      for (Block& block : own) {
        if (frees_.Leave(block)) {
          ++left;
        } else {
          const std::lock_guard<ChainLock> guard(lock);
          lock.Open(frees_);
        }
      }
      --running;
    });
  }
  for (std::uint64_t i = 0; running != 0; ++i) {
    const std::lock_guard<ChainLock> guard(lock);
    if (i % 64 == 0) lock.Close();
  }
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard<ChainLock> guard(lock);
  EXPECT_EQ(frees_.blocks, left);
  std::size_t once = 0;
  for (const std::vector<Block>& own : blocks) {
    for (const Block& block : own) {
      EXPECT_LE(block.requested, 1U);
      EXPECT_EQ(block.requested == 0, IsPlain(block));
      once += block.requested;
    }
  }
  EXPECT_EQ(once, left);
}

INSTANTIATE_TEST_SUITE_P(All, ChainLockThreadsTest, testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "biased" : "plain";
                         });

}  // namespace
}  // namespace strata
