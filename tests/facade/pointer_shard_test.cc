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

class PointerShardTest : public testing::Test {
 protected:
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
  // As PointerMap does: one step after the other.
  bool InsertAtOnce(Allocation* allocation) {
    return shard_.InsertAtOnce(allocation->data(), allocation, slots_);
  }
  void InsertInSteps(Allocation* allocation) {
    if (!InsertAtOnce(allocation)) {
      shard_.Insert(allocation->data(), allocation);
    }
  }
  Allocation* TakeInSteps(const void* data) {
    Allocation* const taken = shard_.TakeAtOnce(data);
    return taken != nullptr ? taken : shard_.Take(data);
  }

  PointerShard shard_;
  PointerSlots slots_;  // empty, unless a test inserts

 private:
  std::deque<Allocation*> records_;
  std::uintptr_t next_ = 0x7f0000000000;
};

TEST_F(PointerShardTest, TheFirstWaitsWithoutATable) {
  Allocation* const first = NewRecord();
  EXPECT_TRUE(InsertAtOnce(first));
  EXPECT_EQ(shard_.Find(first->data()), first);
  EXPECT_EQ(shard_.TakeAtOnce(first->data()), first);
  EXPECT_EQ(shard_.TakeAtOnce(first->data()), nullptr);
  EXPECT_EQ(shard_.Take(first->data()), nullptr);
  EXPECT_TRUE(InsertAtOnce(first));
  EXPECT_EQ(shard_.Take(first->data()), first);
}

TEST_F(PointerShardTest, TheNextHasTheFirstEnterATableWithRoom) {
  Allocation* const first = NewRecord();
  Allocation* const second = NewRecord();
  Allocation* const third = NewRecord();
  ASSERT_TRUE(InsertAtOnce(first));
  EXPECT_FALSE(InsertAtOnce(second));  // no table yet
  EXPECT_EQ(shard_.Find(second->data()), nullptr);
  shard_.Insert(second->data(), second);
  EXPECT_TRUE(InsertAtOnce(third));
  EXPECT_EQ(shard_.TakeAtOnce(second->data()), second);
  EXPECT_EQ(shard_.TakeAtOnce(second->data()), nullptr);
  EXPECT_EQ(shard_.TakeAtOnce(third->data()), third);
  EXPECT_EQ(shard_.Take(first->data()), first);
}

// What waited and was taken does not enter the table when the next one comes.
TEST_F(PointerShardTest, WhatWasTakenWhileItWaitedIsGone) {
  std::vector<Allocation*> records;
  for (int i = 0; i < 3; ++i) records.push_back(NewRecord());
  for (Allocation* record : records) InsertInSteps(record);
  for (Allocation* record : records) TakeInSteps(record->data());
  for (Allocation* record : records) {
    EXPECT_TRUE(InsertAtOnce(record));
    EXPECT_EQ(shard_.TakeAtOnce(record->data()), record);
  }
  EXPECT_EQ(shard_.Clear(), 0U);
}

// Whatever a caller frees before anything was inserted.
TEST_F(PointerShardTest, GivesNothingWhereNothingWasInserted) {
  Allocation* const record = NewRecord();
  EXPECT_EQ(TakeInSteps(nullptr), nullptr);
  EXPECT_EQ(TakeInSteps(record->data()), nullptr);
  EXPECT_EQ(shard_.Find(nullptr), nullptr);
  EXPECT_EQ(shard_.Clear(), 0U);
}

// What a thread takes it inserts again after it took another, so that the
// newest is seldom the same when a second thread looks twice.
TEST_F(PointerShardTest, ThreadsThatTakeTheSameGetItInTurn) {
  constexpr int kRounds = 1000000;
  constexpr unsigned kThreads = 3;
  std::vector<Allocation*> records;
  for (int i = 0; i < 4; ++i) records.push_back(NewRecord());
  std::vector<std::atomic<int>> holders(records.size());
  for (Allocation* record : records) InsertInSteps(record);
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
        InsertInSteps(records[held]);
      };
      std::optional<std::size_t> held;
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t any = random() % records.size();
        Allocation* const taken = TakeInSteps(records[any]->data());
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
    EXPECT_EQ(TakeInSteps(record->data()), record);
  }
  EXPECT_EQ(shard_.Clear(), 0U);
}

// So that what stays does not keep slots from what comes and goes.
TEST_F(PointerShardTest, NowAndThenWhoHasTheSlotMakesWay) {
  Allocation* const resident = NewRecord();
  ASSERT_TRUE(slots_.Insert(resident->data(), resident));
  Allocation* rival = nullptr;
  do {
    rival = NewRecord();
  } while (PointerSlots::IndexOf(rival->data()) !=
           PointerSlots::IndexOf(resident->data()));
  int inserts = 0;
  for (; slots_.Find(rival->data()) == nullptr && inserts < 100; ++inserts) {
    EXPECT_EQ(slots_.Find(resident->data()), resident);
    TakeInSteps(rival->data());
    InsertInSteps(rival);
  }
  EXPECT_GT(inserts, 1);
  EXPECT_LT(inserts, 100);
  EXPECT_EQ(shard_.Find(rival->data()), nullptr);
  EXPECT_EQ(shard_.Find(resident->data()), resident);
  EXPECT_EQ(TakeInSteps(resident->data()), resident);
  EXPECT_EQ(slots_.Take(rival->data()), rival);
}

using PointerShardDeathTest = PointerShardTest;

TEST_F(PointerShardDeathTest, RefusesAnAddressThatIsThere) {
  std::vector<Allocation*> records;
  for (int i = 0; i < 8; ++i) records.push_back(NewRecord());
  for (Allocation* record : records) InsertInSteps(record);
  Allocation* const newest = records.back();
  EXPECT_DEATH(InsertInSteps(newest), "handed out twice");
  // One in the table is found out when the next one follows.
  EXPECT_DEATH(
      {
        InsertInSteps(records.front());
        InsertInSteps(NewRecord());
      },
      "handed out twice");
  for (Allocation* record : records) TakeInSteps(record->data());
}

}  // namespace
}  // namespace strata
