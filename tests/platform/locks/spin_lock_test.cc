#include "strata/platform/locks/spin_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace strata {
namespace {

TEST(SpinLockTest, ExcludesOtherThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20000;
  SpinLock lock;
  int count = 0;  // not atomic: the lock protects it
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::lock_guard guard(lock);
        const int seen = count;
        // Lets waiters gather, so a waiter takes most locks.
        std::this_thread::yield();
        count = seen + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(SpinLockTest, TryLockFailsWhileHeldAndSucceedsAfter) {
  SpinLock lock;
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(SpinLockTest, CountsTheLocksOfTheCallingThreadOnly) {
  SpinLock a;
  SpinLock b;
  EXPECT_EQ(HeldLocks(), 0);
  a.lock();
  b.lock();
  EXPECT_FALSE(a.try_lock());
  EXPECT_EQ(HeldLocks(), 2);
  int elsewhere = -1;
  std::thread([&] { elsewhere = HeldLocks(); }).join();
  EXPECT_EQ(elsewhere, 0);
  b.unlock();
  a.unlock();
  EXPECT_EQ(HeldLocks(), 0);
}

TEST(SpinLockTest, WaiterGetsALockThatIsReleasedAfterItStartedToWait) {
  SpinLock lock;
  std::atomic<bool> waiting{false};
  bool entered = false;
  lock.lock();
  std::thread waiter([&] {
    waiting.store(true);
    lock.lock();
    entered = true;
    lock.unlock();
  });
  while (!waiting.load()) std::this_thread::yield();
  EXPECT_FALSE(entered);
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace strata
