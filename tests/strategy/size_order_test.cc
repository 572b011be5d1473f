#include "strata/strategy/buddy/size_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "strata/allocation/size.h"

namespace strata {
namespace {

Block FreeBlock(std::uintptr_t address, std::size_t size) {
  Block block;
  block.data = reinterpret_cast<std::byte*>(address);
  block.size = size;
  block.is_free = true;
  return block;
}

TEST(SizeOrderTest, AnEmptyOneFindsNothing) {
  SizeOrder order;
  EXPECT_EQ(order.FindBestFit(1), nullptr);
  EXPECT_EQ(order.FindBestFit(SIZE_MAX), nullptr);
  EXPECT_EQ(order.LargestBytes(), 0U);
  EXPECT_TRUE(order.IsConsistent());
}

TEST(SizeOrderTest, TakesTheLowestAddressAmongEquals) {
  SizeOrder order;
  Block high = FreeBlock(0x30000, 512);
  Block low = FreeBlock(0x10000, 512);
  Block between = FreeBlock(0x20000, 512);
  for (Block* block : {&high, &low, &between}) order.Insert(block);
  EXPECT_EQ(order.FindBestFit(257), &low);
  order.Remove(&low);
  EXPECT_EQ(order.FindBestFit(512), &between);
}

// Sizes of one class, which an index by classes alone would not tell apart.
TEST(SizeOrderTest, TellsSizesOfOneClassApart) {
  SizeOrder order;
  Block larger = FreeBlock(0x10000, Mebibytes(1) + 512);
  Block smaller = FreeBlock(0x800000, Mebibytes(1) + 256);
  order.Insert(&larger);
  order.Insert(&smaller);
  EXPECT_EQ(order.FindBestFit(Mebibytes(1) + 1), &smaller);
  EXPECT_EQ(order.FindBestFit(Mebibytes(1) + 257), &larger);
  EXPECT_EQ(order.FindBestFit(Mebibytes(1) + 513), nullptr);
}

TEST(SizeOrderTest, AgreesWithASortedSet) {
  using Key = std::tuple<std::size_t, std::byte*, Block*>;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Block> blocks(400);
    SizeOrder order;
    std::set<Key> model;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      // Few sizes, so that ties are long.
      const std::size_t size =
          256 * (1 + random() % (std::size_t{1} << (1 + random() % 14)));
      blocks[i] = FreeBlock((i + 1) << 30, size);
    }
    for (int step = 0; step < 3000; ++step) {
      Block& block = blocks[random() % blocks.size()];
      const Key key{block.size, block.data, &block};
      if (model.erase(key) != 0) {
        order.Remove(&block);
        bytes -= block.size;
      } else {
        model.insert(key);
        order.Insert(&block);
        bytes += block.size;
      }
      const std::size_t wanted = 1 + random() % (1U << (6 + random() % 17));
      const auto fit = model.lower_bound(Key{wanted, nullptr, nullptr});
      ASSERT_EQ(order.FindBestFit(wanted),
                fit != model.end() ? std::get<2>(*fit) : nullptr)
          << "seed " << seed << ", step " << step;
      ASSERT_EQ(order.count(), model.size());
      ASSERT_EQ(order.total_bytes(), bytes);
      ASSERT_EQ(order.LargestBytes(),
                model.empty() ? 0U : std::get<0>(*model.rbegin()));
    }
    EXPECT_TRUE(order.IsConsistent());
  }
}

TEST(SizeOrderTest, NoticesABlockThatChangedItsSize) {
  SizeOrder order;
  Block block = FreeBlock(0x10000, 512);
  order.Insert(&block);
  block.size = 768;
  EXPECT_FALSE(order.IsConsistent());
}

}  // namespace
}  // namespace strata
