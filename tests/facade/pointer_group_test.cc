#include "strata/facade/pointer_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/facade/front.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

class PointerGroupTest : public FacadeFixture {
 protected:
  PointerGroupTest() { Build(); }
  ~PointerGroupTest() override {
    for (Allocation* record : records_) {
      EXPECT_EQ(group_.Take(record->data()), nullptr);
      RecordSlab::Instance().Give(record->block());
    }
  }

  Allocation* NewRecord() { return NewRecordAt(next_ += 512); }
  Allocation* NewRecordAt(std::uintptr_t address) {
    Block* block = RecordSlab::Instance().Take();
    block->data = reinterpret_cast<std::byte*>(address);
    records_.push_back(block->allocation());
    return records_.back();
  }
  std::vector<Allocation*> NewRecords(std::size_t count) {
    std::vector<Allocation*> records;
    for (std::size_t i = 0; i < count; ++i) records.push_back(NewRecord());
    return records;
  }
  void Insert(Allocation* record) { group_.Insert(record->data(), record); }
  // True if a record of the group has a slot. It is then the last pointer.
  bool HasSlot(Allocation* record) {
    Allocation* const last = NewRecord();
    Insert(last);
    group_.Lock();
    Allocation* const taken = group_.TakeAtOnce(record->data());
    group_.guard().unlock();
    EXPECT_EQ(group_.Take(last->data()), last);
    // The next insertion moves it back.
    if (taken != nullptr) Insert(record);
    return taken != nullptr;
  }
  static Front& FrontOf(const AllocationPtr& allocation) {
    return static_cast<Front&>(*allocation->owner());
  }

  const std::shared_ptr<PointerRegions> regions_ =
      std::make_shared<PointerRegions>();
  PointerGroup group_{2, regions_};

 private:
  std::deque<Allocation*> records_;
  std::uintptr_t next_ = 0x7f0000000000;
};

TEST_F(PointerGroupTest, GivesWhatWasInsertedOnce) {
  Allocation* const record = NewRecord();
  EXPECT_EQ(group_.Find(record->data()), nullptr);
  Insert(record);
  EXPECT_EQ(group_.Find(record->data()), record);
  EXPECT_EQ(group_.Take(record->data()), record);
  EXPECT_EQ(group_.Take(record->data()), nullptr);
  EXPECT_EQ(group_.Find(record->data()), nullptr);
}

// Also after a slot was used: an empty slot matches no address.
TEST_F(PointerGroupTest, NullIsUnknown) {
  EXPECT_EQ(group_.Find(nullptr), nullptr);
  EXPECT_EQ(group_.Take(nullptr), nullptr);
  for (Allocation* record : NewRecords(20000)) {
    Insert(record);
    group_.Take(record->data());
  }
  EXPECT_EQ(group_.Find(nullptr), nullptr);
  EXPECT_EQ(group_.Take(nullptr), nullptr);
}

// The group stores the last pointer separately. The next insertion moves it on.
TEST_F(PointerGroupTest, TheLastOneIsTakenOnce) {
  const std::vector<Allocation*> records = NewRecords(3);
  for (int round = 0; round < 3; ++round) {
    for (Allocation* record : records) {
      Insert(record);
      EXPECT_EQ(group_.Find(record->data()), record);
      EXPECT_EQ(group_.Take(record->data()), record);
      EXPECT_EQ(group_.Find(record->data()), nullptr);
      EXPECT_EQ(group_.Take(record->data()), nullptr);
      EXPECT_EQ(group_.Take(nullptr), nullptr);
    }
  }
  for (Allocation* record : records) Insert(record);
  EXPECT_EQ(group_.Take(records[2]->data()), records[2]);
  EXPECT_EQ(group_.Take(records[2]->data()), nullptr);
  Insert(records[2]);
  for (Allocation* record : records) {
    EXPECT_EQ(group_.Find(record->data()), record);
    EXPECT_EQ(group_.Take(record->data()), record);
  }
}

// The address with the next hash value: slots and tables cannot distinguish the
// two.
std::uintptr_t TwinOf(const Allocation& record) {
  const std::uint64_t factor =
      PointerTable::Hash(reinterpret_cast<const void*>(std::uintptr_t{1}));
  std::uint64_t inverse = factor;  // correct bits: 5 or more, then doubled
  for (int i = 0; i < 5; ++i) inverse *= 2 - factor * inverse;
  return reinterpret_cast<std::uintptr_t>(record.data()) + inverse;
}

