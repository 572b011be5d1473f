#include "strata/facade/lookup/front_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "strata/platform/stream.h"

namespace strata {
namespace {

// A table never reads a front.
Front* Fake(std::uintptr_t number) {
  return reinterpret_cast<Front*>(number * 64);
}

std::uint64_t KeyOf(Place place, std::uint64_t uid) {
  return FrontTable::KeyOf(place, uid);
}

std::vector<Front*> TakeAll(FrontTable& table, Place place) {
  std::vector<Front*> fronts;
  table.RemoveAll(place, [&](Front* front) { fronts.push_back(front); });
  return fronts;
}

TEST(FrontTableTest, TellsPlacesAndStreamsApart) {
  FrontTable table;
  std::uintptr_t number = 0;
  const auto for_each = [](auto visit) {
    for (const Place place :
         {HostPlace(), HostPlace(1), DevicePlace(0), DevicePlace(1),
          DevicePlace(65535), ManagedPlace(0), ManagedPlace(1)}) {
      for (const std::uint64_t uid :
           {kLegacyStreamUid, std::uint64_t{2}, std::uint64_t{256},
            (std::uint64_t{1} << 40) - 1}) {
        visit(place, uid);
      }
    }
  };
  for_each([&](Place place, std::uint64_t uid) {
    EXPECT_EQ(table.FindLocked(KeyOf(place, uid)), nullptr);
    table.Insert(KeyOf(place, uid), Fake(++number));
  });
  number = 0;
  for_each([&](Place place, std::uint64_t uid) {
    EXPECT_EQ(table.FindLocked(KeyOf(place, uid)), Fake(++number));
  });
  EXPECT_EQ(table.FindLocked(KeyOf(DevicePlace(2), 2)), nullptr);
  EXPECT_EQ(table.FindLocked(KeyOf(Place{static_cast<PlaceKind>(0x81), 0}, 2)),
            nullptr);
}

// With any number of streams, a lookup takes no lock.
TEST(FrontTableTest, FindsEveryStreamOfManyWithoutALock) {
  FrontTable table;
  for (std::uint64_t uid = 1; uid <= 2000; ++uid) {
    table.Insert(KeyOf(DevicePlace(0), uid), Fake(uid));
  }
  for (std::uint64_t uid = 1; uid <= 2000; ++uid) {
    EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), uid)), Fake(uid));
  }
}

// So that an old answer, or one of another table, is never taken for a current
// one.
TEST(FrontTableTest, HasANewVersionAfterEveryChange) {
  FrontTable table;
  std::set<std::uint64_t> seen{0, FrontTable().version()};
  const auto is_new = [&] { return seen.insert(table.version()).second; };
  EXPECT_TRUE(is_new());
  EXPECT_FALSE(is_new());
  table.Insert(KeyOf(DevicePlace(0), 7), Fake(1));
  EXPECT_TRUE(is_new());
  table.Insert(KeyOf(DevicePlace(0), 7), Fake(2));  // replaces the other one
  EXPECT_TRUE(is_new());
  table.Find(KeyOf(DevicePlace(0), 7));
  EXPECT_FALSE(is_new());
  table.Remove(KeyOf(DevicePlace(0), 7));
  EXPECT_TRUE(is_new());
  table.Insert(KeyOf(DevicePlace(0), 7), Fake(3));
  EXPECT_TRUE(is_new());
  table.RemoveAll(DevicePlace(0), [&](Front*) {
    EXPECT_TRUE(is_new()) << "no route leads to a front that is let go";
  });
  EXPECT_FALSE(is_new());
  EXPECT_TRUE(seen.insert(FrontTable().version()).second);
}

TEST(FrontTableTest, ForgetsAStreamOrAPlace) {
  FrontTable table;
  table.Insert(KeyOf(DevicePlace(0), kLegacyStreamUid), Fake(1));
  table.Insert(KeyOf(DevicePlace(0), 7), Fake(2));
  table.Insert(KeyOf(DevicePlace(1), 7), Fake(3));
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), 7)), Fake(2));
  table.Remove(KeyOf(DevicePlace(0), 7));
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), 7)), nullptr);
  table.Insert(KeyOf(DevicePlace(0), 8), Fake(4));
  std::vector<Front*> removed;
  table.RemoveAll(DevicePlace(0),
                  [&](Front* front) { removed.push_back(front); });
  EXPECT_THAT(removed, testing::UnorderedElementsAre(Fake(1), Fake(4)));
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), kLegacyStreamUid)), nullptr);
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(1), 7)), Fake(3));
}

TEST(FrontTableTest, FindsWhatWasInserted) {
  FrontTable table;
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    table.Insert(key, Fake(key));
  }
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    EXPECT_EQ(table.Find(key), Fake(key));
    EXPECT_EQ(table.FindLocked(key), Fake(key));
  }
}

TEST(FrontTableTest, HasNothingForAnUnknownKey) {
  FrontTable table;
  table.Insert(7, Fake(7));
  EXPECT_EQ(table.Find(8), nullptr);
  EXPECT_EQ(table.FindLocked(8), nullptr);
}

