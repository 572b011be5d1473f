// RecycledMap compared with a map.

#include "strata/platform/sim/memory/recycled_map.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata::sim {
namespace {

TEST(RecycledMapTest, HasWhatAMapHas) {
  RecycledMap<int, std::vector<int>> map;
  std::map<int, std::vector<int>> plain;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const int key = static_cast<int>(random() % 300);
    const auto found = map.find(key);
    ASSERT_EQ(found != map.end(), plain.contains(key));
    if (found != map.end()) {
      ASSERT_EQ(found->second, plain.at(key));
      map.Erase(found);
      plain.erase(key);
    } else {
      // A hint may be wrong.
      const auto hint = random() % 2 == 0 ? map.upper_bound(key) : map.begin();
      const auto added = map.Add(hint, key, {key, i});
      ASSERT_EQ(added->first, key);
      plain.emplace(key, std::vector<int>{key, i});
    }
    ASSERT_EQ(map.size(), plain.size());
    ASSERT_EQ(map.empty(), plain.empty());
    ASSERT_EQ(map.upper_bound(key) == map.end(),
              plain.upper_bound(key) == plain.end());
  }
  ASSERT_FALSE(plain.empty());
  auto it = map.begin();
  for (const auto& [key, value] : plain) {
    EXPECT_EQ(it->first, key);
    EXPECT_EQ(it->second, value);
    ++it;
  }
  EXPECT_EQ(it, map.end());
}

TEST(RecycledMapTest, AddsWhatItHadBeforeWithoutTheHeap) {
  RecycledMap<int, int> map;
  constexpr int kEntries = 100;
  for (int i = 0; i < kEntries; ++i) map.Add(map.end(), i, i);
  for (int i = 0; i < kEntries; ++i) map.Erase(map.begin());
  const HeapCallCounter heap;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kEntries; ++i) map.Add(map.begin(), -i, round);
    for (int i = 0; i < kEntries; ++i) map.Erase(map.begin());
  }
  EXPECT_EQ(heap.calls(), 0U);
}

}  // namespace
}  // namespace strata::sim
