#include "strata/facade/pointer_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/allocation/record_slab.h"

namespace strata {
namespace {

class PointerTableTest : public testing::Test {
 protected:
  ~PointerTableTest() override {
    for (Allocation* record : records_) {
      RecordSlab::Instance().Give(record->block());
    }
  }

  Allocation* RecordAt(std::uintptr_t address) {
    Block* block = RecordSlab::Instance().Take();
    block->data = reinterpret_cast<std::byte*>(address);
    records_.push_back(block->allocation());
    return records_.back();
  }
  // `count` records with address hashes in the `part`th of 64 parts.
  std::vector<Allocation*> RecordsIn(std::uint64_t part, std::size_t count) {
    std::vector<Allocation*> result;
    for (; result.size() < count; next_ += 256) {
      const std::uint64_t hash =
          PointerTable::Hash(reinterpret_cast<const void*>(next_));
      if (hash >> 58 == part) result.push_back(RecordAt(next_));
    }
    return result;
  }
  // Reserves room for all of `records`, and adds them.
  void Insert(const std::vector<Allocation*>& records) {
    for (Allocation* record : records) {
      if (table_.is_full()) {
        PointerTable larger = PointerTable::Larger(table_.bucket_count());
        larger.AddAll(table_);
        table_ = std::move(larger);
      }
      ASSERT_TRUE(
          table_.InsertAtOnce(PointerTable::Hash(record->data()), record) ||
          table_.Insert(record->data(), record));
    }
  }

  PointerTable table_;

 private:
  std::deque<Allocation*> records_;
  std::uintptr_t next_ = 0x7f0000000000;
};

TEST_F(PointerTableTest, AnEmptyOneHasNoRoomAndFindsNothing) {
  EXPECT_TRUE(table_.is_full());
  EXPECT_EQ(table_.Find(this), nullptr);
  EXPECT_EQ(table_.Take(this), nullptr);
  EXPECT_EQ(table_.TakeAtOnce(PointerTable::Hash(this), this), nullptr);
  EXPECT_FALSE(table_.InsertAtOnce(PointerTable::Hash(this), nullptr));
  table_.Prefetch(PointerTable::Hash(this));
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(PointerTableTest, RefusesAnAddressThatIsThere) {
  Allocation* const first = RecordAt(0x1000);
  Insert({first});
  EXPECT_FALSE(table_.Insert(first->data(), RecordAt(0x1000)));
  EXPECT_EQ(table_.Find(first->data()), first);
  EXPECT_EQ(table_.size(), 1U);
}

// After an entry passed a full bucket, the bucket alone cannot prove that an
// address is absent.
TEST_F(PointerTableTest, ABucketDecidesAtOnceOnlyIfNothingPassedIt) {
  const std::vector<Allocation*> records = RecordsIn(0, 8);
  Insert(records);  // one more than fits into the bucket
  Allocation* const passed = records.back();
  EXPECT_FALSE(table_.InsertAtOnce(PointerTable::Hash(passed->data()), passed));
  EXPECT_EQ(table_.TakeAtOnce(PointerTable::Hash(records.front()->data()),
                              records.front()->data()),
            records.front());
  EXPECT_FALSE(table_.InsertAtOnce(PointerTable::Hash(passed->data()), passed));
  EXPECT_EQ(
      table_.TakeAtOnce(PointerTable::Hash(passed->data()), passed->data()),
      nullptr);
  EXPECT_EQ(table_.Take(passed->data()), passed);
  EXPECT_TRUE(table_.InsertAtOnce(PointerTable::Hash(passed->data()), passed));
  EXPECT_FALSE(table_.InsertAtOnce(PointerTable::Hash(passed->data()), passed));
  EXPECT_TRUE(table_.IsConsistent());
}

TEST_F(PointerTableTest, GrowsWithAllThatIsInIt) {
  std::vector<Allocation*> records;
  for (std::uintptr_t i = 1; i <= 5000; ++i) {
    records.push_back(RecordAt(i * 4096));
  }
  Insert(records);
  EXPECT_EQ(table_.size(), records.size());
  // Two thirds full before it grows.
  EXPECT_LE(table_.bucket_count() * 7, 4 * records.size());
  for (Allocation* record : records) {
    EXPECT_EQ(table_.Find(record->data()), record);
  }
  std::size_t visited = 0;
  table_.ForEach([&](Allocation* record) {
    visited += table_.Find(record->data()) == record;
  });
  EXPECT_EQ(visited, records.size());
}

// The entries of the last bucket fill it and the following buckets, which are
// the first ones of the table: more than a bucket can count.
TEST_F(PointerTableTest, FindsWhatWentPastFullBuckets) {
  std::vector<Allocation*> records = RecordsIn(63, 315);
  Insert(records);
  ASSERT_EQ(table_.bucket_count(), 64U);
  Allocation* const missing = RecordsIn(63, 1).front();
  std::mt19937 random(7);
  std::shuffle(records.begin(), records.end(), random);
  while (!records.empty()) {
    EXPECT_EQ(table_.Find(missing->data()), nullptr);
    Allocation* const taken = records.back();
    records.pop_back();
    ASSERT_EQ(table_.Take(taken->data()), taken);
    ASSERT_EQ(table_.Take(taken->data()), nullptr);
    ASSERT_TRUE(table_.IsConsistent());
  }
  EXPECT_EQ(table_.size(), 0U);
}

// Compared with a map of the standard library, with many full buckets.
TEST_F(PointerTableTest, DoesWhatANaiveMapDoes) {
  std::vector<Allocation*> absent;
  for (const std::uint64_t part : {0U, 1U, 2U, 31U, 62U, 63U}) {
    for (Allocation* record : RecordsIn(part, 50)) absent.push_back(record);
  }
  std::unordered_map<const void*, Allocation*> naive;
  std::vector<Allocation*> present;
  std::mt19937 random(20261122);
  for (int i = 0; i < 20000; ++i) {
    const bool grows = (i / 2000) % 2 == 0;
    auto& from = random() % 8 < (grows ? 5U : 3U) ? absent : present;
    if (from.empty()) continue;
    std::swap(from[random() % from.size()], from.back());
    Allocation* const record = from.back();
    from.pop_back();
    if (&from == &absent) {
      Insert({record});
      naive.emplace(record->data(), record);
      present.push_back(record);
    } else {
      Allocation* taken =
          table_.TakeAtOnce(PointerTable::Hash(record->data()), record->data());
      if (taken == nullptr) taken = table_.Take(record->data());
      ASSERT_EQ(taken, record);
      naive.erase(record->data());
      absent.push_back(record);
    }
    if (i % 100 != 0) continue;
    ASSERT_TRUE(table_.IsConsistent());
    for (Allocation* one : absent) ASSERT_EQ(table_.Find(one->data()), nullptr);
    for (const auto& [data, one] : naive) ASSERT_EQ(table_.Find(data), one);
  }
  EXPECT_EQ(table_.size(), naive.size());
}

}  // namespace
}  // namespace strata
