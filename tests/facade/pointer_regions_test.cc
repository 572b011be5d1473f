#include "strata/facade/pointer_regions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "strata/allocation/size.h"

namespace strata {
namespace {

const std::byte* At(std::size_t bytes) {
  return reinterpret_cast<const std::byte*>(bytes);  // NOLINT
}

TEST(PointerRegionsTest, TheFirstHasARegionForGood) {
  const auto regions = std::make_unique<PointerRegions>();
  const std::byte* const region = At(0x7f0000000000);
  EXPECT_EQ(regions->OwnerOf(region), PointerRegions::kNobody);
  EXPECT_EQ(regions->Settle(region + 256, 7), 7);
  EXPECT_EQ(regions->Settle(region, 9), 7);
  EXPECT_EQ(regions->OwnerOf(region + Mebibytes(2) - 1), 7);
  EXPECT_EQ(regions->OwnerOf(region + Mebibytes(2)), PointerRegions::kNobody);
  EXPECT_EQ(regions->OwnerOf(region - 1), PointerRegions::kNobody);
}

TEST(PointerRegionsTest, TellsApartAsMuchAsADeviceHas) {
  const auto regions = std::make_unique<PointerRegions>();
  const std::byte* const base = At(0x7f0000000000);
  for (std::size_t i = 0; i < 96; ++i) {
    const std::byte* const region = base + Gibibytes(i);
    ASSERT_EQ(regions->OwnerOf(region), PointerRegions::kNobody);
    regions->Settle(region, static_cast<std::uint8_t>(1 + i));
  }
  for (std::size_t i = 0; i < 96; ++i) {
    EXPECT_EQ(regions->OwnerOf(base + Gibibytes(i)), 1 + i);
  }
}

TEST(PointerRegionsTest, OfManyThreadsOneHasIt) {
  for (std::size_t round = 0; round < 200; ++round) {
    const auto regions = std::make_unique<PointerRegions>();
    std::atomic<unsigned> ready{0};
    std::vector<std::uint8_t> owners(3);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready != owners.size()) std::this_thread::yield();
        owners[i] = regions->Settle(At(Mebibytes(10)),
                                    static_cast<std::uint8_t>(1 + i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::uint8_t owner : owners) {
      EXPECT_EQ(owner, regions->OwnerOf(At(Mebibytes(10))));
    }
  }
}

}  // namespace
}  // namespace strata
