#include "strata/platform/biased_lock/biased_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <ostream>
#include <thread>
#include <vector>

#include "strata/tests/platform/biased_lock/own_lock.h"
#include "strata/tests/testing/at_thread_end.h"

namespace strata {
namespace {

constexpr int kFirstRun = static_cast<int>(BiasedLockMachine::kFirstRun);

int NoSystem(int /*command*/) { return -1; }

// The contract of a lock, biased or not.
class BiasedLockTest : public testing::TestWithParam<bool> {
 protected:
  BiasedLock lock_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Both, BiasedLockTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& test) {
                           return test.param ? "biased" : "plain";
                         });

TEST_P(BiasedLockTest, ExcludesOtherThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 1000;
  int count = 0;  // not atomic: the lock protects it
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::lock_guard guard(lock_);
        const int seen = count;
        std::this_thread::yield();
        count = seen + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kRounds);
}

// Long runs of one thread, which make it the owner, under attack. Many locks,
// because each removal makes it harder to own a lock.
TEST_P(BiasedLockTest, NoUpdateOfAnOwnerIsLost) {
  constexpr std::size_t kLocks = 50;
  constexpr std::uint64_t kRun = 4000;
  struct Counter {
    explicit Counter(bool may_bias) : lock(may_bias) {}
    BiasedLock lock;
    std::uint64_t count = 0;  // guarded by lock
  };
  std::vector<std::unique_ptr<Counter>> counters;
  for (std::size_t i = 0; i < kLocks; ++i) {
    counters.push_back(std::make_unique<Counter>(GetParam()));
  }
  std::atomic<std::size_t> current{0};
  std::uint64_t attacks = 0;
  std::thread attacker([&] {
    std::size_t i = 0;
    while ((i = current.load()) < kLocks) {
      {
        const std::lock_guard guard(counters[i]->lock);
        ++counters[i]->count;
      }
      ++attacks;
      for (int j = 0; j < 1000; ++j) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
    }
  });
  for (std::size_t i = 0; i < kLocks; ++i) {
    current.store(i);
    for (std::uint64_t round = 0; round < kRun; ++round) {
      const std::lock_guard guard(counters[i]->lock);
      const std::uint64_t seen = counters[i]->count;
      // A longer section is more likely to be attacked.
      for (int j = 0; j < 10; ++j) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      counters[i]->count = seen + 1;
    }
  }
  current.store(kLocks);
  attacker.join();
  std::uint64_t count = 0;
  for (const auto& counter : counters) count += counter->count;
  EXPECT_EQ(count, attacks + kLocks * kRun);
}

TEST_P(BiasedLockTest, TryLockFailsWhileHeldAndSucceedsAfter) {
  for (int i = 0; i < 2; ++i) {
    lock_.lock();
    EXPECT_FALSE(lock_.try_lock());
    std::thread([&] { EXPECT_FALSE(lock_.try_lock()); }).join();
    lock_.unlock();
    EXPECT_TRUE(lock_.try_lock());
    lock_.unlock();
    Own(lock_);
  }
}

TEST_P(BiasedLockTest, TryLockOfAnotherThreadRemovesNoOwner) {
  Own(lock_);
  const bool is_owned = lock_.is_mine();
  std::thread([&] {
    const bool is_locked = lock_.try_lock();
    EXPECT_EQ(is_locked, !is_owned);
    if (is_locked) lock_.unlock();
  }).join();
  EXPECT_EQ(lock_.is_mine(), is_owned);
  ASSERT_TRUE(lock_.try_lock());
  EXPECT_EQ(HeldLocks(), 1);
  lock_.unlock();
  EXPECT_EQ(HeldLocks(), 0);
}

TEST_P(BiasedLockTest, CountsTheLocksOfTheCallingThreadOnly) {
  BiasedLock other(GetParam());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(HeldLocks(), 0);
    lock_.lock();
    other.lock();
    EXPECT_FALSE(lock_.try_lock());
    EXPECT_EQ(HeldLocks(), 2);
    int elsewhere = -1;
    std::thread([&] { elsewhere = HeldLocks(); }).join();
    EXPECT_EQ(elsewhere, 0);
    lock_.unlock();
    other.unlock();
    EXPECT_EQ(HeldLocks(), 0);
    Own(lock_);
    Own(other);
  }
}

