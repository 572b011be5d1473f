#include "strata/strategy/blocks/free_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/base/size.h"

namespace strata {
namespace {

constexpr std::size_t kGranule = FreeIndex::kGranuleBytes;

class FreeIndexTest : public ::testing::Test {
 protected:
  ~FreeIndexTest() override {
    for (Block* block : blocks_) RecordSlab::Instance().Give(block);
  }

  Block* Add(std::size_t bytes, std::size_t address = 0) {
    Block* block = RecordSlab::Instance().Take();
    blocks_.push_back(block);
    block->size = bytes;
    block->data = reinterpret_cast<std::byte*>(
        address != 0 ? address : blocks_.size() * Gibibytes(1));
    block->is_free = true;
    index_.Insert(block);
    return block;
  }

  std::unique_ptr<FreeIndex> owned_ = std::make_unique<FreeIndex>();
  FreeIndex& index_ = *owned_;
  std::vector<Block*> blocks_;
};

TEST_F(FreeIndexTest, AnEmptyIndexHasNothing) {
  EXPECT_TRUE(index_.empty());
  EXPECT_EQ(index_.FindBestFit(kGranule), nullptr);
  EXPECT_EQ(index_.LargestBytes(), 0U);
  EXPECT_TRUE(index_.IsConsistent());
}

TEST_F(FreeIndexTest, FindsTheSmallestThatFits) {
  Add(10 * kGranule);
  Block* best = Add(5 * kGranule);
  Add(4 * kGranule);
  Add(Mebibytes(3));
  EXPECT_EQ(index_.FindBestFit(5 * kGranule), best);
  EXPECT_EQ(index_.FindBestFit(4 * kGranule + 1), best);
}

TEST_F(FreeIndexTest, TakesTheLowestAddressAmongEquals) {
  Add(kGranule, 3 * kGranule);
  Block* lowest = Add(kGranule, 1 * kGranule);
  Add(kGranule, 2 * kGranule);
  EXPECT_EQ(index_.FindBestFit(kGranule), lowest);
}

TEST_F(FreeIndexTest, FindsABlockInAnyClassAbove) {
  for (unsigned bit = 8; bit < 48; ++bit) {
    Block* block = Add(std::size_t{1} << bit);
    EXPECT_EQ(index_.FindBestFit(kGranule), block);
    EXPECT_EQ(index_.FindBestFit(block->size), block);
    EXPECT_EQ(index_.FindBestFit(block->size + kGranule), nullptr);
    EXPECT_EQ(index_.LargestBytes(), block->size);
    EXPECT_TRUE(index_.IsConsistent());
    index_.Remove(block);
    EXPECT_TRUE(index_.empty());
  }
}

TEST_F(FreeIndexTest, ASizeBeyondTheLastClassIsNotFound) {
  Add(Gibibytes(1));
  EXPECT_EQ(index_.FindBestFit(std::size_t{1} << 48), nullptr);
  EXPECT_EQ(index_.FindBestFit(std::size_t{1} << 63), nullptr);
}

// A class above 64 KiB holds several sizes. A block in the class of the request
// may be too small for it.
TEST_F(FreeIndexTest, ATooSmallBlockOfTheSameClassIsPassedOver) {
  Add(Mebibytes(64));
  Block* larger = Add(Mebibytes(65));
  EXPECT_EQ(index_.FindBestFit(Mebibytes(64) + kGranule), larger);
}

TEST_F(FreeIndexTest, LargestBytesIsTheLargestOfItsClass) {
  Add(Mebibytes(64));
  Add(Mebibytes(64) + kGranule);
  Add(Mebibytes(2));
  EXPECT_EQ(index_.LargestBytes(), Mebibytes(64) + kGranule);
}

TEST_F(FreeIndexTest, CountsBlocksAndBytes) {
  Block* block = Add(kGranule);
  Add(2 * kGranule);
  EXPECT_EQ(index_.Count().blocks, 2U);
  EXPECT_EQ(index_.Count().bytes, 3 * kGranule);
  index_.Remove(block);
  EXPECT_EQ(index_.Count().blocks, 1U);
  EXPECT_EQ(index_.Count().bytes, 2 * kGranule);
}

TEST_F(FreeIndexTest, WhatIsTakenIsTheBestFitAndGone) {
  Block* second = Add(kGranule, 2 * kGranule);
  Block* first = Add(kGranule, 1 * kGranule);
  Block* larger = Add(Mebibytes(64) + kGranule);
  Add(Mebibytes(64));  // the same class
  EXPECT_EQ(index_.TakeBestFit(kGranule), first);
  EXPECT_EQ(index_.TakeBestFit(kGranule), second);
  EXPECT_EQ(index_.TakeBestFit(Mebibytes(64) + kGranule), larger);
  EXPECT_EQ(index_.TakeBestFit(Mebibytes(64) + kGranule), nullptr);
  EXPECT_EQ(index_.Count().blocks, 1U);
  EXPECT_TRUE(index_.IsConsistent());
}

TEST_F(FreeIndexTest, SeesWhenItsListsAreBroken) {
  Block* block = Add(kGranule);
  Block* other = Add(kGranule);
  EXPECT_TRUE(index_.IsConsistent());
  block->is_free = false;
  EXPECT_FALSE(index_.IsConsistent());
  block->is_free = true;
  block->size = 2 * kGranule;
  EXPECT_FALSE(index_.IsConsistent());
  block->size = kGranule;
  block->free_previous = nullptr;
  EXPECT_FALSE(index_.IsConsistent());
  block->free_previous = other;
}

// Compared with an ordered map. With at most kProbes blocks in a class, the
// result is the best fit with the lowest address. With more blocks, a block of
// a larger class is a fit, and none of those is missed.
void CompareWithMap(FreeIndex& index, bool exact_expected, unsigned seed,
                    const std::vector<std::size_t>& sizes) {
  std::mt19937_64 random(seed);
  // By size, then address.
  std::map<std::pair<std::size_t, std::byte*>, Block*> model;
  std::vector<Block*> spare;
  for (int i = 0; i < 4000; ++i) {
    if (model.size() < 3 || (random() % 2 == 0 && model.size() < 500)) {
      Block* block = RecordSlab::Instance().Take();
      block->size = sizes[random() % sizes.size()];
      block->data =
          reinterpret_cast<std::byte*>((1 + random() % 1'000'000) * kGranule);
      block->is_free = true;
      if (!model.emplace(std::pair(block->size, block->data), block).second) {
        RecordSlab::Instance().Give(block);
        continue;
      }
      index.Insert(block);
    } else {
      auto victim = model.begin();
      std::advance(victim,
                   static_cast<std::ptrdiff_t>(random() % model.size()));
      index.Remove(victim->second);
      RecordSlab::Instance().Give(victim->second);
      model.erase(victim);
    }
    const std::size_t wanted = sizes[random() % sizes.size()];
    const auto best = model.lower_bound(std::pair(wanted, nullptr));
    const Block* found = index.FindBestFit(wanted);
    if (exact_expected) {
      ASSERT_EQ(found, best == model.end() ? nullptr : best->second);
      ASSERT_EQ(index.LargestBytes(),
                model.empty() ? 0 : model.rbegin()->first.first);
    } else if (found != nullptr) {
      ASSERT_GE(found->size, wanted);
      // Within the accuracy of a class.
      ASSERT_LE(found->size, best->second->size + best->second->size / 128);
    } else {
      // Only blocks in the class of the request may be missed.
      ASSERT_TRUE(best == model.end() ||
                  model.rbegin()->first.first <= wanted + wanted / 128);
    }
    if (i % 500 == 0) {
      ASSERT_EQ(index.Count().blocks, model.size());
      ASSERT_TRUE(index.IsConsistent());
    }
  }
  for (const auto& [key, block] : model) {
    index.Remove(block);
    RecordSlab::Instance().Give(block);
  }
  EXPECT_TRUE(index.empty());
  EXPECT_TRUE(index.IsConsistent());
}

TEST_F(FreeIndexTest, IsTheBestFitWhenClassesAreShort) {
  // Sizes far enough apart that few blocks share a class.
  std::vector<std::size_t> sizes;
  for (std::size_t granules = 1; granules < 1'000'000;
       granules += 1 + granules / 90) {
    sizes.push_back(granules * kGranule);
  }
  CompareWithMap(index_, true, 1, sizes);
}

TEST_F(FreeIndexTest, IsAFitWithinAClassWhenClassesAreLong) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 40; ++i) {
    sizes.push_back(Mebibytes(64) + i * kGranule);
    sizes.push_back(kGranule * (1 + i % 3));
  }
  CompareWithMap(index_, false, 2, sizes);
}

}  // namespace
}  // namespace strata
