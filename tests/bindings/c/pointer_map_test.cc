#include "strata/bindings/c/pointer_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <iterator>
#include <new>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

class PointerMapTest : public FacadeFixture {
 protected:
  PointerMapTest() { Build(); }

  void* Add() {
    AllocationPtr allocation = facade().Alloc(DevicePlace(0), 100);
    void* data = allocation->data();
    map_.Insert(std::move(allocation));
    return data;
  }
  std::uint64_t Live() {
    return facade().GetStats(DevicePlace(0)).live_allocations();
  }

  PointerMap map_;
};

TEST_F(PointerMapTest, FindsWhatWasInserted) {
  for (int i = 0; i < 500; ++i) {
    void* const data = Add();
    ASSERT_NE(map_.Find(data), nullptr);
    EXPECT_EQ(map_.Find(data)->data(), data);
  }
  EXPECT_EQ(Live(), 500U);
  EXPECT_EQ(map_.Clear(), 500U);
  EXPECT_EQ(Live(), 0U);
}

TEST_F(PointerMapTest, TakesAnAddressOutOnce) {
  void* const data = Add();
  EXPECT_EQ(map_.Take(data)->data(), data);
  EXPECT_EQ(map_.Take(data), nullptr);
  EXPECT_EQ(map_.Find(data), nullptr);
}

TEST_F(PointerMapTest, KnowsNoOtherAddress) {
  auto* const data = static_cast<char*>(Add());
  // The table is small: some of these searches meet the entry of `data`.
  for (int i = 1; i < 100; ++i) {
    EXPECT_EQ(map_.Find(data + i), nullptr);
    EXPECT_EQ(map_.Take(data + i), nullptr);
  }
  EXPECT_EQ(map_.Find(nullptr), nullptr);
  EXPECT_EQ(Live(), 1U);
  map_.Clear();
}

TEST_F(PointerMapTest, GivesAnAddressToOneThreadOnly) {
  constexpr int kPointers = 500;
  std::vector<void*> pointers;
  for (int i = 0; i < kPointers; ++i) pointers.push_back(Add());
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (void* pointer : pointers) taken += map_.Take(pointer) != nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kPointers);
  EXPECT_EQ(Live(), 0U);
}

// Compared with a map of the standard library: tables grow, and gaps close.
TEST_F(PointerMapTest, DoesWhatANaiveMapDoes) {
  std::mt19937_64 random(20261122);
  std::unordered_map<void*, Allocation*> naive;
  std::vector<void*> gone;
  for (int i = 0; i < 40000; ++i) {
    // Grows to some thousand pointers, and shrinks again.
    const bool grows = (i / 10000) % 2 == 0;
    if (random() % 8 < (grows ? 6U : 2U) || naive.empty()) {
      AllocationPtr allocation =
          facade().Alloc(DevicePlace(0), 1 + random() % 9000);
      const auto [entry, is_new] =
          naive.emplace(allocation->data(), allocation.get());
      ASSERT_TRUE(is_new);
      map_.Insert(std::move(allocation));
    } else {
      const auto any = std::next(
          naive.begin(), static_cast<std::ptrdiff_t>(random() % naive.size()) %
                             std::ptrdiff_t{16});
      const AllocationPtr taken = map_.Take(any->first);
      ASSERT_EQ(taken.get(), any->second);
      gone.push_back(any->first);
      naive.erase(any);
    }
    if (i % 1000 != 0) continue;
    for (const auto& [data, allocation] : naive) {
      ASSERT_EQ(map_.Find(data), allocation);
    }
    for (void* const data : gone) {
      ASSERT_EQ(map_.Find(data) != nullptr, naive.contains(data));
    }
    gone.clear();
  }
  EXPECT_EQ(map_.Clear(), naive.size());
  EXPECT_EQ(Live(), 0U);
}

TEST_F(PointerMapTest, SteadyUseMakesNoHeapCall) {
  std::vector<void*> pointers;
  for (int i = 0; i < 1000; ++i) pointers.push_back(Add());
  const auto turn_over = [&] {
    for (void*& pointer : pointers) {
      AllocationPtr allocation = map_.Take(pointer);
      map_.Insert(std::move(allocation));
    }
  };
  // Until the thread owns a lock, if possible: its first lock allocates.
  for (int i = 0; i < 20; ++i) turn_over();
  const HeapCallCounter heap;
  turn_over();
  EXPECT_EQ(heap.calls(), 0U);
  map_.Clear();
}

TEST_F(PointerMapTest, FindsTheNewestOfManyInAnyOrder) {
  for (int i = 0; i < 100; ++i) Add();
  void* const older = Add();
  void* const newer = Add();
  EXPECT_EQ(map_.Find(newer)->data(), newer);
  EXPECT_EQ(map_.Take(older)->data(), older);
  EXPECT_EQ(map_.Take(newer)->data(), newer);
  EXPECT_EQ(map_.Find(older), nullptr);
  EXPECT_EQ(map_.Take(newer), nullptr);
  EXPECT_EQ(map_.Clear(), 100U);
}

