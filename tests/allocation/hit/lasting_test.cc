#include "strata/allocation/hit/lasting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "strata/allocation/hit/hit_state.h"
#include "strata/platform/locks/process_barrier.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

template <class T>
class LastingTest : public ::testing::Test {};

using LastingTypes = ::testing::Types<HitState>;
TYPED_TEST_SUITE(LastingTest, LastingTypes);

TYPED_TEST(LastingTest, EachIsAnother) {
  std::vector<std::unique_ptr<Lasting<TypeParam>>> lasting;
  std::set<const ChainLock*> seen;
  for (int i = 0; i < 20; ++i) {
    lasting.push_back(std::make_unique<Lasting<TypeParam>>(i % 2 == 0));
    EXPECT_TRUE(seen.insert(&(*lasting.back())->lock).second);
  }
}

TYPED_TEST(LastingTest, IsUsedAgainWithoutTheHeap) {
  std::set<const ChainLock*> before;
  { before.insert(&Lasting<TypeParam>()->lock); }
  const HeapCallCounter heap;
  for (int i = 0; i < 100; ++i) {
    const Lasting<TypeParam> lasting;
    EXPECT_TRUE(before.contains(&lasting->lock));
  }
  EXPECT_EQ(heap.calls(), 0U);
}

TYPED_TEST(LastingTest, ALockThatMayBeBiasedBecomesNoOther) {
  const ChainLock* biased = nullptr;
  {
    const Lasting<TypeParam> lasting(true);
    biased = &lasting->lock;
  }
  for (int i = 0; i < 3; ++i) {
    const Lasting<TypeParam> plain(false);
    EXPECT_NE(&plain->lock, biased);
    EXPECT_TRUE(plain->lock.is_simple());
  }
}

// A stream is not affected by the lock history of an ended stream.
TYPED_TEST(LastingTest, ALockThatWentToAndFroMayHaveAnOwnerAgain) {
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  const ChainLock* shared = nullptr;
  {
    const Lasting<TypeParam> lasting(true);
    shared = &lasting->lock;
    std::barrier both(2);
    const auto use = [&](std::uint32_t first) {
      for (std::uint32_t i = 0; i <= BiasedLockMachine::kMostTurns; ++i) {
        if (i % 2 == first) {
          const std::lock_guard<ChainLock> guard(lasting->lock);
        }
        both.arrive_and_wait();
      }
    };
    std::thread other(use, 1);
    use(0);
    other.join();
    EXPECT_TRUE(lasting->lock.is_simple());
  }
  const Lasting<TypeParam> again(true);
  ASSERT_EQ(&again->lock, shared);
  EXPECT_FALSE(again->lock.is_simple());
  EXPECT_FALSE(again->lock.is_open());
  for (std::uint32_t i = 0; i < BiasedLockMachine::kFirstRun; ++i) {
    const std::lock_guard<ChainLock> guard(again->lock);
  }
  ASSERT_TRUE(ChainLock::AsOwner::TakeAtOnce(again->lock));
  ChainLock::AsOwner::Release(again->lock);
}

TYPED_TEST(LastingTest, ALockThatLostItsOwnersFindsTheNextAsSoon) {
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  for (int i = 0; i < 4; ++i) {
    const Lasting<TypeParam> lasting(true);
    std::thread([&] {
      for (std::uint32_t j = 0; j < BiasedLockMachine::kFirstRun; ++j) {
        const std::lock_guard<ChainLock> guard(lasting->lock);
      }
      EXPECT_TRUE(ChainLock::AsOwner::TakeAtOnce(lasting->lock));
      ChainLock::AsOwner::Release(lasting->lock);
    }).join();
    const std::lock_guard<ChainLock> guard(lasting->lock);
  }
}

// A thread that still reads the old state only delays the next owner.
TYPED_TEST(LastingTest, WhoComesTooLateDoesNoHarm) {
  for (const bool may_bias : {false, true}) {
    std::atomic<ChainLock*> found{nullptr};
    std::atomic<bool> stop{false};
    std::thread late([&] {
      while (!stop) {
        ChainLock* const lock = found;
        if (lock == nullptr) continue;
        if (ChainLock::ByWord::TakeAtOnce(*lock)) {
          ChainLock::ByWord::Release(*lock);
        }
        const std::lock_guard<ChainLock> guard(*lock);
      }
    });
    for (int i = 0; i < 5000; ++i) {
      const Lasting<TypeParam> lasting(may_bias);
      found = &lasting->lock;
      int uses = 0;
      for (int j = 0; j < 3; ++j) {
        const std::lock_guard<ChainLock> guard(lasting->lock);
        ++uses;
      }
      EXPECT_EQ(uses, 3);
    }
    stop = true;
    late.join();
  }
}

// The state of one chain does not reach the next one.
TEST(HitStateTest, BeginsAnewForEachOwner) {
  Block block;
  block.size = 4096;
  block.requested = 4000;
  {
    const LastingHitState hit(false, std::size_t{1} << 20, std::size_t{256},
                              std::uint8_t{1});
    const std::atomic<std::uint32_t> plain{0};
    hit->attention = &plain;
    hit->counts.Count(block);
    hit->cache.NoteSearch(block.size);
    ASSERT_TRUE(hit->cache.Give(&block));
    ASSERT_EQ(hit->cache.Take(block.size), &block);
  }
  const LastingHitState next(false, std::size_t{1} << 20, std::size_t{256},
                             std::uint8_t{1});
  EXPECT_EQ(next->attention, &HitState::kNeverPlain);
  EXPECT_NE(*next->attention, 0U);
  EXPECT_EQ(next->counts.live_allocations(), 0U);
  EXPECT_EQ(next->cache.hits(), 0U);
  EXPECT_FALSE(next->cache.Give(&block));
}

TEST(HitStateTest, KeepsNothingUnlessToldTo) {
  Block block;
  block.size = 256;
  const LastingHitState hit;
  for (int i = 0; i < 10; ++i) hit->cache.NoteSearch(block.size);
  EXPECT_FALSE(hit->cache.Give(&block));
  EXPECT_EQ(hit->cache.Take(1), nullptr);
  EXPECT_EQ(hit->cache.Take(0), nullptr);
}

}  // namespace
}  // namespace strata
