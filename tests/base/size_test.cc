#include "strata/base/size.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace strata {
namespace {

constexpr std::size_t kMaxSize = std::numeric_limits<std::size_t>::max();

TEST(SizeTest, UnitsArePowersOf1024) {
  EXPECT_EQ(Kibibytes(3), 3072U);
  EXPECT_EQ(Mebibytes(1), 1048576U);
  EXPECT_EQ(Gibibytes(2), 2147483648U);
}

TEST(SizeTest, OnlySingleBitsArePowersOfTwo) {
  EXPECT_TRUE(IsPowerOfTwo(1));
  EXPECT_TRUE(IsPowerOfTwo(std::size_t{1} << 63));
  EXPECT_FALSE(IsPowerOfTwo(0));
  EXPECT_FALSE(IsPowerOfTwo(3));
  EXPECT_FALSE(IsPowerOfTwo(kMaxSize));
}

TEST(SizeTest, AlignUpRoundsToTheNextMultiple) {
  EXPECT_EQ(AlignUp(0, 256), 0U);
  EXPECT_EQ(AlignUp(1, 256), 256U);
  EXPECT_EQ(AlignUp(256, 256), 256U);
  EXPECT_EQ(AlignUp(257, 256), 512U);
  EXPECT_EQ(AlignUp(7, 1), 7U);
}

TEST(SizeTest, CheckedArithmeticFindsOverflow) {
  EXPECT_EQ(CheckedAdd(kMaxSize - 1, 1), kMaxSize);
  EXPECT_EQ(CheckedAdd(kMaxSize, 1), std::nullopt);
  EXPECT_EQ(CheckedAlignUp(kMaxSize - 255, 256), kMaxSize - 255);
  EXPECT_EQ(CheckedAlignUp(kMaxSize - 254, 256), std::nullopt);
  EXPECT_EQ(CheckedAlignUp(kMaxSize, 1), kMaxSize);
}

TEST(SizeTest, HumanBytesKeepsOneDecimal) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1.0 KiB");
  EXPECT_EQ(HumanBytes(Mebibytes(3)), "3.0 MiB");
  EXPECT_EQ(HumanBytes(Gibibytes(80)), "80.0 GiB");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16.0 EiB");
}

TEST(SizeTest, ReadsEveryUnitInAnyCase) {
  EXPECT_EQ(ParseBytes("4096"), 4096U);
  EXPECT_EQ(ParseBytes("7B"), 7U);
  EXPECT_EQ(ParseBytes("80GiB"), Gibibytes(80));
  EXPECT_EQ(ParseBytes("80 gb"), Gibibytes(80));
  EXPECT_EQ(ParseBytes("1.5 MiB"), Kibibytes(1536));
  EXPECT_EQ(ParseBytes("20M"), Mebibytes(20));
  EXPECT_EQ(ParseBytes("1t"), std::uint64_t{1} << 40);
  EXPECT_EQ(ParseBytes("0"), 0U);
  EXPECT_EQ(ParseBytes("15EiB"), std::uint64_t{15} << 60);
}

TEST(SizeTest, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", " ", "GiB", "-1", "-1GiB", "+1", "1.2.3", "1 GiBs", "1 Q", "1 Mi",
        "0x10", "16EiB", "18446744073709551616", "1e3", ".", "1 GiB "}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << "'" << text << "'";
  }
}

}  // namespace
}  // namespace strata
