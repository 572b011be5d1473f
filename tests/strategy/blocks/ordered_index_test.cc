// tf_bfc.md R6, R8, W14, paddle.md §3.4 rule 3: order by size, then by address.

#include "strata/strategy/blocks/ordered_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/base/size.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

// Free blocks with made-up addresses.
class Blocks {
 public:
  Block* Add(std::uintptr_t address, std::size_t bytes) {
    auto block = std::make_unique<Block>();
    block->data = reinterpret_cast<std::byte*>(address);
    block->size = bytes;
    block->is_free = true;
    blocks_.push_back(std::move(block));
    return blocks_.back().get();
  }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
};

TEST(OrderedIndexTest, AnEmptyOneFindsNothing) {
  OrderedIndex index;
  EXPECT_EQ(index.Find(1), nullptr);
  EXPECT_EQ(index.Find(std::size_t{1} << 48), nullptr);
  EXPECT_EQ(index.Find(SIZE_MAX), nullptr);
  EXPECT_EQ(index.LargestBytes(), 0U);
  EXPECT_TRUE(index.IsConsistent());
}

// Sizes of one class, which an index by classes alone could not distinguish.
TEST(OrderedIndexTest, TellsSizesOfOneClassApart) {
  Blocks blocks;
  OrderedIndex index;
  Block* larger = blocks.Add(0x10000, Mebibytes(1) + 512);
  Block* smaller = blocks.Add(0x800000, Mebibytes(1) + 256);
  index.Insert(larger);
  index.Insert(smaller);
  EXPECT_EQ(index.Find(Mebibytes(1) + 1), smaller);
  EXPECT_EQ(index.Find(Mebibytes(1) + 257), larger);
  EXPECT_EQ(index.Find(Mebibytes(1) + 513), nullptr);
}

TEST(OrderedIndexTest, SmallestThenLowest) {  // R8
  Blocks blocks;
  OrderedIndex index;
  Block* high = blocks.Add(0x9000, 512);
  Block* low = blocks.Add(0x1000, 512);
  Block* large = blocks.Add(0x0100, 1024);
  for (Block* block : {high, large, low}) index.Insert(block);
  EXPECT_EQ(index.Find(256), low);
  EXPECT_EQ(index.Find(512), low);
  EXPECT_EQ(index.Find(768), large);
  EXPECT_EQ(index.Find(1280), nullptr);
  index.Remove(low);
  EXPECT_EQ(index.Find(300), high);
  EXPECT_EQ(index.LargestBytes(), 1024U);
  EXPECT_EQ(index.count(), 2U);
  EXPECT_EQ(index.total_bytes(), 1536U);
}

TEST(OrderedIndexTest, DescendingOrderConcernsEqualSizesOnly) {  // R66
  Blocks blocks;
  OrderedIndex index(OrderedIndex::AddressOrder::kDescending);
  Block* high = blocks.Add(0x9000, 512);
  index.Insert(blocks.Add(0x1000, 512));
  index.Insert(high);
  index.Insert(blocks.Add(0xF000, 1024));
  EXPECT_EQ(index.Find(256), high);
  EXPECT_TRUE(index.IsConsistent());
}

TEST(OrderedIndexTest, FindIfPassesOverWhatIsNotAccepted) {  // R9
  Blocks blocks;
  OrderedIndex index;
  for (std::uintptr_t i = 0; i < 40; ++i) {
    index.Insert(blocks.Add(0x1000 + i * 0x1000, 256 * (1 + i % 5)));
  }
  std::vector<std::pair<std::size_t, const std::byte*>> seen;
  EXPECT_EQ(index.FindIf(512,
                         [&](const Block* block) {
                           seen.emplace_back(block->size, block->data);
                           return false;
                         }),
            nullptr);
  EXPECT_EQ(seen.size(), 32U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  const Block* found =
      index.FindIf(512, [](const Block* block) { return block->size >= 1280; });
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->size, 1280U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->data), 0x5000U);
}

