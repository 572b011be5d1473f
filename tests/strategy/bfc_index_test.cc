#include "strata/strategy/bfc/bfc_index.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace strata {
namespace {

Block FreeBlock(std::uintptr_t address, std::size_t bytes) {
  Block block;
  block.data = reinterpret_cast<std::byte*>(address);
  block.size = bytes;
  return block;
}

TEST(BfcIndexTest, TheFastIndexTakesWhatSurelyFits) {
  BfcIndex fast(BfcPlacement::kFast, OrderedIndex::AddressOrder::kAscending);
  Block small = FreeBlock(0x1100, 1024);
  Block large = FreeBlock(0x5000, 8192);
  fast.Insert(&small);
  fast.Insert(&large);
  EXPECT_TRUE(small.is_free);
  EXPECT_EQ(fast.LargestBytes(), 8192U);
  EXPECT_EQ(fast.TakeIf(1024, 1024 + 4096 - 256, [](Block*) { return true; }),
            &large);
  EXPECT_FALSE(large.is_free);
  fast.Insert(&large);
  EXPECT_EQ(fast.Take(1024), &small);
  EXPECT_FALSE(small.is_free);
  EXPECT_TRUE(fast.IsConsistent());
  EXPECT_EQ(fast.Take(1024), &large);
  EXPECT_EQ(fast.Take(1024), nullptr);
}

}  // namespace
}  // namespace strata
