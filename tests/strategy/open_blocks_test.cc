#include "strata/strategy/open_blocks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>

#include "strata/allocation/size.h"

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
  void Insert(Block& block) { open_.Insert(&block, OpenBlocks::ListOf(block)); }
  void Remove(Block& block) { open_.Remove(&block, OpenBlocks::ListOf(block)); }

  OpenBlocks open_;
  std::deque<Block> blocks_;
  std::uintptr_t end_ = Gibibytes(1);
};

TEST_F(OpenBlocksTest, TheSmallestReachWins) {
  Block& wide = AddFree(Mebibytes(4));
  AddHole(Mebibytes(64));
  AddLive();
  Block& narrow = AddFree(Mebibytes(6));
  AddHole(Mebibytes(2));
  AddLive();
  Insert(wide);
  Insert(narrow);
  EXPECT_EQ(open_.FindInner(Mebibytes(3), SIZE_MAX), &narrow);
  EXPECT_EQ(open_.FindInner(Mebibytes(7), SIZE_MAX), nullptr);
  Remove(narrow);
  EXPECT_EQ(open_.FindInner(Mebibytes(3), SIZE_MAX), &wide);
}

TEST_F(OpenBlocksTest, AClosedBlockWinsFromItsSizeOn) {
  Block& block = AddFree(Mebibytes(4));
  AddHole(Mebibytes(4));
  AddLive();
  Insert(block);
  EXPECT_EQ(open_.FindInner(Mebibytes(3), Mebibytes(8)), nullptr);
  EXPECT_EQ(open_.FindInner(Mebibytes(3), Mebibytes(8) + 256), &block);
}

TEST_F(OpenBlocksTest, OfOneReachTheLowestWins) {
  Block& low = AddFree(Mebibytes(4));
  AddHole(Mebibytes(4));
  AddLive();
  Block& high = AddFree(Mebibytes(4));
  AddHole(Mebibytes(4));
  AddLive();
  Insert(low);
  Insert(high);
  EXPECT_EQ(open_.FindInner(Mebibytes(3), SIZE_MAX), &low);
}

TEST_F(OpenBlocksTest, EachReachIsFound) {
  for (std::size_t size = 256; size <= Gibibytes(64);
       size += size / 4 / 256 * 256 + 256) {
    Block& block = AddFree(size);
    AddHole(Mebibytes(2));
    AddLive();
    Insert(block);
    const std::size_t reach = size + Mebibytes(2);
    EXPECT_EQ(open_.FindInner(size, SIZE_MAX), &block);
    EXPECT_EQ(open_.FindInner(size, reach), nullptr);
    EXPECT_EQ(open_.FindInner(size, reach + 256), &block);
    Remove(block);
    EXPECT_EQ(open_.FindInner(size, SIZE_MAX), nullptr);
  }
}

TEST_F(OpenBlocksTest, ATailIsFoundApart) {
  AddLive();
  Block& tail = AddFree(Mebibytes(4));
  AddHole(Mebibytes(64));
  Insert(tail);
  EXPECT_EQ(OpenBlocks::ListOf(tail), OpenBlocks::kTails);
  EXPECT_EQ(open_.FindInner(Mebibytes(1), SIZE_MAX), nullptr);
  EXPECT_EQ(open_.FindTail(Mebibytes(4)), &tail);
  EXPECT_EQ(open_.FindTail(Mebibytes(5)), nullptr);
}

}  // namespace
}  // namespace strata
