#include "strata/strategy/blocks/idle_chunks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/base/size.h"

namespace strata {
namespace {

// Four chunks with one free block each.
class IdleChunksTest : public ::testing::Test {
 protected:
  static constexpr std::array<std::size_t, 4> kMebibytes = {3, 1, 4, 3};

  IdleChunksTest() {
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      Block* memory = RecordSlab::Instance().Take();
      memory->size = Mebibytes(kMebibytes[i]);
      chunks_[i].memory = memory->allocation();
      chunks_[i].first = &blocks_[i];
      blocks_[i].size = memory->size;
      blocks_[i].is_free = true;
    }
  }
  ~IdleChunksTest() override {
    for (Chunk& chunk : chunks_) {
      RecordSlab::Instance().Give(chunk.memory->block());
    }
  }
  void AddAll() {
    for (Chunk& chunk : chunks_) idle_.Add(&chunk);
  }

  std::array<Chunk, 4> chunks_;
  std::array<Block, 4> blocks_;
  IdleChunks idle_;
};

TEST_F(IdleChunksTest, WithoutChunksNothingIsFound) {
  EXPECT_EQ(idle_.first(), nullptr);
  EXPECT_EQ(idle_.Smallest(1), nullptr);
  ChunkHolder::IdleInfo sizes;
  idle_.FillInSizes(1, sizes);
  EXPECT_EQ(sizes.best_fit, 0U);
  EXPECT_EQ(sizes.largest, 0U);
  EXPECT_EQ(idle_.bytes(), 0U);
}

TEST_F(IdleChunksTest, FindsTheSmallestThatIsLargeEnough) {
  AddAll();
  EXPECT_EQ(idle_.Smallest(1), &chunks_[1]);
  ChunkHolder::IdleInfo sizes;
  idle_.FillInSizes(Mebibytes(1) + 1, sizes);
  EXPECT_EQ(sizes.best_fit, Mebibytes(3));
  EXPECT_EQ(idle_.Smallest(Mebibytes(4)), &chunks_[2]);
  EXPECT_EQ(idle_.Smallest(Mebibytes(4) + 1), nullptr);
  EXPECT_EQ(sizes.largest, Mebibytes(4));
}

TEST_F(IdleChunksTest, CountsBytesAndWholeStepsOfTheSystem) {
  AddAll();
  EXPECT_EQ(idle_.bytes(), Mebibytes(11));
  EXPECT_EQ(idle_.system_bytes(), Mebibytes(4 + 2 + 4 + 4));
  EXPECT_TRUE(idle_.IsConsistent());
  for (const std::size_t i : {1U, 3U, 0U, 2U}) {  // inner, last and first one
    idle_.Remove(&chunks_[i]);
    EXPECT_TRUE(idle_.IsConsistent());
  }
  EXPECT_EQ(idle_.bytes(), 0U);
  EXPECT_EQ(idle_.system_bytes(), 0U);
  EXPECT_EQ(idle_.first(), nullptr);
}

TEST_F(IdleChunksTest, TheLargestComeFirstAndOfASizeInTheirOrder) {
  idle_.SortBySize();
  EXPECT_EQ(idle_.first(), nullptr);
  for (std::size_t count = 1; count <= chunks_.size(); ++count) {
    for (std::size_t i = 0; i < count; ++i) idle_.Add(&chunks_[i]);
    idle_.SortBySize();
    EXPECT_TRUE(idle_.IsConsistent());
    // The last added chunk of 3 MiB.
    std::vector<const Chunk*> order;
    if (count > 2) order.push_back(&chunks_[2]);
    if (count > 3) order.push_back(&chunks_[3]);
    order.push_back(&chunks_[0]);
    if (count > 1) order.push_back(&chunks_[1]);
    for (const Chunk* expected : order) {
      ASSERT_EQ(idle_.first(), expected);
      idle_.Remove(idle_.first());
    }
    EXPECT_EQ(idle_.first(), nullptr);
  }
}

TEST_F(IdleChunksTest, NoticesAChunkThatIsInUse) {
  AddAll();
  blocks_[2].is_free = false;
  EXPECT_FALSE(idle_.IsConsistent());
}

}  // namespace
}  // namespace strata
