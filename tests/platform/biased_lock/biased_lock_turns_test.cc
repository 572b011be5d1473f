// A BiasedLock that threads take in turns.

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <thread>

#include "strata/platform/biased_lock/biased_lock.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/tests/platform/biased_lock/own_lock.h"

namespace strata {
namespace {

TEST(BiasedLockTurnsTest, IsASpinLockOnceThreadsTookManyTurns) {
  constexpr auto kMost = static_cast<int>(BiasedLockMachine::kMostTurns);
  BiasedLock lock(true);
  if (!lock.may_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  const auto take_turns = [&lock](int turns) {
    std::barrier both(2);
    const auto use = [&](int first) {
      for (int i = 0; i < turns; ++i) {
        if (i % 2 == first) {
          const std::lock_guard<BiasedLock> guard(lock);
        }
        both.arrive_and_wait();
      }
    };
    std::thread other(use, 1);
    use(0);
    other.join();
  };
  take_turns(kMost - 1);
  EXPECT_TRUE(lock.may_be_biased());
  // A new owner resets the count.
  Own(lock);
  ASSERT_TRUE(lock.is_mine());
  take_turns(kMost);  // the first turn is the owner's
  EXPECT_TRUE(lock.may_be_biased());
  take_turns(2);
  EXPECT_FALSE(lock.may_be_biased());
  Own(lock);
  EXPECT_FALSE(lock.is_mine());
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  lock.unlock();
  std::thread([&] {
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();
  }).join();
  EXPECT_EQ(HeldLocks(), 0);
}

TEST(BiasedLockTurnsTest, ItsOwnerTriesItWithSuccess) {
  BiasedLock lock(true);
  if (!lock.may_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  Own(lock);
  ASSERT_TRUE(lock.try_lock());
  EXPECT_EQ(HeldLocks(), 1);
  EXPECT_FALSE(lock.try_lock());
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  lock.unlock();
  EXPECT_EQ(HeldLocks(), 0);
  std::thread([&] {
    const std::lock_guard<BiasedLock> guard(lock);
    EXPECT_FALSE(lock.try_lock());
  }).join();
  EXPECT_FALSE(lock.is_mine());
}

}  // namespace
}  // namespace strata
