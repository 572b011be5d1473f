#include "strata/facade/lookup/front_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "strata/platform/stream.h"

namespace strata {
namespace {

// A table never reads a front.
Front* Fake(std::uintptr_t number) {
  return reinterpret_cast<Front*>(number * 64);
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
    EXPECT_EQ(table.FindLocked(place, uid), nullptr);
    table.Insert(place, uid, Fake(++number));
  });
  number = 0;
  for_each([&](Place place, std::uint64_t uid) {
    EXPECT_EQ(table.FindLocked(place, uid), Fake(++number));
  });
  EXPECT_EQ(table.FindLocked(DevicePlace(2), 2), nullptr);
  EXPECT_EQ(table.FindLocked(Place{static_cast<PlaceKind>(0x81), 0}, 2),
            nullptr);
}

// With any number of streams, a lookup takes no lock.
TEST(FrontTableTest, FindsEveryStreamOfManyWithoutALock) {
  FrontTable table;
  for (std::uint64_t uid = 1; uid <= 2000; ++uid) {
    table.Insert(DevicePlace(0), uid, Fake(uid));
  }
  for (std::uint64_t uid = 1; uid <= 2000; ++uid) {
    EXPECT_EQ(table.Find(DevicePlace(0), uid), Fake(uid));
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
  table.Insert(DevicePlace(0), 7, Fake(1));
  EXPECT_TRUE(is_new());
  table.Insert(DevicePlace(0), 7, Fake(2));  // replaces the other one
  EXPECT_TRUE(is_new());
  table.Find(DevicePlace(0), 7);
  EXPECT_FALSE(is_new());
  table.Remove(DevicePlace(0), 7);
  EXPECT_TRUE(is_new());
  table.Insert(DevicePlace(0), 7, Fake(3));
  EXPECT_TRUE(is_new());
  table.RemoveAll(DevicePlace(0), [&](Front*) {
    EXPECT_TRUE(is_new()) << "no route leads to a front that is let go";
  });
  EXPECT_FALSE(is_new());
  EXPECT_TRUE(seen.insert(FrontTable().version()).second);
}

TEST(FrontTableTest, ForgetsAStreamOrAPlace) {
  FrontTable table;
  table.Insert(DevicePlace(0), kLegacyStreamUid, Fake(1));
  table.Insert(DevicePlace(0), 7, Fake(2));
  table.Insert(DevicePlace(1), 7, Fake(3));
  EXPECT_EQ(table.Find(DevicePlace(0), 7), Fake(2));
  table.Remove(DevicePlace(0), 7);
  EXPECT_EQ(table.Find(DevicePlace(0), 7), nullptr);
  table.Insert(DevicePlace(0), 8, Fake(4));
  std::vector<Front*> removed;
  table.RemoveAll(DevicePlace(0),
                  [&](Front* front) { removed.push_back(front); });
  EXPECT_THAT(removed, testing::UnorderedElementsAre(Fake(1), Fake(4)));
  EXPECT_EQ(table.Find(DevicePlace(0), kLegacyStreamUid), nullptr);
  EXPECT_EQ(table.Find(DevicePlace(1), 7), Fake(3));
}

}  // namespace
}  // namespace strata
