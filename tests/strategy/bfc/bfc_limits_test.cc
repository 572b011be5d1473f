#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <ostream>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"
#include "strata/strategy/bfc/limits.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

BfcFlags WithFraction(const std::string& text) {
  BfcFlags options;
  options.bfc_memory_fraction = text;
  return options;
}

// 80 GiB, of which 79 are free.
BfcDeviceMemory Device80(int compute_major = 0) {
  return {Gibibytes(80), Gibibytes(79), compute_major, false};
}

struct SystemMemoryRow {
  std::size_t free_bytes;
  int compute_major;
  std::size_t expected;
};
std::ostream& operator<<(std::ostream& out, const SystemMemoryRow& row) {
  return out << row.free_bytes << " free, compute " << row.compute_major;
}

class BfcSystemMemoryTest : public ::testing::TestWithParam<SystemMemoryRow> {};

// tf_bfc R59: the table, and the older rule for devices outside it.
TEST_P(BfcSystemMemoryTest, R59IsAsTheTableSays) {
  EXPECT_EQ(MinSystemMemory(GetParam().free_bytes, GetParam().compute_major),
            GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, BfcSystemMemoryTest,
    ::testing::Values(SystemMemoryRow{Gibibytes(2) - 1, 9, Mebibytes(225)},
                      SystemMemoryRow{Gibibytes(2) - 1, 0, Mebibytes(225)},
                      SystemMemoryRow{Gibibytes(2), 3, Mebibytes(500)},
                      SystemMemoryRow{Gibibytes(16), 6, Mebibytes(500)},
                      SystemMemoryRow{Gibibytes(16), 7, Mebibytes(1050)},
                      SystemMemoryRow{Gibibytes(40), 8, Mebibytes(1536)},
                      SystemMemoryRow{Gibibytes(80), 9, Mebibytes(1800)},
                      SystemMemoryRow{Gibibytes(180), 10, Mebibytes(1800)},
                      SystemMemoryRow{Gibibytes(4), 0, Mebibytes(300)},
                      SystemMemoryRow{Gibibytes(80), 0, Gibibytes(4)}));

TEST(BfcLimitsTest, R59FractionOfZeroLeavesTheSystemItsPart) {
  const BfcMemoryLimit limit = ResolveBfcLimit(WithFraction("0"), Device80(9));
  EXPECT_EQ(limit.most_bytes, Gibibytes(79) - Mebibytes(1800));
  EXPECT_EQ(limit.start_bytes, limit.most_bytes);
}

// Less is free than the system's part.
TEST(BfcLimitsTest, R59TakesAllIfTheSystemsPartIsNotFree) {
  EXPECT_EQ(ResolveBfcLimit(WithFraction("0"),
                            {Gibibytes(80), Mebibytes(225), 9, false})
                .most_bytes,
            Mebibytes(225));
}

TEST(BfcLimitsTest, R59FractionIsOfTheTotalNotOfWhatIsFree) {
  EXPECT_EQ(ResolveBfcLimit(WithFraction("0.75"), Device80()).most_bytes,
            Gibibytes(60));
}

TEST(BfcLimitsTest, WithoutOptionsThePoolMayHaveAll) {
  const BfcMemoryLimit limit = ResolveBfcLimit(BfcFlags(), Device80());
  EXPECT_EQ(limit.start_bytes, Gibibytes(80));
  EXPECT_EQ(limit.most_bytes, Gibibytes(80));
}

TEST(BfcLimitsTest, R59SystemMemoryOverridesTheRuleOfZero) {
  BfcFlags options = WithFraction("0");
  options.bfc_system_memory_in_mb = 1024;
  EXPECT_EQ(ResolveBfcLimit(options, Device80(9)).most_bytes, Gibibytes(78));
  options.bfc_system_memory_in_mb = 79 * 1024;  // all free memory
  EXPECT_EQ(ResolveBfcLimit(options, Device80(9)).most_bytes, 0U);
}

TEST(BfcLimitsTest, R59SystemMemoryThatIsNotFreeIsIgnored) {
  BfcFlags options = WithFraction("0");
  options.bfc_system_memory_in_mb = 79 * 1024 + 1;
  EXPECT_EQ(ResolveBfcLimit(options, Device80(9)).most_bytes,
            Gibibytes(79) - Mebibytes(1800));
}

// tf_bfc R60.
TEST(BfcLimitsTest, R60OnlyManagedMemoryExceedsTheDevice) {
  BfcDeviceMemory memory = Device80(9);
  EXPECT_EQ(ResolveBfcLimit(WithFraction("1.5"), memory).most_bytes,
            Gibibytes(80));
  memory.is_managed = true;
  EXPECT_EQ(ResolveBfcLimit(WithFraction("1.5"), memory).most_bytes,
            Gibibytes(120));
  EXPECT_EQ(ResolveBfcLimit(WithFraction("0.5-2"), memory).start_bytes,
            Gibibytes(40));
}

TEST(BfcLimitsTest, R60FractionAboveOneNeedsManagedMemory) {
  Caps caps;
  caps.compute_major = 9;
  EXPECT_THAT([&] { CheckBfcLimits(WithFraction("1.01"), caps); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("bfc_memory_fraction"), HasSubstr("'1.01'"),
                        HasSubstr("no managed memory"))));
  EXPECT_NO_THROW(CheckBfcLimits(WithFraction("1"), caps));
  caps.managed_memory = true;
  EXPECT_NO_THROW(CheckBfcLimits(WithFraction("1.01"), caps));
  caps.compute_major = 0;  // simulated
  EXPECT_NO_THROW(CheckBfcLimits(WithFraction("1.01"), caps));
}

