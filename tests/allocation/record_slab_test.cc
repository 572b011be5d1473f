#include "strata/allocation/record_slab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "strata/platform/host/huge_pages.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

RecordSlab& Slab() { return RecordSlab::Instance(); }

bool IsBlank(const Block& block) {
  return block.data == nullptr && block.size == 0 && block.owner == nullptr &&
         block.requested == 0 && block.chunk == nullptr && !block.is_free &&
         block.flags == 0 && block.offset_units == 0 &&
         block.place() == Place() && block.pool == 0 &&
         block.previous == nullptr;
}

TEST(RecordSlabTest, CountsWhatIsOut) {
  const std::size_t before = Slab().taken();
  Block* record = Slab().Take();
  EXPECT_EQ(Slab().taken(), before + 1);
  Slab().Give(record);
  EXPECT_EQ(Slab().taken(), before);
}

TEST(RecordSlabTest, RecyclesBlankRecords) {
  Block* record = Slab().Take();
  record->data = reinterpret_cast<std::byte*>(record);
  record->size = 7;
  record->flags = kBlockLive | kBlockMarked;
  record->offset_units = 3;
  record->set_place(ManagedPlace(2));
  record->pool = 1;
  record->requested = 5;
  record->is_free = true;
  Slab().Give(record);
  Block* again = Slab().Take();
  EXPECT_EQ(again, record);
  EXPECT_TRUE(IsBlank(*again));
  EXPECT_EQ(again->next, nullptr);
  Slab().Give(again);
}

TEST(RecordSlabTest, NeverHandsOutARecordTwice) {
  RecordSlab::List list;
  ASSERT_TRUE(Slab().Fill(list, 5000));
  EXPECT_EQ(list.size(), 5000U);
  std::set<Block*> seen;
  for (std::size_t i = 0; i < 5000; ++i) {
    Block* record = list.Pop();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record) % 64, 0U);
    EXPECT_TRUE(seen.insert(record).second);
  }
  EXPECT_TRUE(list.empty());
  for (Block* record : seen) Slab().Give(record);
}

TEST(RecordSlabTest, DrainGivesAllOfAListBack) {
  const std::size_t before = Slab().taken();
  RecordSlab::List list;
  ASSERT_TRUE(Slab().Fill(list, 100));
  ASSERT_TRUE(Slab().Fill(list, 50));
  EXPECT_EQ(list.size(), 100U);
  EXPECT_EQ(Slab().taken(), before + 100);
  Slab().Drain(list);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(Slab().taken(), before);
}

TEST(RecordSlabTest, StockIsServedWithoutTheHeap) {
  RecordSlab::List list;
  ASSERT_TRUE(Slab().Fill(list, 10));
  Slab().Drain(list);
  const HeapCallCounter heap;
  Slab().FillFromStock(list, 10);
  EXPECT_EQ(list.size(), 10U);
  Slab().Drain(list);
  Slab().Give(Slab().Take());
  EXPECT_EQ(heap.calls(), 0U);
}

TEST(RecordSlabTest, StockAloneMayNotSuffice) {
  // Removes the whole stock.
  RecordSlab::List all;
  Slab().FillFromStock(all, SIZE_MAX);
  RecordSlab::List more;
  Slab().FillFromStock(more, 1);
  EXPECT_TRUE(more.empty());
  EXPECT_TRUE(Slab().Fill(more, 1));
  Slab().Drain(more);
  Slab().Drain(all);
}

TEST(RecordSlabTest, ManyRecordsComeFromLargePages) {
  constexpr std::size_t kOfAPage = kHugePageBytes / sizeof(Allocation);
  RecordSlab::List many;
  ASSERT_TRUE(Slab().Fill(many, kOfAPage));
  RecordSlab::List rest;
  Slab().FillFromStock(rest, SIZE_MAX);
  RecordSlab::List more;
  {
    const HeapCallCounter heap;
    ASSERT_TRUE(Slab().Fill(more, kOfAPage));
    EXPECT_EQ(heap.calls(), 1U);
  }
  std::set<std::uintptr_t> pages;
  RecordSlab::List seen;
  while (Block* record = more.Pop()) {
    EXPECT_TRUE(IsBlank(*record));
    pages.insert(reinterpret_cast<std::uintptr_t>(record) / kHugePageBytes);
    seen.Push(record);
  }
  EXPECT_EQ(pages.size(), 1U);
  for (RecordSlab::List* list : {&many, &rest, &seen}) Slab().Drain(*list);
}

TEST(RecordSlabTest, ServesManyThreads) {
  const std::size_t before = Slab().taken();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 300; ++i) {
        RecordSlab::List list;
        ASSERT_TRUE(Slab().Fill(list, 30));
        Block* record = Slab().Take();
        ASSERT_EQ(record->flags, 0);
        record->flags = kBlockLive;
        Slab().Drain(list);
        Slab().Give(record);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Slab().taken(), before);
}

TEST(RecordSlabTest, NotedRecordsHaveRoomBehindThem) {
  RecordSlab& noted = RecordSlab::Noted();
  RecordSlab::List list;
  ASSERT_TRUE(noted.Fill(list, 1500));
  std::vector<Block*> records;
  while (Block* record = list.Pop()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record) % 128, 0U);
    std::memset(RecordSlab::NoteOf(record), 0xAB, RecordSlab::kNoteBytes);
    records.push_back(record);
  }
  // No note overlaps another record.
  for (Block* record : records) {
    record->next = nullptr;
    EXPECT_TRUE(IsBlank(*record));
  }
  EXPECT_EQ(noted.taken(), 1500U);
  for (Block* record : records) noted.Give(record);
  EXPECT_EQ(noted.taken(), 0U);
}

}  // namespace
}  // namespace strata
