#include "strata/facade/pointer_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

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
