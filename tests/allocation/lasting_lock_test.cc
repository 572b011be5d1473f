#include "strata/allocation/lasting_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

TEST(LastingLockTest, EachIsAnother) {
  std::vector<std::unique_ptr<LastingLock>> locks;
  std::set<const ChainLock*> seen;
  for (int i = 0; i < 20; ++i) {
    locks.push_back(std::make_unique<LastingLock>(i % 2 == 0));
    EXPECT_TRUE(seen.insert(&**locks.back()).second);
  }
}

TEST(LastingLockTest, IsUsedAgainWithoutTheHeap) {
  std::set<const ChainLock*> before;
  { before.insert(&*LastingLock()); }
  const HeapCallCounter heap;
  for (int i = 0; i < 100; ++i) {
    const LastingLock lock;
    EXPECT_TRUE(before.contains(&*lock));
  }
  EXPECT_EQ(heap.calls(), 0U);
}

TEST(LastingLockTest, ALockThatMayBeBiasedBecomesNoOther) {
  const ChainLock* biased = nullptr;
  {
    const LastingLock lock(true);
    biased = &*lock;
  }
  for (int i = 0; i < 3; ++i) {
    const LastingLock plain(false);
    EXPECT_NE(&*plain, biased);
    EXPECT_TRUE((*plain).is_simple());
  }
}

// Whoever still looks at it keeps the next owner waiting, and no more.
TEST(LastingLockTest, WhoComesTooLateDoesNoHarm) {
  std::atomic<ChainLock*> found{nullptr};
  std::atomic<bool> stop{false};
  std::thread late([&] {
    while (!stop) {
      ChainLock* const lock = found;
      if (lock == nullptr) continue;
      const std::lock_guard<ChainLock> guard(*lock);
    }
  });
  for (int i = 0; i < 20000; ++i) {
    const LastingLock lock;
    found = &*lock;
    int uses = 0;
    for (int j = 0; j < 3; ++j) {
      const std::lock_guard<ChainLock> guard(*lock);
      ++uses;
    }
    EXPECT_EQ(uses, 3);
  }
  stop = true;
  late.join();
}

}  // namespace
}  // namespace strata
