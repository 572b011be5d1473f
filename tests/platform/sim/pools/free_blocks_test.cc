// FreeBlocks compared with one ordered set.

#include "strata/platform/sim/pools/free_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace strata::sim {
namespace {

struct TestBlock {
  std::uint64_t bytes = 0;
  DevicePtr ptr = 0;
  FreeBlocks<TestBlock>::Position index;
};

class FreeBlocksTest : public testing::TestWithParam<unsigned> {
 protected:
  using Key = std::pair<std::uint64_t, DevicePtr>;

  // Sizes of every order of magnitude, many of them equal.
  std::uint64_t AnySize() {
    const std::uint64_t most = std::uint64_t{1} << (random_() % 34);
    return (1 + random_() % most) * kSliceBytes;
  }
  void Add() {
    TestBlock& block = blocks_.emplace_back();
    block.bytes = AnySize();
    block.ptr = blocks_.size() * kSliceBytes;
    block.index = free_.Add({block.bytes, block.ptr, &block});
    live_.push_back(&block);
    plain_.insert({block.bytes, block.ptr});
  }
  void RemoveOne() {
    const std::size_t which = random_() % live_.size();
    TestBlock* block = live_[which];
    live_[which] = live_.back();
    live_.pop_back();
    free_.Remove(block->index);
    plain_.erase({block->bytes, block->ptr});
  }

  std::mt19937_64 random_{GetParam()};
  std::deque<TestBlock> blocks_;
  std::vector<TestBlock*> live_;
  FreeBlocks<TestBlock> free_;
  std::set<Key> plain_;
};

TEST_P(FreeBlocksTest, FindsTheSmallestAndOfEqualsTheLowest) {
  for (int i = 0; i < 20000; ++i) {
    const bool is_full = live_.size() > (i / 4000 % 2 == 0 ? 3U : 400U);
    if (!is_full) {
      Add();
    } else {
      RemoveOne();
    }
    // Every third block, or each block, is acceptable.
    const std::uint64_t third = random_() % 4;
    const auto accepts = [&](DevicePtr ptr) {
      return third == 3 || ptr / kSliceBytes % 3 == third;
    };
    const std::uint64_t bytes = AnySize();
    auto wanted = plain_.lower_bound({bytes, 0});
    while (wanted != plain_.end() && !accepts(wanted->second)) ++wanted;
    const TestBlock* found = free_.FindFirst(
        bytes, [&](const TestBlock& block) { return accepts(block.ptr); });
    ASSERT_EQ(found == nullptr, wanted == plain_.end()) << bytes;
    if (found != nullptr) {
      ASSERT_EQ(Key(found->bytes, found->ptr), *wanted) << bytes;
    }
  }
}

TEST_P(FreeBlocksTest, VisitsAllInOrder) {
  for (int i = 0; i < 300; ++i) Add();
  for (int i = 0; i < 100; ++i) RemoveOne();
  std::vector<Key> visited;
  free_.ForEach([&](const TestBlock& block) {
    visited.push_back({block.bytes, block.ptr});
  });
  EXPECT_EQ(visited, std::vector<Key>(plain_.begin(), plain_.end()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, FreeBlocksTest, testing::Range(0U, 6U));

}  // namespace
}  // namespace strata::sim