TEST_F(PointerGroupTest, TellsAddressesOfOneSlotApart) {
  Allocation* const record = NewRecord();
  Allocation* const twin = NewRecordAt(TwinOf(*record));
  ASSERT_EQ(PointerTable::Hash(twin->data()),
            PointerTable::Hash(record->data()) + 1);
  Allocation* const next = NewRecord();
  Insert(record);
  Insert(next);  // now `record` is in its slot
  EXPECT_EQ(group_.Find(twin->data()), nullptr);
  EXPECT_EQ(group_.Take(twin->data()), nullptr);
  EXPECT_EQ(group_.Take(next->data()), next);
  Insert(twin);
  Insert(next);
  EXPECT_EQ(group_.Find(record->data()), record);
  EXPECT_EQ(group_.Find(twin->data()), twin);
  EXPECT_EQ(group_.Take(twin->data()), twin);
  EXPECT_EQ(group_.Take(record->data()), record);
  EXPECT_EQ(group_.Take(next->data()), next);
}

// Last pointers, slots, waiting pointers and growing tables, compared with the
// standard library.
TEST_F(PointerGroupTest, DoesWhatANaiveMapDoes) {
  std::mt19937_64 random(20261125);
  std::unordered_map<const void*, Allocation*> naive;
  std::vector<Allocation*> records = NewRecords(20000);
  for (std::size_t i = 0; i < 200000; ++i) {
    // Grows to some thousand pointers, and shrinks again.
    const bool grows = (i / 25000) % 2 == 0;
    Allocation* const any = records[random() % records.size()];
    if (random() % 8 < (grows ? 7U : 1U)) {
      if (naive.emplace(any->data(), any).second) Insert(any);
    } else {
      const bool was_there = naive.erase(any->data()) != 0;
      ASSERT_EQ(group_.Take(any->data()), was_there ? any : nullptr);
    }
    Allocation* const other = records[random() % records.size()];
    ASSERT_EQ(group_.Find(other->data()),
              naive.contains(other->data()) ? other : nullptr);
  }
  for (const auto& [data, record] : naive) {
    ASSERT_EQ(group_.Take(data), record);
  }
}

// Also if earlier pointers wait for the growth of a table.
TEST_F(PointerGroupTest, WhatComesAndGoesIsTheLastOne) {
  const std::vector<Allocation*> staying = NewRecords(2000);
  Allocation* const passing = NewRecord();
  for (Allocation* record : staying) {
    Insert(record);
    Insert(passing);
    ASSERT_EQ(group_.Take(passing->data()), passing);
    group_.Lock();
    EXPECT_TRUE(group_.InsertAtOnce(passing->data(), passing));
    group_.guard().unlock();
    ASSERT_EQ(group_.Take(passing->data()), passing);
  }
  for (Allocation* record : staying) {
    EXPECT_EQ(group_.Take(record->data()), record);
  }
}

// After a while, short-lived pointers have slots, with any number of long-lived
// ones.
TEST_F(PointerGroupTest, WhatStaysMakesWay) {
  const std::vector<Allocation*> staying = NewRecords(10000);
  const std::vector<Allocation*> passing = NewRecords(100);
  for (Allocation* record : staying) Insert(record);
  std::size_t with_slot = 0;
  for (int round = 0; round < 100; ++round) {
    for (Allocation* record : passing) Insert(record);
    with_slot = 0;
    for (Allocation* record : passing) {
      with_slot += HasSlot(record);
      EXPECT_EQ(group_.Take(record->data()), record);
    }
  }
  EXPECT_GT(with_slot, passing.size() / 2);
  for (Allocation* record : staying) {
    EXPECT_EQ(group_.Take(record->data()), record);
  }
}

// The last of the pointers with occupied slots waits.
TEST_F(PointerGroupTest, WhatWasTakenWhileItWaitedIsGone) {
  const std::vector<Allocation*> records = NewRecords(20000);
  std::vector<Allocation*> past_slots;
  for (Allocation* record : records) {
    Insert(record);
    if (HasSlot(record)) continue;
    EXPECT_EQ(group_.Take(record->data()), record);
    EXPECT_EQ(group_.Take(record->data()), nullptr);
    past_slots.push_back(record);
  }
  EXPECT_GT(past_slots.size(), 10000U);
  for (Allocation* record : past_slots) {
    EXPECT_EQ(group_.Find(record->data()), nullptr);
  }
  std::size_t left = 0;
  for (Allocation* record : records) {
    left += group_.Take(record->data()) != nullptr;
  }
  EXPECT_EQ(left, records.size() - past_slots.size());
}