TEST_P(BiasedLockTest, WaiterGetsALockThatIsReleasedAfterItStartedToWait) {
  Own(lock_);
  std::atomic<bool> waiting{false};
  bool entered = false;
  lock_.lock();
  std::thread waiter([&] {
    waiting.store(true);
    lock_.lock();
    entered = true;
    lock_.unlock();
  });
  while (!waiting.load()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_FALSE(entered);
  lock_.unlock();
  waiter.join();
  EXPECT_TRUE(entered);
}

// The unlocking store is the last access, so a thread that finds itself the
// last user may delete the lock.
TEST_P(BiasedLockTest, TheLastUserMayDeleteIt) {
  struct Shared {
    explicit Shared(bool may_bias) : lock(may_bias) {}
    BiasedLock lock;
    int users = 2;  // guarded by lock
  };
  constexpr int kRounds = 200;
  std::barrier meet(2);
  Shared* shared = nullptr;
  std::atomic<int> deleted{0};
  const auto use = [&](bool is_maker) {
    for (int round = 0; round < kRounds; ++round) {
      if (is_maker) {
        shared = new Shared(GetParam());
        for (int i = 0; i < kFirstRun; ++i) {
          const std::lock_guard guard(shared->lock);
        }
      }
      meet.arrive_and_wait();
      Shared* const mine = shared;
      bool is_last = false;
      {
        const std::lock_guard guard(mine->lock);
        is_last = --mine->users == 0;
      }
      if (is_last) {
        delete mine;
        ++deleted;
      }
      meet.arrive_and_wait();
    }
  };
  std::thread other(use, false);
  use(true);
  other.join();
  EXPECT_EQ(deleted, kRounds);
}

// Tests with a bias.
class BiasedLockOwnerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ProcessBarrier::Instance().is_available()) {
      GTEST_SKIP() << "the system has no membarrier";
    }
  }

  BiasedLock lock_{true};
};

TEST_F(BiasedLockOwnerTest, BelongsToWhoTookItOftenInARow) {
  for (int i = 0; i < kFirstRun - 1; ++i) {
    const std::lock_guard guard(lock_);
  }
  EXPECT_FALSE(lock_.is_mine());
  { const std::lock_guard guard(lock_); }
  EXPECT_TRUE(lock_.is_mine());
  { const std::lock_guard guard(lock_); }
  EXPECT_TRUE(lock_.is_mine());
  std::thread([&] { EXPECT_FALSE(lock_.is_mine()); }).join();
}

// try_lock continues a run, and lock() starts and ends it.
TEST_F(BiasedLockOwnerTest, TryLockCountsInARunButMakesNoOwner) {
  EXPECT_FALSE(lock_.try_lock());  // no thread has locked it
  { const std::lock_guard guard(lock_); }
  for (int i = 2; i < kFirstRun; ++i) {
    ASSERT_TRUE(lock_.try_lock()) << i;
    EXPECT_EQ(HeldLocks(), 1);
    lock_.unlock();
  }
  std::thread([&] { EXPECT_FALSE(lock_.try_lock()); }).join();
  EXPECT_FALSE(lock_.try_lock());  // this one would make an owner
  EXPECT_FALSE(lock_.is_mine());
  { const std::lock_guard guard(lock_); }
  EXPECT_TRUE(lock_.is_mine());
}

// Locks and unlocks it `times` times in a separate thread.
void UseElsewhere(BiasedLock& lock, int times) {
  std::thread([&] {
    for (int i = 0; i < times; ++i) {
      const std::lock_guard guard(lock);
    }
  }).join();
}

TEST_F(BiasedLockOwnerTest, ThreadsThatTakeTurnsOwnNothing) {
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < kFirstRun - 1; ++j) {
      const std::lock_guard guard(lock_);
    }
    UseElsewhere(lock_, 1);
    EXPECT_FALSE(lock_.is_mine());
  }
}

