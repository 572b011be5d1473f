#include "strata/allocation/chain_lock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/block_flags.h"
#include "strata/platform/process_barrier.h"

namespace strata {
namespace {

// Counts what it takes in, under the lock.
class Taker final : public FreeTaker {
 public:
  void TakeIn(Block* first) noexcept override {
    ++batches;
    for (Block* block = first; block != nullptr;) {
      Block* const next = block->free_previous;
      ++block->requested;
      ++blocks;
      block = next;
    }
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
    lock_.Open(taker_);
  }

  ChainLock lock_;
  Taker taker_;
};

TEST_F(ChainLockTest, IsClosedAtFirst) {
  Block block = LiveBlock();
  EXPECT_FALSE(lock_.is_open());
  EXPECT_FALSE(lock_.Leave(block));
  EXPECT_TRUE(IsPlain(block));
}

TEST_F(ChainLockTest, WhoLocksNextTakesInAllThatWaits) {
  Open();
  std::array<Block, 3> blocks{LiveBlock(), LiveBlock(), LiveBlock()};
  for (Block& block : blocks) EXPECT_TRUE(lock_.Leave(block));
  EXPECT_TRUE(lock_.has_waiting());
  EXPECT_EQ(taker_.blocks, 0U);
  lock_.lock();
  EXPECT_EQ(taker_.blocks, 3U);
  EXPECT_EQ(taker_.batches, 1);
  EXPECT_FALSE(lock_.has_waiting());
  lock_.unlock();
  EXPECT_TRUE(lock_.is_open());
}

TEST_F(ChainLockTest, EveryWayToLockTakesIn) {
  Open();
  Block block = LiveBlock();
  ASSERT_TRUE(lock_.Leave(block));
  { const ChainLock::Guard guard(lock_); }
  EXPECT_EQ(taker_.blocks, 1U);
  block = LiveBlock();
  ASSERT_TRUE(lock_.Leave(block));
  ASSERT_TRUE(lock_.try_lock());
  EXPECT_EQ(taker_.blocks, 2U);
  lock_.unlock();
  block = LiveBlock();
  ASSERT_TRUE(lock_.Leave(block));
  ASSERT_TRUE(lock_.try_lock_unowned());
  EXPECT_EQ(taker_.blocks, 3U);
  lock_.unlock();
}

// As it calls nothing, nobody would take in what waits.
TEST_F(ChainLockTest, IsTakenAtOnceOnlyWhileNothingWaits) {
  using Hold = ChainLock::ByWord;
  Open();
  Block block = LiveBlock();
  ASSERT_TRUE(lock_.Leave(block));
  EXPECT_FALSE(Hold::TakeAtOnce(lock_));
  { const std::lock_guard<ChainLock> guard(lock_); }
  EXPECT_EQ(taker_.blocks, 1U);
  ASSERT_TRUE(Hold::TakeAtOnce(lock_));
  EXPECT_FALSE(lock_.try_lock());
  Hold::Release(lock_);
  ASSERT_TRUE(lock_.try_lock());
  ChainLock::AsLocked::Release(lock_);
  EXPECT_EQ(HeldLocks(), 0);
}

TEST_F(ChainLockTest, IsTakenByItsOwnerOnlyWhileNothingWaits) {
  using Hold = ChainLock::AsOwner;
  ChainLock lock(/*may_bias=*/true);
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  EXPECT_FALSE(Hold::TakeAtOnce(lock));
  for (std::uint32_t i = 0; i < BiasedLockMachine::kFirstRun; ++i) {
    EXPECT_FALSE(ChainLock::ByWord::TakeAtOnce(lock));
    const std::lock_guard<ChainLock> guard(lock);
    lock.Open(taker_);
  }
  ASSERT_TRUE(Hold::TakeAtOnce(lock));
  Hold::Release(lock);
  Block block = LiveBlock();
  ASSERT_TRUE(lock.Leave(block));
  EXPECT_FALSE(Hold::TakeAtOnce(lock));
  { const std::lock_guard<ChainLock> guard(lock); }
  EXPECT_EQ(taker_.blocks, 1U);
  ASSERT_TRUE(Hold::TakeAtOnce(lock));
  Hold::Release(lock);
}

TEST_F(ChainLockTest, IsSimpleWhileNothingWaits) {
  EXPECT_TRUE(lock_.is_simple());
  Open();
  EXPECT_TRUE(lock_.is_simple());
  Block block = LiveBlock();
  ASSERT_TRUE(lock_.Leave(block));
  EXPECT_FALSE(lock_.is_simple());
  const std::lock_guard<ChainLock> guard(lock_);
  EXPECT_TRUE(lock_.is_simple());
  lock_.Close();
  EXPECT_TRUE(lock_.is_simple());
}

// But all else is as it is with others.
TEST_F(ChainLockTest, OneThatAThreadMayOwnIsNeverSimple) {
  ChainLock lock(/*may_bias=*/true);
  if (!ProcessBarrier::Instance().is_available()) {
    EXPECT_TRUE(lock.is_simple());
    GTEST_SKIP() << "no thread can own a lock here";
  }
  EXPECT_FALSE(lock.is_simple());
  EXPECT_FALSE(lock.is_open());
  EXPECT_FALSE(lock.has_waiting());
  Block block = LiveBlock();
  EXPECT_FALSE(lock.Leave(block));
  {
    const std::lock_guard<ChainLock> guard(lock);
    lock.Open(taker_);
  }
  EXPECT_FALSE(lock.is_simple());
  EXPECT_TRUE(lock.is_open());
  EXPECT_FALSE(lock.has_waiting());
  std::vector<Block> blocks(ChainLock::kMostWaiting + 1, LiveBlock());
  for (std::size_t i = 0; i < ChainLock::kMostWaiting; ++i) {
    ASSERT_TRUE(lock.Leave(blocks[i]));
  }
  EXPECT_FALSE(lock.Leave(blocks.back()));
  EXPECT_TRUE(lock.has_waiting());
  {
    const std::lock_guard<ChainLock> guard(lock);
    EXPECT_EQ(taker_.blocks, ChainLock::kMostWaiting);
    EXPECT_FALSE(lock.has_waiting());
    EXPECT_TRUE(lock.is_open());
    EXPECT_TRUE(lock.Close());
    EXPECT_FALSE(lock.Close());
    EXPECT_FALSE(lock.is_open());
  }
  EXPECT_EQ(taker_.batches, 1);
  EXPECT_FALSE(lock.is_simple());
}

TEST_F(ChainLockTest, ABlockThatWaitsIsNotLive) {
  Open();
  Block block = LiveBlock();
  ASSERT_TRUE(lock_.Leave(block));
  EXPECT_FALSE(HasFlag(block, kBlockLive));
}

TEST_F(ChainLockTest, NoMoreWaitThanItSays) {
  Open();
  std::vector<Block> blocks(ChainLock::kMostWaiting + 1, LiveBlock());
  auto* const owner = reinterpret_cast<Allocator*>(&blocks);
  for (Block& block : blocks) block.owner = owner;
  for (std::size_t i = 0; i < ChainLock::kMostWaiting; ++i) {
    ASSERT_TRUE(lock_.Leave(blocks[i]));
  }
  EXPECT_FALSE(lock_.Leave(blocks.back()));
  EXPECT_TRUE(IsPlain(blocks.back()));
  EXPECT_EQ(blocks.back().owner, owner);
  lock_.lock();
  EXPECT_EQ(taker_.blocks, ChainLock::kMostWaiting);
  lock_.unlock();
  EXPECT_TRUE(lock_.Leave(blocks.back()));
  const std::lock_guard<ChainLock> guard(lock_);
}

TEST_F(ChainLockTest, CloseTakesInAndRefuses) {
  Open();
  Block block = LiveBlock();
  lock_.lock();
  ASSERT_TRUE(lock_.Leave(block));
  EXPECT_TRUE(lock_.Close());
  EXPECT_EQ(taker_.blocks, 1U);
  EXPECT_FALSE(lock_.Close());
  block = LiveBlock();
  EXPECT_FALSE(lock_.Leave(block));
  lock_.Open(taker_);
  EXPECT_TRUE(lock_.Leave(block));
  lock_.unlock();
  const std::lock_guard<ChainLock> guard(lock_);
}

// The lock stays its owner's while others leave blocks.
TEST_F(ChainLockTest, LeavingRemovesNoOwner) {
  ChainLock biased(true);
  for (int i = 0; i < 1000; ++i) {
    const std::lock_guard<ChainLock> guard(biased);
    biased.Open(taker_);
  }
  Block block = LiveBlock();
  bool was_locked = true;
  std::thread([&] {
    was_locked = biased.try_lock_unowned();
    if (was_locked) return biased.unlock();
    EXPECT_TRUE(biased.Leave(block));
  }).join();
  if (was_locked) GTEST_SKIP() << "no biased locks on this system";
  { const std::lock_guard<ChainLock> guard(biased); }
  EXPECT_EQ(taker_.blocks, 1U);
  // One that was removed would have to come many times first.
  ASSERT_TRUE(ChainLock::AsOwner::TakeAtOnce(biased));
  ChainLock::AsOwner::Release(biased);
}

// Then it is as one that no thread could ever own.
TEST_F(ChainLockTest, IsSimpleOnceItCanHaveNoOwnerAnyMore) {
  ChainLock lock(/*may_bias=*/true);
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  std::barrier both(2);
  const auto use = [&](std::uint32_t first) {
    for (std::uint32_t i = 0; i < BiasedLockMachine::kMostTurns; ++i) {
      if (i % 2 == first) {
        const std::lock_guard<ChainLock> guard(lock);
      }
      both.arrive_and_wait();
    }
  };
  std::thread other(use, 1);
  use(0);
  other.join();
  lock.lock();
  lock.Open(taker_);
  lock.unlock();
  EXPECT_TRUE(lock.is_simple());
  Block block = LiveBlock();
  ASSERT_TRUE(lock.Leave(block));
  EXPECT_FALSE(lock.is_simple());
  { const std::lock_guard<ChainLock> guard(lock); }
  EXPECT_EQ(taker_.blocks, 1U);
  ASSERT_TRUE(ChainLock::ByWord::TakeAtOnce(lock));
  ChainLock::ByWord::Release(lock);
}

class ChainLockThreadsTest : public ChainLockTest,
                             public testing::WithParamInterface<bool> {};

// Each block that was left is taken in once, whoever locks, opens and closes.
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
        if (lock.Leave(block)) {
          ++left;
        } else {
          const std::lock_guard<ChainLock> guard(lock);
          lock.Open(taker_);
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
  EXPECT_EQ(taker_.blocks, left);
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