TEST(FrontTableTest, ReplacesTheEntryOfAKey) {
  FrontTable table;
  table.Insert(KeyOf(DevicePlace(0), 7), Fake(1));
  table.Insert(KeyOf(DevicePlace(0), 7), Fake(2));
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), 7)), Fake(2));
  EXPECT_THAT(TakeAll(table, DevicePlace(0)), testing::ElementsAre(Fake(2)));
}

TEST(FrontTableTest, RemovesOneKeyAndKeepsItsNeighbours) {
  FrontTable table;
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    table.Insert(KeyOf(DevicePlace(0), key), Fake(key));
  }
  for (std::uint64_t key = 2; key <= 2000; key += 2) {
    table.Remove(KeyOf(DevicePlace(0), key));
  }
  for (std::uint64_t key = 1; key <= 2000; ++key) {
    EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), key)),
              key % 2 == 0 ? nullptr : Fake(key));
  }
  EXPECT_EQ(TakeAll(table, DevicePlace(0)).size(), 1000U);
}

TEST(FrontTableTest, RemovingAnUnknownKeyDoesNothing) {
  FrontTable table;
  table.Insert(7, Fake(7));
  table.Remove(8);
  EXPECT_EQ(table.Find(7), Fake(7));
}

TEST(FrontTableTest, ARemovedKeyCanComeBackWithAnotherFront) {
  FrontTable table;
  table.Insert(7, Fake(1));
  table.Remove(7);
  table.Insert(9, Fake(9));  // reuses the node
  table.Insert(7, Fake(2));
  EXPECT_EQ(table.Find(7), Fake(2));
  EXPECT_EQ(table.Find(9), Fake(9));
}

// With enough fronts that many share a chain of the table.
TEST(FrontTableTest, RemovesTheFrontsOfOnePlace) {
  FrontTable table;
  for (std::uint64_t uid = 1; uid <= 2000; ++uid) {
    table.Insert(KeyOf(DevicePlace(static_cast<int>(uid % 2)), uid), Fake(uid));
  }
  std::vector<Front*> removed;
  table.RemoveAll(DevicePlace(1), [&](Front* front) {
    // Called without the lock, after the removal.
    const std::uint64_t uid = reinterpret_cast<std::uintptr_t>(front) / 64;
    EXPECT_EQ(table.FindLocked(KeyOf(DevicePlace(1), uid)), nullptr);
    removed.push_back(front);
  });
  EXPECT_EQ(std::set<Front*>(removed.begin(), removed.end()).size(), 1000U);
  EXPECT_EQ(removed.size(), 1000U);
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(0), 4)), Fake(4));
  table.Insert(KeyOf(DevicePlace(1), 5), Fake(6));
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(1), 5)), Fake(6));
  EXPECT_EQ(table.Find(KeyOf(DevicePlace(1), 3)), nullptr);
  EXPECT_THAT(TakeAll(table, DevicePlace(1)), testing::ElementsAre(Fake(6)));
  EXPECT_THAT(TakeAll(table, DevicePlace(1)), testing::IsEmpty());
}

TEST(FrontTableTest, TakesAddressesAsKeys) {
  FrontTable table;
  for (std::uint64_t i = 0; i < 500; ++i) {
    table.Insert(0x7f0000000000 + i * 4096, Fake(i + 1));
  }
  for (std::uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(table.Find(0x7f0000000000 + i * 4096), Fake(i + 1));
  }
}

// The keys of `count` streams that share eight chains of the table.
std::vector<std::uint64_t> CrowdedKeys(std::size_t count) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t uid = 1; keys.size() < count; ++uid) {
    const std::uint64_t key = KeyOf(DevicePlace(0), uid);
    if ((key * 0x9e3779b97f4a7c15U) >> 56 == 0) keys.push_back(key);
  }
  return keys;
}

TEST(FrontTableTest, ReadersNeverSeeAWrongFrontWhileOthersChange) {
  constexpr std::size_t kStable = 64;
  const std::vector<std::uint64_t> keys = CrowdedKeys(kStable + 200);
  FrontTable table;
  for (std::size_t i = 0; i < kStable; ++i) table.Insert(keys[i], Fake(i + 1));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> lost{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        for (std::size_t i = 0; i < kStable; ++i) {
          Front* found = table.Find(keys[i]);
          if (found != nullptr && found != Fake(i + 1)) ++wrong;
          if (table.FindLocked(keys[i]) != Fake(i + 1)) ++lost;
        }
      }
    });
  }
  for (std::size_t round = 0; round < 100; ++round) {
    for (std::size_t i = round; i < round + 100; ++i) {
      table.Insert(keys[kStable + i], Fake(1000));
    }
    for (std::size_t i = round; i < round + 100; ++i) {
      table.Remove(keys[kStable + i]);
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(TakeAll(table, DevicePlace(0)).size(), kStable);
}

}  // namespace
}  // namespace strata