// Runs of the owner without a removal pay for the removals.
TEST_F(BiasedLockOwnerTest, EachRemovalDoublesTheRunUpToABound) {
  std::uint32_t run = BiasedLockMachine::kFirstRun;
  Own(lock_);
  for (int removal = 0; removal < 14; ++removal) {
    UseElsewhere(lock_, 1);
    EXPECT_FALSE(lock_.is_mine());
    run = std::min(2 * run, BiasedLockMachine::kMostRun);
    for (std::uint32_t i = 0; i + 1 < run; ++i) {
      const std::lock_guard guard(lock_);
    }
    EXPECT_FALSE(lock_.is_mine()) << run;
    { const std::lock_guard guard(lock_); }
    EXPECT_TRUE(lock_.is_mine()) << run;
  }
  EXPECT_EQ(run, BiasedLockMachine::kMostRun);
}

TEST_F(BiasedLockOwnerTest, IsASpinLockWithoutABarrier) {
  ProcessBarrier none(&NoSystem);
  BiasedLock lock(&none);
  EXPECT_FALSE(lock.may_be_biased());
  Own(lock);
  EXPECT_FALSE(lock.is_mine());
  EXPECT_TRUE(lock_.may_be_biased());
  EXPECT_FALSE(BiasedLock().may_be_biased());
  EXPECT_FALSE(BiasedLock(false).may_be_biased());
}

// A thread has one slot. It holds a second lock by the lock word, which
// excludes other threads as well.
TEST_F(BiasedLockOwnerTest, AnOwnerOfTwoHoldsBoth) {
  BiasedLock other(true);
  Own(lock_);
  Own(other);
  for (BiasedLock* first : {&lock_, &other}) {
    BiasedLock* const second = first == &lock_ ? &other : &lock_;
    first->lock();
    second->lock();
    std::thread([&] {
      EXPECT_FALSE(first->try_lock());
      EXPECT_FALSE(second->try_lock());
    }).join();
    first->unlock();
    std::thread([&] { EXPECT_FALSE(second->try_lock()); }).join();
    second->unlock();
    EXPECT_TRUE(lock_.is_mine());
    EXPECT_TRUE(other.is_mine());
  }
}

// After the end of a thread, the next owner reuses its slot, together with its
// locks.
TEST_F(BiasedLockOwnerTest, ThreadsThatEndGiveTheirSlotsBack) {
  std::size_t inherited = 0;
  // More threads than slots.
  for (std::size_t i = 0; i < 2 * BiasedLockMachine::kSlots; ++i) {
    std::thread([&] {
      BiasedLock own(true);
      Own(own);
      EXPECT_TRUE(own.is_mine());
      if (lock_.is_mine()) ++inherited;
      Own(lock_);
      EXPECT_TRUE(lock_.is_mine());
      const std::lock_guard guard(lock_);
    }).join();
  }
  EXPECT_EQ(inherited, 2 * BiasedLockMachine::kSlots - 1);
}

TEST_F(BiasedLockOwnerTest, ALockOfAThreadThatEndedIsTaken) {
  std::thread([&] { Own(lock_); }).join();
  lock_.lock();
  EXPECT_FALSE(lock_.is_mine());
  lock_.unlock();
}

// Threads without a slot use the lock word.
TEST_F(BiasedLockOwnerTest, MoreThreadsThanSlotsExcludeEachOther) {
  constexpr std::size_t kThreads = BiasedLockMachine::kSlots + 20;
  std::atomic<std::size_t> owners{0};
  int count = 0;  // guarded by lock_
  std::latch all(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      BiasedLock own(true);
      Own(own);
      if (own.is_mine()) ++owners;
      all.arrive_and_wait();
      const std::lock_guard guard(lock_);
      ++count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, static_cast<int>(kThreads));
  EXPECT_LE(owners, BiasedLockMachine::kSlots);
  EXPECT_GT(owners, BiasedLockMachine::kSlots / 2);
}

// Later calls at the end of the thread can still lock.
TEST_F(BiasedLockOwnerTest, AThreadThatGaveItsSlotBackLocksOn) {
  bool was_mine = true;
  std::thread([&] {
    AtThreadEnd([&] {
      Own(lock_);
      was_mine = lock_.is_mine();
      const std::lock_guard guard(lock_);
    });
    Own(lock_);
    EXPECT_TRUE(lock_.is_mine());
  }).join();
  EXPECT_FALSE(was_mine);
}

}  // namespace
}  // namespace strata