TEST(OrderedIndexTest, AgreesWithASet) {
  std::mt19937_64 random(5);
  Blocks blocks;
  OrderedIndex index;
  std::vector<Block*> all;
  for (std::uintptr_t i = 0; i < 3000; ++i) {
    const std::size_t bytes = 256 * (1 + random() % (1U << (random() % 14)));
    all.push_back(blocks.Add(Mebibytes(16) * (1 + i), bytes));
  }
  std::vector<bool> in(all.size());
  const auto before = [](const Block* a, const Block* b) {
    return std::pair(a->size, a->data) < std::pair(b->size, b->data);
  };
  std::set<Block*, decltype(before)> ordered(before);
  std::size_t bytes_in = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::size_t which = random() % all.size();
    if (in[which]) {
      index.Remove(all[which]);
      ordered.erase(all[which]);
      bytes_in -= all[which]->size;
    } else {
      index.Insert(all[which]);
      ordered.insert(all[which]);
      bytes_in += all[which]->size;
    }
    in[which] = !in[which];
    const std::size_t wanted = 256 * (1 + random() % (1U << (random() % 15)));
    Block probe;
    probe.size = wanted;
    const auto expected = ordered.lower_bound(&probe);
    ASSERT_EQ(index.Find(wanted),
              expected == ordered.end() ? nullptr : *expected);
    if (i % 3000 == 0) {
      ASSERT_EQ(index.count(), ordered.size());
      ASSERT_EQ(index.total_bytes(), bytes_in);
      ASSERT_TRUE(index.IsConsistent());
      ASSERT_EQ(index.LargestBytes(),
                ordered.empty() ? 0 : (*ordered.rbegin())->size);
    }
  }
}

// W14: no scan of smaller or equal blocks. A list in address order would take
// 10^10 steps for this.
TEST(OrderedIndexTest, ManyBlocksOfOneSizeStayCheap) {
  constexpr std::size_t kBlocks = 200'000;
  Blocks blocks;
  OrderedIndex index;
  std::vector<Block*> all;
  for (std::uintptr_t i = 0; i < kBlocks; ++i) {
    // In an order that is neither ascending nor random.
    all.push_back(blocks.Add(4096 * (1 + (i * 7919) % kBlocks), 512));
  }
  const HeapCallCounter heap;
  for (Block* block : all) index.Insert(block);
  std::uintptr_t last = 0;
  bool ascends = true;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    Block* block = index.Find(512);
    index.Remove(block);
    const auto address = reinterpret_cast<std::uintptr_t>(block->data);
    ascends = ascends && address > last;
    last = address;
  }
  EXPECT_EQ(heap.calls(), 0U);
  EXPECT_TRUE(ascends);
  EXPECT_EQ(index.count(), 0U);
}

// Blocks at equal distances, as in a fresh chunk with one size. At some
// distances, such as the Fibonacci numbers, priorities from a hash of one
// multiplication rise with the address; then each block has one child.
TEST(OrderedIndexTest, StaysShallowWhateverTheDistance) {
  constexpr std::size_t kBlocks = 4000;
  for (const std::size_t granules :
       {2U, 3U, 16U, 144U, 1597U, 2584U, 4096U, 4181U, 17711U, 65536U}) {
    Blocks blocks;
    OrderedIndex index;
    for (std::size_t i = 1; i <= kBlocks; ++i) {
      index.Insert(blocks.Add(256 * granules * i, 512));
    }
    // 12 levels could hold them all; a random tree needs about 28.
    EXPECT_LE(index.Depth(), 48U) << granules;
  }
}

TEST(OrderedIndexTest, NoticesABlockThatChangedItsSize) {
  Blocks blocks;
  OrderedIndex index;
  Block* block = blocks.Add(0x10000, 512);
  index.Insert(block);
  EXPECT_TRUE(index.IsConsistent());
  block->size = 768;
  EXPECT_FALSE(index.IsConsistent());
}

}  // namespace
}  // namespace strata
