#include "strata/facade/pointer_shard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/record_slab.h"

namespace strata {
namespace {

// Whether a thread may own the lock.
class PointerShardTest : public testing::TestWithParam<bool> {
 protected:
  PointerShardTest() {
    if (!GetParam()) return;
    shard_.AllowBias();
    // Until this thread owns it, if it can: else the steps do nothing.
    for (int i = 0; i < 100; ++i) shard_.Find(this);
  }
  ~PointerShardTest() override {
    for (Allocation* record : records_) {
      EXPECT_EQ(shard_.Take(record->data()), nullptr);
      RecordSlab::Instance().Give(record->block());
    }
  }

  Allocation* NewRecord() {
    Block* block = RecordSlab::Instance().Take();
    next_ += 512;
    block->data = reinterpret_cast<std::byte*>(next_);
    records_.push_back(block->allocation());
    return records_.back();
  }
  // As the C ABI does: one step after the other.
  static void InsertInSteps(PointerShard& shard, Allocation* allocation) {
    const void* const data = allocation->data();
    if (shard.InsertFirst(data, allocation)) return;
    if (shard.InsertNext(data, allocation)) return;
    shard.Insert(data, allocation);
  }
  static Allocation* TakeInSteps(PointerShard& shard, const void* data) {
    Allocation* taken = shard.TakeNewest(data);
    if (taken == nullptr) taken = shard.TakeOther(data);
    return taken != nullptr ? taken : shard.Take(data);
  }

  PointerShard shard_;

 private:
  std::deque<Allocation*> records_;
  std::uintptr_t next_ = 0x7f0000000000;
};

std::string NameOfLock(const testing::TestParamInfo<bool>& test) {
  return test.param ? "biased" : "plain";
}

INSTANTIATE_TEST_SUITE_P(Both, PointerShardTest, testing::Bool(), NameOfLock);

TEST_P(PointerShardTest, TheFirstWaitsAndOnlyTheNewestStepTakesIt) {
  Allocation* const first = NewRecord();
  Allocation* const second = NewRecord();
  EXPECT_TRUE(shard_.InsertFirst(first->data(), first));
  EXPECT_FALSE(shard_.InsertFirst(second->data(), second));
  EXPECT_EQ(shard_.Find(second->data()), nullptr);
  EXPECT_EQ(shard_.TakeNewest(second->data()), nullptr);
  EXPECT_EQ(shard_.TakeOther(first->data()), nullptr);
  EXPECT_EQ(shard_.Find(first->data()), first);
  EXPECT_EQ(shard_.TakeNewest(first->data()), first);
  EXPECT_EQ(shard_.TakeNewest(first->data()), nullptr);
  EXPECT_EQ(shard_.Take(first->data()), nullptr);
}

TEST_P(PointerShardTest, TheNextHasTheFirstEnterATableWithRoom) {
  Allocation* const first = NewRecord();
  Allocation* const second = NewRecord();
  Allocation* const third = NewRecord();
  ASSERT_TRUE(shard_.InsertFirst(first->data(), first));
  EXPECT_FALSE(shard_.InsertNext(second->data(), second));  // no table yet
  EXPECT_EQ(shard_.Find(second->data()), nullptr);
  shard_.Insert(second->data(), second);
  EXPECT_TRUE(shard_.InsertNext(third->data(), third));
  EXPECT_EQ(shard_.TakeNewest(second->data()), nullptr);
  EXPECT_EQ(shard_.TakeOther(second->data()), second);
  EXPECT_EQ(shard_.TakeOther(second->data()), nullptr);
  EXPECT_EQ(shard_.TakeNewest(third->data()), third);
  EXPECT_EQ(shard_.Take(first->data()), first);
}

// The first may be gone when the second step looks.
TEST_P(PointerShardTest, TheNextIsTheFirstWhereNothingWaitsAnyMore) {
  std::vector<Allocation*> records;
  for (int i = 0; i < 3; ++i) records.push_back(NewRecord());
  for (Allocation* record : records) InsertInSteps(shard_, record);
  for (Allocation* record : records) TakeInSteps(shard_, record->data());
  Allocation* const next = records.front();
  EXPECT_TRUE(shard_.InsertNext(next->data(), next));
  EXPECT_EQ(shard_.TakeNewest(next->data()), next);
  EXPECT_EQ(shard_.Clear(), 0U);
}

// Whatever a caller frees before anything was inserted.
TEST_P(PointerShardTest, WhereItIsClosedNoStepInserts) {
  shard_.Close();
  Allocation* const record = NewRecord();
  EXPECT_EQ(TakeInSteps(shard_, nullptr), nullptr);
  EXPECT_EQ(TakeInSteps(shard_, record->data()), nullptr);
  EXPECT_EQ(TakeInSteps(shard_, reinterpret_cast<const void*>(-1)), nullptr);
  EXPECT_EQ(shard_.Clear(), 0U);
  EXPECT_FALSE(shard_.InsertFirst(record->data(), record));
  EXPECT_FALSE(shard_.InsertNext(record->data(), record));
  EXPECT_EQ(shard_.Find(record->data()), nullptr);
}

// What a thread takes it inserts again after it took another, so that the
// newest is seldom the same when a second thread looks twice.
TEST_P(PointerShardTest, ThreadsThatTakeTheSameGetItInTurn) {
  constexpr int kRounds = 1000000;
  constexpr unsigned kThreads = 3;
  std::vector<Allocation*> records;
  for (int i = 0; i < 4; ++i) records.push_back(NewRecord());
  std::vector<std::atomic<int>> holders(records.size());
  for (Allocation* record : records) InsertInSteps(shard_, record);
  std::atomic<int> wrong{0};
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready != kThreads) std::this_thread::yield();
      std::minstd_rand random(i + 1);
      const auto insert = [&](std::size_t held) {
        holders[held].fetch_sub(1);
        InsertInSteps(shard_, records[held]);
      };
      std::optional<std::size_t> held;
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t any = random() % records.size();
        Allocation* const taken = TakeInSteps(shard_, records[any]->data());
        if (taken == nullptr) continue;
        wrong += taken != records[any];
        wrong += holders[any].fetch_add(1) != 0;
        if (held.has_value()) insert(*held);
        held = any;
      }
      if (held.has_value()) insert(*held);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (Allocation* record : records) {
    EXPECT_EQ(TakeInSteps(shard_, record->data()), record);
  }
  EXPECT_EQ(shard_.Clear(), 0U);
}

}  // namespace
}  // namespace strata
