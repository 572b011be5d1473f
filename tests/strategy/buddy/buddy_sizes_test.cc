// Chunk sizes of the buddy strategies. Rule numbers are those of paddle.md
// §3.4.

#include "strata/strategy/buddy/buddy_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kHostBytes = Gibibytes(64);

BuddySizes SizesOf(PlaceKind kind,
                   const StrategyOptions& options = StrategyOptions()) {
  return {options, kind, kHostBytes};
}

// Rule 1, §3.2-3.
TEST(BuddySizesTest, Rule1TheSmallestBlockDependsOnTheKindOfMemory) {
  EXPECT_EQ(SizesOf(PlaceKind::kDevice).min_block_bytes(), 256U);
  EXPECT_EQ(SizesOf(PlaceKind::kManaged).min_block_bytes(), 256U);
  EXPECT_EQ(SizesOf(PlaceKind::kHost).min_block_bytes(), Kibibytes(4));
  EXPECT_EQ(SizesOf(PlaceKind::kPinned).min_block_bytes(), Kibibytes(64));
}

// Rule 4.
TEST(BuddySizesTest, Rule4AvailableIsFreeLessFivePercent) {
  const BuddySizes sizes = SizesOf(PlaceKind::kDevice);
  EXPECT_EQ(sizes.Available(1000), 950U);
  EXPECT_EQ(sizes.Available(270), 257U);
  // Below the smallest block, 0 is available.
  EXPECT_EQ(sizes.Available(260), 0U);
  EXPECT_EQ(sizes.Available(0), 0U);
}

TEST(BuddySizesTest, Rule4ADeviceGivesAFractionOfWhatIsAvailable) {
  const BuddySizes sizes = SizesOf(PlaceKind::kDevice);
  EXPECT_TRUE(sizes.NeedsAvailable(true));
  EXPECT_EQ(sizes.RefillBytes(true, 100'000), 91'904U);  // 359 * 256 <= 92'000
  EXPECT_EQ(sizes.RefillBytes(false, 50'000), 45'824U);
  EXPECT_EQ(sizes.RefillBytes(true, 0), 0U);
  EXPECT_EQ(sizes.cap_bytes(), 0U);
}

TEST(BuddySizesTest, Rule4TheFlagsInMebibytesFixFirstAndFurtherChunks) {
  StrategyOptions options;
  options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = 300;
  BuddySizes sizes = SizesOf(PlaceKind::kDevice, options);
  EXPECT_FALSE(sizes.NeedsAvailable(true));
  EXPECT_TRUE(sizes.NeedsAvailable(false));
  EXPECT_EQ(sizes.RefillBytes(true, 1000), Mebibytes(300));
  EXPECT_EQ(sizes.RefillBytes(false, 1'000'000), 919'808U);
  options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = 40;
  sizes = SizesOf(PlaceKind::kDevice, options);
  EXPECT_EQ(sizes.RefillBytes(false, 1'000'000), Mebibytes(40));
}

TEST(BuddySizesTest, Rule4TheHostGivesA32ndAtMostTheInitialMemory) {
  EXPECT_EQ(SizesOf(PlaceKind::kHost).RefillBytes(true, 0), Mebibytes(500));
  StrategyOptions options;
  options.Edit<BuddyOptions>().fraction_of_cpu_memory_to_use = 0.125;
  const BuddySizes sizes = SizesOf(PlaceKind::kHost, options);
  EXPECT_EQ(sizes.RefillBytes(true, 0), Mebibytes(256));
  EXPECT_EQ(sizes.RefillBytes(false, 0), Mebibytes(256));
  EXPECT_FALSE(sizes.NeedsAvailable(true));
  options.Edit<BuddyOptions>().initial_cpu_memory_in_mb = 0;
  EXPECT_EQ(SizesOf(PlaceKind::kHost, options).RefillBytes(true, 0),
            Kibibytes(4));
}

TEST(BuddySizesTest, Rule4PinnedMemoryHasACapAndChunksOfA256th) {
  const BuddySizes sizes = SizesOf(PlaceKind::kPinned);
  EXPECT_EQ(sizes.cap_bytes(), Gibibytes(32));
  EXPECT_EQ(sizes.RefillBytes(true, 0), Mebibytes(128));
  const BuddySizes tiny(StrategyOptions(), PlaceKind::kPinned, Mebibytes(1));
  EXPECT_EQ(tiny.RefillBytes(true, 0), Kibibytes(64));
}

// Fault B16: after a refused chunk, no smaller one was tried.
TEST(BuddySizesTest, B16GrowthBacksOffToWhatTheRequestNeeds) {
  const BuddySizes sizes = SizesOf(PlaceKind::kDevice);
  EXPECT_THAT(sizes.GrowthSizes(1024, Mebibytes(500), Mebibytes(41) + 5),
              ElementsAre(Mebibytes(500), Mebibytes(40), Mebibytes(2), 1024U));
  EXPECT_THAT(sizes.GrowthSizes(Mebibytes(6), Mebibytes(500), Mebibytes(5)),
              ElementsAre(Mebibytes(500), Mebibytes(6), 0U, 0U));
  EXPECT_THAT(sizes.GrowthSizes(Mebibytes(6), Mebibytes(6), Mebibytes(80)),
              ElementsAre(Mebibytes(6), 0U, 0U, 0U));
}

std::string ErrorOf(const StrategyOptions& options) {
  try {
    CheckBuddyOptions(options.Get<BuddyOptions>());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(BuddySizesTest, RefusesValuesThatMakeNoSenseByName) {
  EXPECT_EQ(ErrorOf(StrategyOptions()), "");
  for (const double wrong :
       {0.0, -0.5, 1.01, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    StrategyOptions options;
    options.Edit<BuddyOptions>().fraction_of_gpu_memory_to_use = wrong;
    EXPECT_EQ(ErrorOf(options),
              "fraction_of_gpu_memory_to_use: must be above 0 and at most 1");
    EXPECT_THROW(SizesOf(PlaceKind::kHost, options), std::invalid_argument);
    options = StrategyOptions();
    options.Edit<BuddyOptions>().fraction_of_cpu_memory_to_use = wrong;
    EXPECT_THAT(ErrorOf(options), HasSubstr("fraction_of_cpu_memory_to_use"));
    options = StrategyOptions();
    options.Edit<BuddyOptions>().fraction_of_cuda_pinned_memory_to_use = wrong;
    EXPECT_THAT(ErrorOf(options),
                HasSubstr("fraction_of_cuda_pinned_memory_to_use"));
  }
  // 256 TiB: every request would fail with it.
  const std::uint64_t huge = std::uint64_t{1} << 28;
  StrategyOptions options;
  options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = huge;
  EXPECT_THAT(ErrorOf(options), HasSubstr("initial_gpu_memory_in_mb"));
  options = StrategyOptions();
  options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = huge;
  EXPECT_THAT(ErrorOf(options), HasSubstr("reallocate_gpu_memory_in_mb"));
  options = StrategyOptions();
  options.Edit<BuddyOptions>().initial_cpu_memory_in_mb = huge;
  EXPECT_THAT(ErrorOf(options), HasSubstr("initial_cpu_memory_in_mb"));
}

TEST(BuddySizesTest, TheHostSaysWhatMemoryItHas) {
  EXPECT_GT(HostMemoryBytes(), Mebibytes(64));
}

}  // namespace
}  // namespace strata
