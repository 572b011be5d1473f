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

using Owners = PointerRegions::Owners;

void ExpectOwners(const PointerRegions& regions, const std::byte* data,
                  std::uint8_t last, std::uint8_t before) {
  const Owners owners = regions.OwnersOf(data);
  EXPECT_EQ(owners.last, last);
  EXPECT_EQ(owners.before, before);
}

TEST(PointerRegionsTest, KnowsWhoInsertedLastAndWhoBefore) {
  const auto regions = std::make_unique<PointerRegions>();
  const std::byte* const region = At(0x7f0000000000);
  ExpectOwners(*regions, region, PointerRegions::kNobody,
               PointerRegions::kNobody);
  regions->Settle(region + 256, 7);
  regions->Settle(region, 7);
  ExpectOwners(*regions, region, 7, PointerRegions::kNobody);
  regions->Settle(region, 9);
  ExpectOwners(*regions, region + Mebibytes(2) - 1, 9, 7);
  regions->Settle(region, 7);
  ExpectOwners(*regions, region, 7, 9);
  ExpectOwners(*regions, region + Mebibytes(2), PointerRegions::kNobody,
               PointerRegions::kNobody);
  ExpectOwners(*regions, region - 1, PointerRegions::kNobody,
               PointerRegions::kNobody);
}

TEST(PointerRegionsTest, WhoEverInsertedStaysAmongThem) {
  const auto regions = std::make_unique<PointerRegions>();
  const std::byte* const region = At(0x7f0000000000);
  for (const std::uint8_t number : std::vector<std::uint8_t>{3, 4, 5})
    regions->Settle(region, number);
  ExpectOwners(*regions, region, 5, PointerRegions::kMany);
  regions->Settle(region, 4);
  ExpectOwners(*regions, region, 4, PointerRegions::kMany);
}

TEST(PointerRegionsTest, TellsApartAsMuchAsADeviceHas) {
  const auto regions = std::make_unique<PointerRegions>();
  const std::byte* const base = At(0x7f0000000000);
  for (std::size_t i = 0; i < 96; ++i) {
    regions->Settle(base + Gibibytes(i), static_cast<std::uint8_t>(1 + i));
  }
  for (std::size_t i = 0; i < 96; ++i) {
    ExpectOwners(*regions, base + Gibibytes(i),
                 static_cast<std::uint8_t>(1 + i), PointerRegions::kNobody);
  }
}

TEST(PointerRegionsTest, OfManyThreadsNoneIsForgotten) {
  for (std::size_t round = 0; round < 200; ++round) {
    const auto regions = std::make_unique<PointerRegions>();
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> threads;
    for (const std::uint8_t number : std::vector<std::uint8_t>{1, 2}) {
      threads.emplace_back([&, number] {
        ++ready;
        while (ready != 2) std::this_thread::yield();
        regions->Settle(At(Mebibytes(10)), number);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Owners owners = regions->OwnersOf(At(Mebibytes(10)));
    EXPECT_EQ(owners.last + owners.before, 3);
  }
}

}  // namespace
}  // namespace strata
