#include "strata/strategy/blocks/record_stock.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/locks/spin_lock.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

class RecordStockTest : public ::testing::Test {
 protected:
  ~RecordStockTest() override { EXPECT_EQ(slab_.taken(), taken_before_); }

  RecordSlab& slab_ = RecordSlab::Instance();
  const std::size_t taken_before_ = slab_.taken();
  SpinLock lock_;
};

TEST_F(RecordStockTest, RestocksToABatch) {
  RecordStock stock(slab_);
  EXPECT_TRUE(stock.Restock(lock_));
  EXPECT_EQ(stock.size(), kRecordBatch);
  // A full stock returns its surplus.
  EXPECT_TRUE(stock.Restock(lock_));
  EXPECT_EQ(stock.size(), kRecordBatch);
  EXPECT_EQ(slab_.taken(), taken_before_ + kRecordBatch);
}

TEST_F(RecordStockTest, HasWhatTheSlabHasWithoutTheHeap) {
  RecordStock stock(slab_);
  RecordSlab::List all;
  slab_.FillFromStock(all, SIZE_MAX);
  const HeapCallCounter heap;
  EXPECT_FALSE(stock.Has(1));
  EXPECT_EQ(heap.calls(), 0U);
  if (all.empty()) {
    ASSERT_TRUE(slab_.Fill(all, 1));
  }
  slab_.Drain(all);
  EXPECT_TRUE(stock.Has(1));
}

TEST_F(RecordStockTest, ASupplyGivesBackWhatIsNotTaken) {
  RecordStock stock(slab_);
  ASSERT_TRUE(stock.Restock(lock_));
  slab_.Give(stock.Pop());
  {
    RecordStock supply(slab_);
    ASSERT_TRUE(supply.Fill());
    stock.TakeFrom(supply);
    EXPECT_EQ(stock.size(), kRecordBatch);
  }
  EXPECT_EQ(slab_.taken(), taken_before_ + kRecordBatch);
}

TEST_F(RecordStockTest, ShedsHalfOfWhatIsTooMuchAndBlanksIt) {
  RecordStock stock(slab_);
  RecordSlab::List many;
  ASSERT_TRUE(slab_.Fill(many, 2000));
  std::byte somewhere{};
  while (Block* record = many.Pop()) {
    record->data = &somewhere;
    stock.Push(record);
  }
  stock.Shed();
  EXPECT_EQ(stock.size(), 512U);
  EXPECT_EQ(slab_.taken(), taken_before_ + 512);
  Block* fresh = slab_.Take();
  EXPECT_EQ(fresh->data, nullptr);
  slab_.Give(fresh);
  stock.Shed();
  EXPECT_EQ(stock.size(), 512U);
}

}  // namespace
}  // namespace strata
