#include "strata/tools/block_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <stdexcept>

#include "strata/allocation/record_slab.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class BlockCheckerTest : public ::testing::Test {
 protected:
  ~BlockCheckerTest() override {
    for (Block* block : blocks_) RecordSlab::Instance().Give(block);
  }

  Allocation& Made(std::uintptr_t address, std::size_t size) {
    Block* block = RecordSlab::Instance().Take();
    blocks_.push_back(block);
    block->data = reinterpret_cast<std::byte*>(address);
    block->size = size;
    return *block->allocation();
  }

  // Hands out a block that must be refused, for the reason given.
  void ExpectRefused(std::uintptr_t address, std::size_t size,
                     std::size_t bytes, const char* reason) {
    const Allocation& bad = Made(address, size);
    EXPECT_THAT([&] { checker_.Allocated(bad, bytes); },
                ThrowsMessage<std::runtime_error>(HasSubstr(reason)));
  }

  BlockChecker checker_;
  std::deque<Block*> blocks_;
};

TEST_F(BlockCheckerTest, AcceptsNeighboursAndReuse) {
  const Allocation& low = Made(0x1000, 0x1000);
  checker_.Allocated(Made(0x2000, 0x1000), 0x1000);
  checker_.Allocated(low, 0x800);
  checker_.Allocated(Made(0x3000, 0x100), 1);
  checker_.Freeing(low);
  checker_.Allocated(Made(0x1000, 0x200), 0x200);
  EXPECT_NO_THROW(checker_.Allocated(Made(0x1200, 0xe00), 0xe00));
}

TEST_F(BlockCheckerTest, RefusesOverlapFromBelowAboveAndInside) {
  checker_.Allocated(Made(0x2000, 0x1000), 0x1000);
  ExpectRefused(0x1f00, 0x200, 1, "overlaps");
  BlockChecker other;
  other.Allocated(Made(0x2000, 0x1000), 0x1000);
  EXPECT_THROW(other.Allocated(Made(0x2f00, 0x200), 1), std::runtime_error);
  BlockChecker third;
  third.Allocated(Made(0x2000, 0x1000), 0x1000);
  EXPECT_THROW(third.Allocated(Made(0x2000, 0x100), 1), std::runtime_error);
}

TEST_F(BlockCheckerTest, RefusesABlockThatIsTooSmall) {
  ExpectRefused(0x1000, 0x100, 0x101, "smaller");
}

TEST_F(BlockCheckerTest, RefusesAWrongAlignment) {
  ExpectRefused(0x1080, 0x100, 1, "aligned");
}

TEST_F(BlockCheckerTest, NoBytesAreAtNullAndOthersAreNot) {
  checker_.Allocated(Made(0, 0), 0);
  checker_.Allocated(Made(0, 0), 0);
  ExpectRefused(0, 0x100, 1, "null");
  ExpectRefused(0x1000, 0x100, 0, "0 bytes");
}

TEST_F(BlockCheckerTest, RefusesAFreeOfABlockThatChanged) {
  Allocation& block = Made(0x1000, 0x100);
  checker_.Allocated(block, 1);
  block.block()->size = 0x200;
  EXPECT_THAT([&] { checker_.Freeing(block); },
              ThrowsMessage<std::runtime_error>(HasSubstr("handed out")));
}

TEST_F(BlockCheckerTest, RefusesASecondFree) {
  const Allocation& block = Made(0x1000, 0x100);
  checker_.Allocated(block, 1);
  checker_.Freeing(block);
  EXPECT_THROW(checker_.Freeing(block), std::runtime_error);
}

}  // namespace
}  // namespace strata
