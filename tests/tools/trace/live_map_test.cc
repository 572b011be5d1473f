#include "strata/tools/trace/live_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace strata::tools {
namespace {

TEST(LiveMapTest, FindsWhatWasInsertedOnce) {
  LiveMap map;
  EXPECT_TRUE(map.Insert(0x7f00, 3));
  EXPECT_EQ(map.Remove(0x7f00), 3U);
  EXPECT_EQ(map.Remove(0x7f00), std::nullopt);
}

TEST(LiveMapTest, RefusesAnAddressThatIsLive) {
  LiveMap map;
  ASSERT_TRUE(map.Insert(8, 1));
  EXPECT_FALSE(map.Insert(8, 2));
  EXPECT_EQ(map.size(), 1U);
  EXPECT_EQ(map.Remove(8), 1U);
}

TEST(LiveMapTest, AgreesWithAMapUnderRandomOperations) {
  std::mt19937_64 random(7);
  LiveMap map;
  std::map<std::uint64_t, std::uint32_t> model;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    // Few addresses, so that probe sequences are long and gaps often close.
    const std::uint64_t address = (random() % 3000 + 1) << (random() % 4 * 8);
    if (random() % 2 == 0) {
      ASSERT_EQ(map.Insert(address, i), model.emplace(address, i).second);
    } else {
      const auto found = model.find(address);
      const auto slot = map.Remove(address);
      ASSERT_EQ(slot.has_value(), found != model.end());
      if (!slot) continue;
      ASSERT_EQ(*slot, found->second);
      model.erase(found);
    }
    ASSERT_EQ(map.size(), model.size());
  }
  for (const auto& [address, slot] : model) {
    ASSERT_EQ(map.Remove(address), slot);
  }
}

}  // namespace
}  // namespace strata::tools
