#include "strata/strategy/bfc/arena/bfc_index.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

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

// A size class holds more blocks than are compared at first.
TEST(BfcIndexTest, TheFastIndexMissesNoBlockThatFits) {
  constexpr std::size_t kBytes = std::size_t{1} << 24;
  BfcIndex fast(BfcPlacement::kFast, OrderedIndex::AddressOrder::kAscending);
  Block fits = FreeBlock(0x2000000, kBytes + 8192);
  fast.Insert(&fits);
  std::vector<Block> too_small(8, FreeBlock(0x40000000, kBytes));
  for (Block& block : too_small) fast.Insert(&block);
  EXPECT_EQ(fast.Take(kBytes + 4096), &fits);
  EXPECT_FALSE(fits.is_free);
  fast.Insert(&fits);
  // A block that happens to be aligned is found too.
  const auto is_meant = [&](const Block* block) { return block == &fits; };
  EXPECT_EQ(fast.TakeIf(kBytes, 2 * kBytes, is_meant), &fits);
  EXPECT_FALSE(fits.is_free);
  EXPECT_EQ(fast.TakeIf(kBytes, 2 * kBytes, is_meant), nullptr);
  EXPECT_TRUE(fast.IsConsistent());
}

}  // namespace
}  // namespace strata