TEST_F(PointerGroupTest, SteadyUseMakesNoHeapCall) {
  const std::vector<Allocation*> records = NewRecords(10000);
  for (Allocation* record : records) Insert(record);
  const HeapCallCounter heap;
  for (int round = 0; round < 3; ++round) {
    for (Allocation* record : records) {
      EXPECT_EQ(group_.Take(record->data()), record);
      Insert(record);
    }
  }
  EXPECT_EQ(heap.calls(), 0U);
  for (Allocation* record : records) group_.Take(record->data());
}

TEST_F(PointerGroupTest, WithoutMemoryForATableNothingIsDone) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  const std::vector<Allocation*> records = NewRecords(10000);
  std::vector<bool> is_there(records.size());
  {
    const HeapFailure failure;
    for (std::size_t i = 0; i < records.size(); ++i) {
      try {
        Insert(records[i]);
        is_there[i] = true;
      } catch (const std::bad_alloc&) {
        EXPECT_EQ(group_.Find(records[i]->data()), nullptr);
      }
    }
  }
  std::size_t failed = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(group_.Take(records[i]->data()),
              is_there[i] ? records[i] : nullptr);
    failed += !is_there[i];
  }
  EXPECT_GT(failed, 1000U);
}

TEST_F(PointerGroupTest, OwnsWhatItsNumberHas) {
  Allocation* const record = NewRecord();
  EXPECT_FALSE(group_.Owns(record->data()));
  regions_->Settle(record->data(), group_.number());
  EXPECT_TRUE(group_.Owns(record->data()));
  regions_->Settle(record->data(), 3);
  EXPECT_TRUE(group_.Owns(record->data()));
  // One of several groups, which are all asked.
  regions_->Settle(record->data(), 4);
  EXPECT_TRUE(group_.Owns(record->data()));
}

TEST_F(PointerGroupTest, OwnsNothingOfTwoOthers) {
  Allocation* const record = NewRecord();
  regions_->Settle(record->data(), 3);
  regions_->Settle(record->data(), 4);
  EXPECT_FALSE(group_.Owns(record->data()));
}

TEST_F(PointerGroupTest, ServesOneFrontAtATime) {
  const AllocationPtr one = facade().Alloc(kPlace, 1000);
  const AllocationPtr other = facade().Alloc(kPlace, 1000, NewStream());
  EXPECT_FALSE(group_.is_bound());
  EXPECT_TRUE(group_.Bind(FrontOf(one)));
  EXPECT_TRUE(group_.is_bound());
  EXPECT_FALSE(group_.Bind(FrontOf(other)));
  EXPECT_TRUE(group_.IsGuardedBy(FrontOf(one).lock()));
  EXPECT_EQ(group_.front(), &FrontOf(one));
  group_.Unbind();
  EXPECT_EQ(group_.front(), nullptr);
  EXPECT_TRUE(group_.Bind(FrontOf(other)));
  EXPECT_EQ(&group_.guard(), &FrontOf(other).lock());
  group_.Unbind();
}

TEST_F(PointerGroupTest, KnowsItsPointersWhoeverItServes) {
  const AllocationPtr allocation = facade().Alloc(kPlace, 1000);
  const std::vector<Allocation*> records = NewRecords(6000);
  for (std::size_t i = 0; i < 2000; ++i) Insert(records[i]);
  ASSERT_TRUE(group_.Bind(FrontOf(allocation)));
  for (std::size_t i = 2000; i < 4000; ++i) Insert(records[i]);
  group_.Unbind();
  for (std::size_t i = 4000; i < 6000; ++i) Insert(records[i]);
  for (Allocation* record : records) {
    EXPECT_EQ(group_.Take(record->data()), record);
  }
}

