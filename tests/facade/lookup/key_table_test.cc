#include "strata/facade/lookup/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

namespace strata {
namespace {

struct Value;

// A table never reads a value.
Value* FakeValue(std::uintptr_t number) {
  return reinterpret_cast<Value*>(number * 64);
}

std::uint64_t Key(Value* fake) {
  return reinterpret_cast<std::uintptr_t>(fake) / 64;
}

std::vector<Value*> TakeAll(KeyTable<Value>& table) {
  std::vector<Value*> values;
  table.RemoveIf([](std::uint64_t) { return true; },
                 [&](Value* value) { values.push_back(value); });
  return values;
}

TEST(KeyTableTest, FindsWhatWasInserted) {
  KeyTable<Value> table;
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    table.Insert(key, FakeValue(key));
  }
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    EXPECT_EQ(table.Find(key), FakeValue(key));
    EXPECT_EQ(table.FindLocked(key), FakeValue(key));
  }
}

TEST(KeyTableTest, HasNothingForAnUnknownKey) {
  KeyTable<Value> table;
  table.Insert(7, FakeValue(7));
  EXPECT_EQ(table.Find(8), nullptr);
  EXPECT_EQ(table.FindLocked(8), nullptr);
}

TEST(KeyTableTest, ReplacesTheEntryOfAKey) {
  KeyTable<Value> table;
  table.Insert(7, FakeValue(1));
  table.Insert(7, FakeValue(2));
  EXPECT_EQ(table.Find(7), FakeValue(2));
  EXPECT_THAT(TakeAll(table), testing::ElementsAre(FakeValue(2)));
}

TEST(KeyTableTest, RemovesOneKeyAndKeepsItsNeighbours) {
  KeyTable<Value> table;
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    table.Insert(key, FakeValue(key));
  }
  for (std::uint64_t key = 2; key <= 2000; key += 2) table.Remove(key);
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    EXPECT_EQ(table.Find(key), key % 2 == 0 ? nullptr : FakeValue(key));
  }
  EXPECT_EQ(TakeAll(table).size(), 1000U);
}

TEST(KeyTableTest, RemovingAnUnknownKeyDoesNothing) {
  KeyTable<Value> table;
  table.Insert(7, FakeValue(7));
  table.Remove(8);
  EXPECT_EQ(table.Find(7), FakeValue(7));
}

TEST(KeyTableTest, ARemovedKeyCanComeBackWithAnotherValue) {
  KeyTable<Value> table;
  table.Insert(7, FakeValue(1));
  table.Remove(7);
  table.Insert(9, FakeValue(9));  // reuses the node
  table.Insert(7, FakeValue(2));
  EXPECT_EQ(table.Find(7), FakeValue(2));
  EXPECT_EQ(table.Find(9), FakeValue(9));
}

TEST(KeyTableTest, RemovesTheKeysThatAreMeant) {
  KeyTable<Value> table;
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    table.Insert(key, FakeValue(key));
  }
  std::vector<Value*> removed;
  table.RemoveIf([](std::uint64_t key) { return key > 3; },
                 [&](Value* value) {
                   // Called without the lock, after the removal.
                   EXPECT_EQ(table.FindLocked(Key(value)), nullptr);
                   removed.push_back(value);
                 });
  EXPECT_EQ(std::set<Value*>(removed.begin(), removed.end()).size(), 1997U);
  EXPECT_EQ(removed.size(), 1997U);
  EXPECT_THAT(removed, testing::Each(testing::Ge(FakeValue(4))));
  EXPECT_EQ(table.Find(3), FakeValue(3));
  table.Insert(5, FakeValue(6));
  EXPECT_EQ(table.Find(5), FakeValue(6));
  EXPECT_EQ(table.Find(4), nullptr);
  EXPECT_THAT(TakeAll(table),
              testing::UnorderedElementsAre(FakeValue(1), FakeValue(2),
                                            FakeValue(3), FakeValue(6)));
  EXPECT_THAT(TakeAll(table), testing::IsEmpty());
}

TEST(KeyTableTest, TakesAddressesAsKeys) {
  KeyTable<Value> table;
  for (std::uint64_t i = 0; i < 500; ++i) {
    table.Insert(0x7f0000000000 + i * 4096, FakeValue(i + 1));
  }
  for (std::uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(table.Find(0x7f0000000000 + i * 4096), FakeValue(i + 1));
  }
}

TEST(KeyTableTest, ReadersNeverSeeAWrongValueWhileOthersChange) {
  constexpr std::uint64_t kStable = 64;
  KeyTable<Value> table;
  for (std::uint64_t key = 1; key <= kStable; ++key) {
    table.Insert(key, FakeValue(key));
  }
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> lost{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        for (std::uint64_t key = 1; key <= kStable; ++key) {
          Value* found = table.Find(key);
          if (found != nullptr && found != FakeValue(key)) ++wrong;
          if (table.FindLocked(key) != FakeValue(key)) ++lost;
        }
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    for (std::uint64_t key = 1000; key < 1100; ++key) {
      table.Insert(key + static_cast<std::uint64_t>(round), FakeValue(key));
    }
    for (std::uint64_t key = 1000; key < 1100; ++key) {
      table.Remove(key + static_cast<std::uint64_t>(round));
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(TakeAll(table).size(), kStable);
}

}  // namespace
}  // namespace strata
