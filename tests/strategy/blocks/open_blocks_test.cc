#include "strata/strategy/blocks/open_blocks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>

#include "strata/base/size.h"

namespace strata {
namespace {

// A sequence of blocks, adjacent in address order.
class OpenBlocksTest : public ::testing::Test {
 protected:
  Block& Add(std::size_t bytes, bool is_hole) {
    Block& block = blocks_.emplace_back();
    block.data = reinterpret_cast<std::byte*>(end_);
    block.size = bytes;
    end_ += bytes;
    if (is_hole) {
      block.pool = BlockList::kHolePool;
    } else {
      block.is_free = true;
    }
    if (blocks_.size() > 1) {
      Block& previous = blocks_[blocks_.size() - 2];
      previous.next = &block;
      block.previous = &previous;
    }
    return block;
  }
  Block& AddHole(std::size_t bytes) { return Add(bytes, true); }
  Block& AddFree(std::size_t bytes) { return Add(bytes, false); }
  void AddLive() { Add(Mebibytes(1), false).is_free = false; }
  OpenBlocks open_;
  std::deque<Block> blocks_;
  std::uintptr_t end_ = Gibibytes(1);
};

TEST_F(OpenBlocksTest, ABlockBesideALargeHoleIsOpen) {
  AddLive();
  Block& before = AddFree(Mebibytes(1));
  AddHole(OpenBlocks::kLargeHoleBytes);
  Block& after = AddFree(Mebibytes(1));
  AddHole(OpenBlocks::kLargeHoleBytes - 256);
  Block& beside_small = AddFree(Mebibytes(1));
  AddLive();
  EXPECT_TRUE(OpenBlocks::IsOpen(before));
  EXPECT_TRUE(OpenBlocks::IsOpen(after));
  EXPECT_FALSE(OpenBlocks::IsOpen(beside_small));
}

TEST_F(OpenBlocksTest, ABlockBesideTheLastHoleOfItsRangeIsOpen) {
  Block& block = AddFree(Mebibytes(1));
  AddHole(Mebibytes(2));
  EXPECT_TRUE(OpenBlocks::IsOpen(block));
  AddLive();
  EXPECT_FALSE(OpenBlocks::IsOpen(block));
}

TEST_F(OpenBlocksTest, ACutLeavesTheRestBesideTheLargeHole) {
  AddLive();
  AddHole(OpenBlocks::kLargeHoleBytes);
  Block& above = AddFree(Mebibytes(8));
  AddHole(OpenBlocks::kLargeHoleBytes - 256);
  Block& below = AddFree(Mebibytes(8));
  AddHole(OpenBlocks::kLargeHoleBytes);
  Block& before_live = AddFree(Mebibytes(8));
  AddLive();
  EXPECT_FALSE(OpenBlocks::CutsLow(above));
  EXPECT_TRUE(OpenBlocks::CutsLow(below));
  EXPECT_FALSE(OpenBlocks::CutsLow(before_live));
}

TEST_F(OpenBlocksTest, ACutLeavesTheRestBesideAHoleThatBecameSmall) {
  AddHole(Mebibytes(2));
  Block& between = AddFree(Mebibytes(8));
  AddHole(Mebibytes(2));
  Block& after = AddFree(Mebibytes(8));
  AddLive();
  EXPECT_TRUE(OpenBlocks::CutsLow(between));
  EXPECT_FALSE(OpenBlocks::CutsLow(after));
}

TEST_F(OpenBlocksTest, TheSmallestReachWins) {
  Block& wide = AddFree(Mebibytes(4));
  AddHole(Gibibytes(2));
  AddLive();
  Block& narrow = AddFree(Mebibytes(6));
  AddHole(Gibibytes(1));
  AddLive();
  open_.Insert(&narrow);
  open_.Insert(&wide);
  EXPECT_EQ(open_.Find(Mebibytes(3)), &narrow);
  EXPECT_EQ(open_.Find(Mebibytes(7)), nullptr);
  open_.Remove(&narrow);
  EXPECT_EQ(open_.Find(Mebibytes(3)), &wide);
}

TEST_F(OpenBlocksTest, OfOneReachTheSmallestAndThenTheLowestWins) {
  Block& large = AddFree(Mebibytes(6));
  AddHole(Gibibytes(1) - Mebibytes(2));
  AddLive();
  Block& low = AddFree(Mebibytes(4));
  AddHole(Gibibytes(1));
  AddLive();
  Block& high = AddFree(Mebibytes(4));
  AddHole(Gibibytes(1));
  AddLive();
  open_.Insert(&low);
  open_.Insert(&high);
  open_.Insert(&large);
  EXPECT_EQ(open_.Find(Mebibytes(3)), &low);
  EXPECT_EQ(open_.Find(Mebibytes(5)), &large);
}

TEST_F(OpenBlocksTest, TheReachOfTheEndOfARangeHasNoBound) {
  Block& inner = AddFree(Mebibytes(4));
  AddHole(Gibibytes(64));
  AddLive();
  Block& last = AddFree(Mebibytes(3));
  AddHole(Mebibytes(2));
  open_.Insert(&last);
  open_.Insert(&inner);
  EXPECT_EQ(open_.Find(Mebibytes(1)), &inner);
  open_.Remove(&inner);
  EXPECT_EQ(open_.Find(Mebibytes(1)), &last);
}

}  // namespace
}  // namespace strata