// A thread that waits for a guard also waits for the guard that replaces it.
TEST_F(PointerGroupTest, ThreadsUseItWhileItsGuardChanges) {
  const AllocationPtr one = facade().Alloc(kPlace, 1000);
  const AllocationPtr other = facade().Alloc(kPlace, 1000, NewStream());
  constexpr std::size_t kEach = 3000;
  std::vector<std::vector<Allocation*>> records;
  for (int i = 0; i < 3; ++i) records.push_back(NewRecords(kEach));
  std::atomic<bool> stop{false};
  std::thread binder([&] {
    for (bool first = true; !stop; first = !first) {
      EXPECT_TRUE(group_.Bind(FrontOf(first ? one : other)));
      std::this_thread::yield();
      group_.Unbind();
    }
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (const std::vector<Allocation*>& mine : records) {
    threads.emplace_back([&] {
      for (int round = 0; round < 30; ++round) {
        for (Allocation* record : mine) Insert(record);
        for (Allocation* record : mine) {
          wrong += group_.Find(record->data()) != record;
        }
        for (Allocation* record : mine) {
          wrong += group_.Take(record->data()) != record;
          wrong += group_.Take(record->data()) != nullptr;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  binder.join();
  EXPECT_EQ(wrong, 0);
}

// A thread inserts the pointer that it took after it took another one.
TEST_F(PointerGroupTest, ThreadsThatTakeTheSameGetItInTurn) {
  constexpr int kRounds = 200000;
  constexpr unsigned kThreads = 3;
  const std::vector<Allocation*> records = NewRecords(4);
  std::vector<std::atomic<int>> holders(records.size());
  for (Allocation* record : records) Insert(record);
  std::atomic<int> wrong{0};
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready != kThreads) std::this_thread::yield();
      std::minstd_rand random(i + 1);
      const auto give = [&](std::size_t held) {
        holders[held].fetch_sub(1);
        Insert(records[held]);
      };
      std::optional<std::size_t> held;
      for (int round = 0; round < kRounds; ++round) {
        const std::size_t any = random() % records.size();
        Allocation* const taken = group_.Take(records[any]->data());
        if (taken == nullptr) continue;
        wrong += taken != records[any];
        wrong += holders[any].fetch_add(1) != 0;
        if (held.has_value()) give(*held);
        held = any;
      }
      if (held.has_value()) give(*held);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (Allocation* record : records) {
    EXPECT_EQ(group_.Take(record->data()), record);
  }
}

using PointerGroupDeathTest = PointerGroupTest;

TEST_F(PointerGroupDeathTest, RefusesAnAddressThatWasHandedOutTwice) {
  Allocation* const record = NewRecord();
  Insert(record);
  EXPECT_DEATH(Insert(record), "handed out twice");
  // The insertion by a hit does no check. A later operation detects the error.
  const auto insert_at_once = [&] {
    group_.Lock();
    for (int i = 0; i < 3; ++i) {
      group_.InsertHeld(record->data(), record);
    }
  };
  EXPECT_DEATH(insert_at_once(), "handed out twice");
  group_.Take(record->data());
}

// A pointer without a slot waits, and then enters a table.
TEST_F(PointerGroupDeathTest, RefusesWhatHasNoSlotTwice) {
  std::vector<Allocation*> records;
  std::vector<Allocation*> past_slots;
  while (past_slots.size() < 10000) {
    records.push_back(NewRecord());
    Insert(records.back());
    if (!HasSlot(records.back())) past_slots.push_back(records.back());
  }
  EXPECT_DEATH(Insert(past_slots.back()), "handed out twice");
  const auto insert_at_once = [&](Allocation* inserted) {
    group_.Lock();
    group_.InsertHeld(inserted->data(), inserted);
    group_.guard().unlock();
  };
  // Detected when it enters the table; one in eight gets a slot instead.
  const auto insert_what_is_in_a_table = [&] {
    for (int i = 0; i < 3; ++i) {
      insert_at_once(past_slots[static_cast<std::size_t>(i)]);
    }
    for (Allocation* next : NewRecords(100)) Insert(next);
  };
  EXPECT_DEATH(insert_what_is_in_a_table(), "handed out twice");
  // Detected at the next insertion. It waits, because its slot is occupied.
  Allocation* const waiting = past_slots.back();
  Allocation* const next = NewRecord();
  ASSERT_EQ(group_.Take(waiting->data()), waiting);
  Insert(waiting);
  Insert(next);
  ASSERT_EQ(group_.Take(next->data()), next);
  const auto insert_what_waits = [&] {
    insert_at_once(waiting);
    insert_at_once(next);
  };
  EXPECT_DEATH(insert_what_waits(), "handed out twice");
  for (Allocation* record : records) {
    EXPECT_EQ(group_.Take(record->data()), record);
  }
}

}  // namespace
}  // namespace strata
