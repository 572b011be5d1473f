#include "strata/facade/pointer_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <iterator>
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
  EXPECT_EQ(map_.Find(data + 1), nullptr);
  EXPECT_EQ(map_.Take(data + 1), nullptr);
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

// Against a map of the standard library: tables that grow, gaps that close.
TEST_F(PointerMapTest, DoesWhatANaiveMapDoes) {
  std::mt19937_64 random(20261122);
  std::unordered_map<void*, Allocation*> naive;
  std::vector<void*> gone;
  for (int i = 0; i < 40000; ++i) {
    // Grows to some thousand, and shrinks again.
    const bool grows = (i / 10000) % 2 == 0;
    if (random() % 8 < (grows ? 6U : 2U) || naive.empty()) {
      AllocationPtr allocation =
          facade().Alloc(DevicePlace(0), 1 + random() % 600);
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
  turn_over();
  const HeapCallCounter heap;
  turn_over();
  EXPECT_EQ(heap.calls(), 0U);
  map_.Clear();
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