TEST(BfcLimitsTest, R60FractionAboveOneNeedsComputeCapability6) {
  Caps caps;
  caps.managed_memory = true;
  caps.compute_major = 5;
  EXPECT_THAT([&] { CheckBfcLimits(WithFraction("1.5"), caps); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("bfc_memory_fraction"),
                        HasSubstr("compute capability 5"))));
  caps.compute_major = 6;
  EXPECT_NO_THROW(CheckBfcLimits(WithFraction("1.5"), caps));
}

// tf_bfc R61: the grammar.
TEST(BfcLimitsTest, R61ReadsTheThreeForms) {
  const BfcFraction fixed = BfcFraction::Parse("0.75");
  EXPECT_EQ(fixed.start, 0.75);
  EXPECT_EQ(fixed.most, 0.75);
  const BfcFraction growing = BfcFraction::Parse("0.75+");
  EXPECT_EQ(growing.start, 0.75);
  EXPECT_EQ(growing.most, 1.0);
  const BfcFraction capped = BfcFraction::Parse(".75-0.85");
  EXPECT_EQ(capped.start, 0.75);
  EXPECT_EQ(capped.most, 0.85);
  EXPECT_EQ(BfcFraction::Parse("0").most, 0.0);
  EXPECT_EQ(BfcFraction::Parse("100").most, 100.0);
}

TEST(BfcLimitsTest, R61NamesATextThatIsNoFraction) {
  for (const std::string text :
       {"", "most", "0.75x", "-0.5", "+", "0.75-", "-", "0.75--0.85", "0+",
        "0-0.5", "0.9-0.8", "1.5+", "101", "nan", "inf", "1e1", "0.5 "}) {
    EXPECT_THAT(
        [&] { BfcFraction::Parse(text); },
        ThrowsMessage<std::invalid_argument>(AllOf(
            HasSubstr("bfc_memory_fraction"), HasSubstr("'" + text + "'"))));
  }
}

TEST(BfcLimitsTest, R61APoolStartsAtOneFractionAndGrowsToTheOther) {
  const BfcMemoryLimit limit =
      ResolveBfcLimit(WithFraction("0.5-0.75"), Device80());
  EXPECT_EQ(limit.start_bytes, Gibibytes(40));
  EXPECT_EQ(limit.most_bytes, Gibibytes(60));
}

TEST(BfcLimitsTest, NamesTwoOptionsThatEachSetTheLimit) {
  BfcFlags options = WithFraction("0.75");
  options.bfc_system_memory_in_mb = 100;
  EXPECT_THAT([&] { CheckBfcLimits(options); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("bfc_memory_fraction"),
                        HasSubstr("bfc_system_memory_in_mb"))));
  options.bfc_memory_fraction = "0";  // the rule that the other one overrides
  EXPECT_NO_THROW(CheckBfcLimits(options));
}

TEST(BfcLimitsTest, NamesSystemMemoryThatCannotBeAddressed) {
  BfcFlags options;
  options.bfc_system_memory_in_mb = std::uint64_t{1} << 44;
  EXPECT_THAT([&] { CheckBfcLimits(options); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("bfc_system_memory_in_mb")));
}

}  // namespace
}  // namespace strata
