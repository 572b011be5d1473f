// tf_bfc.md R6, R8, W14: the order of size, then address.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/allocation/size.h"
#include "strata/strategy/bfc/bfc_index.h"
#include "strata/strategy/bfc/ordered_index.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

// Free blocks that the test made up.
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
  for (int i = 0; i < 30'000; ++i) {
    const std::size_t which = random() % all.size();
    if (in[which]) {
      index.Remove(all[which]);
      ordered.erase(all[which]);
    } else {
      index.Insert(all[which]);
      ordered.insert(all[which]);
    }
    in[which] = !in[which];
    const std::size_t wanted = 256 * (1 + random() % (1U << (random() % 15)));
    Block probe;
    probe.size = wanted;
    const auto expected = ordered.lower_bound(&probe);
    ASSERT_EQ(index.Find(wanted),
              expected == ordered.end() ? nullptr : *expected);
    if (i % 3000 == 0) {
      ASSERT_TRUE(index.IsConsistent());
      ASSERT_EQ(index.LargestBytes(),
                ordered.empty() ? 0 : (*ordered.rbegin())->size);
    }
  }
}

// W14: no scan of smaller or equal ones. A list in address order would take
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

TEST(BfcIndexTest, TheFastIndexTakesWhatSurelyFits) {
  Blocks blocks;
  BfcIndex fast(BfcPlacement::kFast, OrderedIndex::AddressOrder::kAscending);
  Block* small = blocks.Add(0x1100, 1024);
  Block* large = blocks.Add(0x5000, 8192);
  fast.Insert(small);
  fast.Insert(large);
  EXPECT_TRUE(small->is_free);
  EXPECT_EQ(fast.Find(1024), small);
  EXPECT_EQ(fast.FindIf(1024, 1024 + 4096 - 256, [](Block*) { return true; }),
            large);
  EXPECT_EQ(fast.LargestBytes(), 8192U);
  EXPECT_EQ(fast.total_bytes(), 9216U);
  EXPECT_TRUE(fast.IsConsistent());
  fast.Remove(small);
  EXPECT_FALSE(small->is_free);
  EXPECT_EQ(fast.count(), 1U);
}

}  // namespace
}  // namespace strata
