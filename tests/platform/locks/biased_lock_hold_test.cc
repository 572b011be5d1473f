// The ways to take a BiasedLock at once, and the state that it resets.

#include <gtest/gtest.h>

#include <barrier>
#include <mutex>
#include <thread>

#include "strata/platform/locks/biased_lock.h"
#include "strata/platform/locks/process_barrier.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/tests/platform/locks/own_lock.h"

namespace strata {
namespace {

constexpr int kUsesToOwn = static_cast<int>(BiasedLockMachine::kFirstRun);

int RefuseAll(int /*command*/) { return -1; }

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
  ASSERT_TRUE(BiasedLock::ByWord::TakeAtOnce(lock));
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock_unowned());
  BiasedLock::ByWord::Release(lock);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
  lock.Renew();
  EXPECT_TRUE(lock.may_be_biased());
  EXPECT_EQ(HeldLocks(), 0);
  ASSERT_TRUE(BiasedLock::ByWord::TakeAtOnce(lock));
  BiasedLock::ByWord::Release(lock);
  for (int i = 0; i < kUsesToOwn; ++i) {
    EXPECT_FALSE(lock.is_mine());
    const std::lock_guard<BiasedLock> guard(lock);
  }
  EXPECT_TRUE(lock.is_mine());
}

TEST(BiasedLockRenewTest, ForgetsWhatThreadsDidButNotItsOwner) {
  BiasedLock lock(true);
  if (!lock.may_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  for (int i = 0; i < 4; ++i) {
    Own(lock);
    ASSERT_TRUE(lock.is_mine());
    std::thread([&] { const std::lock_guard guard(lock); }).join();
  }
  lock.Renew();
  for (int i = 0; i < kUsesToOwn; ++i) {
    EXPECT_FALSE(lock.is_mine());
    const std::lock_guard guard(lock);
  }
  EXPECT_TRUE(lock.is_mine());
  std::thread([&] { lock.Renew(); }).join();
  EXPECT_TRUE(lock.is_mine());
  const std::lock_guard guard(lock);
  EXPECT_EQ(HeldLocks(), 1);
}

TEST(BiasedLockRenewTest, MakesNothingBiasedThatCannotBe) {
  ProcessBarrier none(&RefuseAll);
  BiasedLock without(&none);
  BiasedLock plain;
  for (BiasedLock* lock : {&without, &plain}) {
    lock->Renew();
    EXPECT_FALSE(lock->may_be_biased());
    EXPECT_TRUE(lock->try_lock());
    lock->unlock();
  }
}

// As the owner of the lock.
TEST(BiasedLockHoldTest, IsTakenAtOnceByItsOwnerAlone) {
  using Hold = BiasedLock::AsOwner;
  BiasedLock lock(true);
  if (!lock.may_be_biased()) GTEST_SKIP() << "no membarrier on this system";
  EXPECT_FALSE(Hold::TakeAtOnce(lock));  // it has no owner
  Own(lock);
  ASSERT_TRUE(Hold::TakeAtOnce(lock));
  EXPECT_EQ(HeldLocks(), 1);
  EXPECT_FALSE(Hold::TakeAtOnce(lock));
  std::thread([&] {
    EXPECT_FALSE(Hold::TakeAtOnce(lock));
    EXPECT_FALSE(lock.try_lock());
  }).join();
  Hold::Release(lock);
  EXPECT_EQ(HeldLocks(), 0);
  ASSERT_TRUE(Hold::TakeAtOnce(lock));
  Hold::Keep();
  EXPECT_EQ(HeldLocks(), 1);
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  lock.unlock();
  EXPECT_EQ(HeldLocks(), 0);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(BiasedLockHoldTest, NoOwnerTakesOneThatMayNotBeBiased) {
  BiasedLock lock;
  EXPECT_FALSE(BiasedLock::AsOwner::TakeAtOnce(lock));
  std::thread([&] {
    // A thread that never owned anything.
    EXPECT_FALSE(BiasedLock::AsOwner::TakeAtOnce(lock));
  }).join();
}

// By the word of a lock that may not be biased.
TEST(BiasedLockHoldTest, TheWordIsTakenByOneAtATime) {
  using Hold = BiasedLock::ByWord;
  BiasedLock lock;
  ASSERT_TRUE(Hold::TakeAtOnce(lock));
  // It makes no call, so the count of held locks does not include it.
  EXPECT_EQ(HeldLocks(), 0);
  EXPECT_FALSE(Hold::TakeAtOnce(lock));
  EXPECT_FALSE(lock.try_lock());
  Hold::Release(lock);
  ASSERT_TRUE(Hold::TakeAtOnce(lock));
  Hold::Keep();
  EXPECT_EQ(HeldLocks(), 1);
  Hold::Unkeep();
  EXPECT_EQ(HeldLocks(), 0);
  Hold::Keep();
  lock.unlock();
  EXPECT_EQ(HeldLocks(), 0);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

}  // namespace
}  // namespace strata
