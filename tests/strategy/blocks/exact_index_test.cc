#include "strata/strategy/blocks/exact_index.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace strata {
namespace {

class ExactIndexTest : public ::testing::Test {
 protected:
  // A block of `bytes` with an undecided size.
  Block* NewBlock(std::size_t bytes) {
    blocks_.emplace_back();
    blocks_.back().size = bytes;
    Open(bytes);
    return &blocks_.back();
  }
  void Open(std::size_t bytes) {
    ExactIndex::Sizes spare = ExactIndex::MakeSpare();
    ASSERT_FALSE(spare.empty());
    index_.Open(bytes, spare);
  }
  void Close(std::size_t bytes) {
    ExactIndex::Sizes emptied;
    index_.Close(bytes, emptied);
  }

  std::deque<Block> blocks_;
  ExactIndex index_;
};

TEST_F(ExactIndexTest, FindsABlockOfExactlyTheSize) {
  Block* block = NewBlock(1000);
  index_.Insert(block);
  EXPECT_EQ(index_.Take(999), nullptr);
  EXPECT_EQ(index_.Take(1001), nullptr);
  EXPECT_EQ(index_.Take(1000), block);
  EXPECT_EQ(index_.Take(1000), nullptr);
  EXPECT_EQ(index_.count(), 0U);
}

TEST_F(ExactIndexTest, TakesTheNewestOfASize) {
  Block* first = NewBlock(64);
  Block* second = NewBlock(64);
  index_.Insert(first);
  index_.Insert(second);
  EXPECT_EQ(index_.Take(64), second);
  EXPECT_EQ(index_.Take(64), first);
}

TEST_F(ExactIndexTest, TakesTheOldestOfAllSizes) {
  Block* first = NewBlock(64);
  Block* second = NewBlock(32);
  Block* third = NewBlock(64);
  for (Block* block : {first, second, third}) index_.Insert(block);
  EXPECT_EQ(index_.TakeOldest(), first);
  EXPECT_EQ(index_.TakeOldest(), second);
  EXPECT_EQ(index_.TakeOldest(), third);
  EXPECT_EQ(index_.TakeOldest(), nullptr);
}

TEST_F(ExactIndexTest, TakingFromTheMiddleKeepsTheOrderOfAge) {
  Block* first = NewBlock(1);
  Block* second = NewBlock(2);
  Block* third = NewBlock(3);
  for (Block* block : {first, second, third}) index_.Insert(block);
  EXPECT_EQ(index_.Take(2), second);
  EXPECT_TRUE(index_.IsConsistent());
  index_.Insert(second);
  EXPECT_EQ(index_.TakeOldest(), first);
  EXPECT_EQ(index_.TakeOldest(), third);
  EXPECT_EQ(index_.TakeOldest(), second);
}

TEST_F(ExactIndexTest, ASizeIsForgottenWithItsLastBlock) {
  NewBlock(1000);
  NewBlock(1000);
  NewBlock(2000);
  EXPECT_EQ(index_.sizes(), 2U);
  Close(1000);
  EXPECT_EQ(index_.sizes(), 2U);
  Close(1000);
  EXPECT_EQ(index_.sizes(), 1U);
  Close(2000);
  EXPECT_EQ(index_.sizes(), 0U);
  EXPECT_TRUE(index_.IsConsistent());
}

TEST_F(ExactIndexTest, HoldsManySizes) {
  for (std::size_t size = 1; size <= 5000; ++size) {
    index_.Insert(NewBlock(size * 4096));
  }
  EXPECT_TRUE(index_.IsConsistent());
  EXPECT_EQ(index_.count(), 5000U);
  for (std::size_t size = 1; size <= 5000; ++size) {
    EXPECT_NE(index_.Take(size * 4096), nullptr) << size;
  }
}

TEST_F(ExactIndexTest, AgreesWithANaiveModel) {
  std::mt19937_64 random(5);
  std::map<std::size_t, std::vector<Block*>> by_size;
  std::deque<Block*> by_age;
  std::vector<Block*> outside;
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t what = random() % 4;
    if (what == 0 || outside.empty()) {
      outside.push_back(NewBlock(1 + random() % 40));
    } else if (what == 1) {
      Block* block = outside.back();
      outside.pop_back();
      index_.Insert(block);
      by_size[block->size].push_back(block);
      by_age.push_back(block);
    } else if (what == 2) {
      std::vector<Block*>& same = by_size[1 + random() % 40];
      Block* expected = same.empty() ? nullptr : same.back();
      if (expected == nullptr) continue;
      ASSERT_EQ(index_.Take(expected->size), expected) << i;
      same.pop_back();
      std::erase(by_age, expected);
      outside.push_back(expected);
    } else if (!by_age.empty() && random() % 4 == 0) {
      Block* expected = by_age.front();
      ASSERT_EQ(index_.TakeOldest(), expected) << i;
      by_age.pop_front();
      std::erase(by_size[expected->size], expected);
      Close(expected->size);
    }
    ASSERT_EQ(index_.count(), by_age.size());
    if (i % 64 == 0) {
      ASSERT_TRUE(index_.IsConsistent()) << i;
    }
  }
}

}  // namespace
}  // namespace strata