TEST_F(PointerMapTest, EveryThreadFindsThePointersOfAllStreams) {
  std::vector<void*> pointers;
  for (int i = 0; i < 20; ++i) {
    const Stream stream = NewStream();
    for (int j = 0; j < 40; ++j) {
      AllocationPtr allocation = facade().Alloc(DevicePlace(0), 1000, stream);
      pointers.push_back(allocation->data());
      map_.Insert(std::move(allocation));
    }
  }
  std::atomic<std::size_t> found{0};
  std::thread([&] {
    for (void* pointer : pointers) found += map_.Find(pointer) != nullptr;
  }).join();
  EXPECT_EQ(found, pointers.size());
  std::thread([&] {
    for (void* pointer : pointers) found -= map_.Take(pointer) != nullptr;
  }).join();
  EXPECT_EQ(found, 0U);
  EXPECT_EQ(Live(), 0U);
}

// Tables grow, and pointers enter and leave, during lookups.
TEST_F(PointerMapTest, ThreadsInsertAndTakeSideBySide) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 300;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      std::vector<void*> mine;
      for (int round = 0; round < kRounds; ++round) {
        mine.push_back(Add());
        void*& any = mine[random() % mine.size()];
        const Allocation* found = map_.Find(any);
        wrong += found == nullptr || found->data() != any;
        if (random() % 3 != 0) continue;
        wrong += map_.Take(std::exchange(any, mine.back())) == nullptr;
        mine.pop_back();
      }
      for (void* pointer : mine) wrong += map_.Take(pointer) == nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Live(), 0U);
}

// Some are in shards that have a table already.
TEST_F(PointerMapTest, WithoutRoomAndMemoryItFreesTheNewOneOnly) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  std::vector<void*> inserted = {Add()};
  std::vector<AllocationPtr> allocations;
  for (int i = 0; i < 5000; ++i) {
    allocations.push_back(facade().Alloc(DevicePlace(0), 100));
  }
  inserted.reserve(allocations.size());
  std::size_t failed = 0;
  {
    const HeapFailure failure;
    for (AllocationPtr& allocation : allocations) {
      void* const data = allocation->data();
      try {
        map_.Insert(std::move(allocation));
        inserted.push_back(data);
      } catch (const std::bad_alloc&) {
        ++failed;
        allocation = nullptr;
      }
    }
  }
  EXPECT_GT(failed, 0U);
  EXPECT_GT(inserted.size(), 1U);
  EXPECT_EQ(failed + inserted.size(), allocations.size() + 1);
  EXPECT_EQ(Live(), inserted.size());
  void* const later = Add();  // memory is available again
  for (void* pointer : inserted) EXPECT_NE(map_.Take(pointer), nullptr);
  EXPECT_EQ(Live(), 1U);
  EXPECT_NE(map_.Take(later), nullptr);
}

TEST_F(PointerMapTest, WithoutMemoryForItsFirstItFreesThat) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  AllocationPtr allocation = facade().Alloc(DevicePlace(0), 100);
  {
    const HeapFailure failure;
    EXPECT_THROW(map_.Insert(std::move(allocation)), std::bad_alloc);
  }
  EXPECT_EQ(Live(), 0U);
  EXPECT_NE(map_.Take(Add()), nullptr);
}

TEST_F(PointerMapTest, StreamsThatShareAChunkHaveTheirPointers) {
  for (const int streams : {2, 5}) {
    SCOPED_TRACE(streams);
    Build("allocator_strategy=bfc");  // one arena for all streams
    PointerMap map;
    std::vector<void*> pointers;
    for (int i = 0; i < streams; ++i) {
      const Stream stream = NewStream();
      for (int j = 0; j < 10; ++j) {
        AllocationPtr allocation = facade().Alloc(kPlace, 1000, stream);
        pointers.push_back(allocation->data());
        map.Insert(std::move(allocation));
      }
    }
    for (void* const data : pointers) {
      EXPECT_NE(map.Find(data), nullptr);
      const AllocationPtr taken = map.Take(data);
      ASSERT_NE(taken, nullptr);
      EXPECT_EQ(taken->data(), data);
      EXPECT_EQ(map.Take(data), nullptr);
    }
    EXPECT_EQ(Live(), 0U);
  }
}

TEST_F(PointerMapTest, KnowsNothingBeforeTheFirstInsertion) {
  const AllocationPtr allocation = facade().Alloc(kPlace, 100);
  EXPECT_EQ(map_.Take(allocation->data()), nullptr);
  EXPECT_EQ(map_.Find(allocation->data()), nullptr);
}

using PointerMapDeathTest = PointerMapTest;

TEST_F(PointerMapDeathTest, RefusesAnAddressThatWasHandedOutTwice) {
  AllocationPtr allocation = facade().Alloc(DevicePlace(0), 100);
  Allocation* const same = allocation.get();
  map_.Insert(std::move(allocation));
  EXPECT_DEATH(map_.Insert(AllocationPtr(same)), "handed out twice");
  map_.Clear();
}

}  // namespace
}  // namespace strata
