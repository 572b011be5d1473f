#include "strata/strategy/blocks/block_list.h"

#include <gtest/gtest.h>

#include <vector>

#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class BlockListTest : public ::testing::Test {
 protected:
  BlockListTest() {
    EXPECT_TRUE(RecordSlab::Instance().Fill(records_, 20));
    chunk_.memory = memory_.get();
  }
  ~BlockListTest() override { RecordSlab::Instance().Drain(records_); }

  // The chunk as one block.
  Block* AddChunk() {
    Block* block = records_.Pop();
    list_.AddChunk(&chunk_, block);
    return block;
  }
  std::size_t Free(Block* block) {
    block->is_free = true;
    return block->size;
  }

  PoolPlace place_;
  AllocationPtr memory_ = place_.pool()->Allocate(Mebibytes(2));
  Chunk chunk_;
  BlockList list_;
  RecordSlab::List records_;
};

TEST_F(BlockListTest, AChunkStartsAsOneBlock) {
  Block* block = AddChunk();
  EXPECT_EQ(block->data, memory_->data());
  EXPECT_EQ(block->size, Mebibytes(2));
  EXPECT_EQ(block->place(), memory_->place());
  EXPECT_EQ(block->chunk, &chunk_);
  EXPECT_TRUE(BlockList::IsWholeChunk(block));
  EXPECT_EQ(list_.chunk_count(), 1U);
  EXPECT_EQ(list_.chunk_bytes(), Mebibytes(2));
  EXPECT_EQ(list_.block_count(), 1U);
  EXPECT_TRUE(list_.IsConsistent());
}

TEST_F(BlockListTest, SplitTilesTheBlock) {
  Block* low = AddChunk();
  Block* high = list_.Split(low, Kibibytes(512), records_.Pop());
  EXPECT_EQ(low->size, Kibibytes(512));
  EXPECT_EQ(high->data, low->data + Kibibytes(512));
  EXPECT_EQ(high->size, Kibibytes(1536));
  EXPECT_EQ(low->next, high);
  EXPECT_EQ(high->previous, low);
  Block* middle = list_.Split(low, Kibibytes(256), records_.Pop());
  EXPECT_EQ(middle->next, high);
  EXPECT_EQ(high->previous, middle);
  EXPECT_EQ(list_.block_count(), 3U);
  EXPECT_FALSE(BlockList::IsWholeChunk(middle));
  EXPECT_TRUE(list_.IsConsistent());
}

TEST_F(BlockListTest, CoalescingUndoesASplit) {
  Block* low = AddChunk();
  Block* high = list_.Split(low, Kibibytes(512), records_.Pop());
  Block* middle = list_.Split(low, Kibibytes(256), records_.Pop());
  const std::size_t spare = records_.size();
  list_.Coalesce(middle, high, records_);
  list_.Coalesce(low, middle, records_);
  EXPECT_EQ(list_.splits(), 2U);
  EXPECT_EQ(list_.coalesces(), 2U);
  EXPECT_EQ(list_.block_count(), 1U);
  EXPECT_TRUE(BlockList::IsWholeChunk(low));
  EXPECT_EQ(low->size, Mebibytes(2));
  EXPECT_EQ(records_.size(), spare + 2);
  EXPECT_TRUE(list_.IsConsistent());
}

TEST_F(BlockListTest, RemovingAChunkGivesItsRecordBack) {
  AddChunk();
  const std::size_t spare = records_.size();
  list_.RemoveChunk(&chunk_, records_);
  EXPECT_EQ(records_.size(), spare + 1);
  EXPECT_EQ(list_.chunk_count(), 0U);
  EXPECT_EQ(list_.chunk_bytes(), 0U);
  EXPECT_EQ(list_.block_count(), 0U);
  EXPECT_TRUE(list_.IsConsistent());
}

TEST_F(BlockListTest, ChunksLeaveFromAnyPosition) {
  AllocationPtr memories[3];
  Chunk chunks[3];
  for (int i = 0; i < 3; ++i) {
    memories[i] = place_.pool()->Allocate(Mebibytes(1));
    chunks[i].memory = memories[i].get();
    list_.AddChunk(&chunks[i], records_.Pop());
  }
  for (const int i : {1, 2, 0}) {
    list_.RemoveChunk(&chunks[i], records_);
    EXPECT_TRUE(list_.IsConsistent());
  }
  EXPECT_EQ(list_.first_chunk(), nullptr);
}

TEST_F(BlockListTest, DescribesBlocksInAddressOrder) {
  Block* low = AddChunk();
  Block* high = list_.Split(low, Kibibytes(512), records_.Pop());
  Free(low);
  std::vector<BlockInfo> blocks;
  list_.Describe(blocks);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].data, low->data);
  EXPECT_EQ(blocks[0].size_bytes, Kibibytes(512));
  EXPECT_EQ(blocks[0].state, BlockState::kFree);
  EXPECT_EQ(blocks[1].data, high->data);
  EXPECT_FALSE(blocks[1].is_free());
  EXPECT_EQ(blocks[1].chunk_base, memory_->data());
}

TEST_F(BlockListTest, TheStateOfABlockIsInItsFlags) {
  Block* block = AddChunk();
  block->flags = kBlockLive | kBlockMarked;
  EXPECT_EQ(StateOf(*block), BlockState::kLive);
  block->flags = kBlockLive | kBlockLent;
  EXPECT_EQ(StateOf(*block), BlockState::kLent);
  block->flags = 0;
  EXPECT_EQ(StateOf(*block), BlockState::kDeferred);
  Free(block);
  EXPECT_EQ(StateOf(*block), BlockState::kFree);
  EXPECT_STREQ(ToString(BlockState::kDeferred), "deferred");
}

TEST_F(BlockListTest, SeesGapsOverlapsAndFreeNeighbours) {
  Block* low = AddChunk();
  Block* high = list_.Split(low, Kibibytes(512), records_.Pop());
  low->size += 256;
  EXPECT_FALSE(list_.IsConsistent());
  low->size -= 512;
  EXPECT_FALSE(list_.IsConsistent());
  low->size += 256;
  EXPECT_TRUE(list_.IsConsistent());
  Free(low);
  EXPECT_TRUE(list_.IsConsistent());
  Free(high);
  EXPECT_FALSE(list_.IsConsistent());
}

}  // namespace
}  // namespace strata
