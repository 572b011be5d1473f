#include "strata/allocation/hit/lent_lock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace strata {
namespace {

// True if another thread cannot lock it now.
bool IsHeld(ChainLock& lock) {
  bool is_free = false;
  std::thread([&] {
    is_free = lock.try_lock();
    if (is_free) lock.unlock();
  }).join();
  return !is_free;
}

class LentLockTest : public testing::Test {
 protected:
  ChainLock own_;
  ChainLock a_;
  ChainLock b_;
  LentLock lock_{own_};
};

TEST_F(LentLockTest, IsItsOwnAtFirst) {
  EXPECT_FALSE(lock_.is_lent());
  const std::lock_guard<LentLock> guard(lock_);
  EXPECT_TRUE(IsHeld(own_));
  EXPECT_FALSE(IsHeld(a_));
}

TEST_F(LentLockTest, IsTheLockThatItIsLentTo) {
  lock_.LendTo(a_);
  EXPECT_TRUE(lock_.is_lent());
  EXPECT_TRUE(lock_.IsLentTo(a_));
  EXPECT_FALSE(lock_.IsLentTo(b_));
  {
    const std::lock_guard<LentLock> guard(lock_);
    EXPECT_TRUE(IsHeld(a_));
    EXPECT_FALSE(IsHeld(own_));
  }
  EXPECT_FALSE(IsHeld(a_));
}

TEST_F(LentLockTest, OneHasItAtATime) {
  lock_.LendTo(a_);
  lock_.LendTo(b_);
  EXPECT_TRUE(lock_.IsLentTo(a_));
  lock_.TakeBack();
  EXPECT_FALSE(lock_.is_lent());
  lock_.LendTo(b_);
  EXPECT_TRUE(lock_.IsLentTo(b_));
}

TEST_F(LentLockTest, NothingIsTakenBackFromNobody) {
  lock_.TakeBack();
  EXPECT_FALSE(lock_.is_lent());
  EXPECT_FALSE(IsHeld(own_));
}

// The holder of either lock can rely on the current guard.
TEST_F(LentLockTest, ChangesHandsOnlyOnceWhoHoldsItIsDone) {
  std::atomic<bool> is_done{false};
  std::thread lender;
  {
    const std::lock_guard<LentLock> guard(lock_);
    lender = std::thread([&] {
      lock_.LendTo(a_);
      is_done = true;
    });
    while (!IsHeld(a_) && !is_done) std::this_thread::yield();
    ASSERT_FALSE(is_done);
    EXPECT_FALSE(lock_.is_lent());
  }
  lender.join();
  ASSERT_TRUE(lock_.IsLentTo(a_));

  std::thread taker;
  {
    const std::lock_guard<ChainLock> guard(a_);
    taker = std::thread([&] { lock_.TakeBack(); });
    EXPECT_TRUE(lock_.IsLentTo(a_));
  }
  taker.join();
  EXPECT_FALSE(lock_.is_lent());
}

// A thread that waited for a lock that is no longer the guard locks the current
// guard.
TEST_F(LentLockTest, WhoWaitedForTheWrongOneLooksAgain) {
  lock_.LendTo(a_);
  std::atomic<bool> has_it{false};
  std::atomic<bool> may_go{false};
  a_.lock();
  std::thread waiter([&] {
    const std::lock_guard<LentLock> guard(lock_);
    has_it = true;
    while (!may_go) std::this_thread::yield();
  });
  std::thread taker([&] { lock_.TakeBack(); });
  // In any order of the two threads, the waiter ends with its own lock, or with
  // a_ while that is the guard.
  a_.unlock();
  while (!has_it) std::this_thread::yield();
  EXPECT_TRUE(lock_.is_lent() ? IsHeld(a_) : IsHeld(own_));
  may_go = true;
  waiter.join();
  taker.join();
  EXPECT_FALSE(lock_.is_lent());
}

// Chains count under their own lock, and under this one unless both are the
// same lock. Other threads count under this one only. The guard changes all the
// time.
TEST_F(LentLockTest, GuardsWhoeverHasIt) {
  constexpr std::uint64_t kCounts = 20000;
  constexpr std::size_t kChains = 3;
  std::array<ChainLock, kChains> chains;
  std::array<std::uint64_t, kChains> own_counts{};
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kChains; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t n = 0; n < kCounts; ++n) {
        if (n % 64 == 0) lock_.LendTo(chains[i]);
        const std::lock_guard<ChainLock> guard(chains[i]);
        ++own_counts[i];
        if (lock_.IsLentTo(chains[i])) {
          ++count;
        } else {
          const std::lock_guard<LentLock> below(lock_);
          ++count;
        }
      }
    });
  }
  threads.emplace_back([&] {
    for (std::uint64_t n = 0; n < kCounts; ++n) {
      if (n % 32 == 0) lock_.TakeBack();
      const std::lock_guard<LentLock> guard(lock_);
      ++count;
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, (kChains + 1) * kCounts);
  for (const std::uint64_t own : own_counts) EXPECT_EQ(own, kCounts);
}

}  // namespace
}  // namespace strata
