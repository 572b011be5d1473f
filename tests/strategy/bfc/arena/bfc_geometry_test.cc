// tf_bfc.md R1, R3.

#include <gtest/gtest.h>

#include "strata/strategy/bfc/arena/geometry.h"

namespace strata {
namespace {

TEST(BfcGeometryTest, RoundsUpToGranules) {  // R1
  EXPECT_EQ(BfcRounded(1), 256U);
  EXPECT_EQ(BfcRounded(256), 256U);
  EXPECT_EQ(BfcRounded(257), 512U);
  EXPECT_EQ(BfcRounded(kBfcMaxBytes), kBfcMaxBytes);
  EXPECT_EQ(BfcRounded(kBfcMaxBytes + 1), std::nullopt);
  EXPECT_EQ(BfcRounded(SIZE_MAX), std::nullopt);
}

TEST(BfcGeometryTest, EveryBinHoldsItsSizesAndNoOther) {  // R3
  for (int bin = 0; bin < kBfcBins; ++bin) {
    const std::size_t least = BfcBinBytes(bin);
    EXPECT_EQ(BfcBinOf(least), bin);
    EXPECT_EQ(BfcBinOf(least + 255), bin);
    EXPECT_EQ(BfcBinOf(2 * least - 1), bin);
    if (bin < kBfcBins - 1) {
      EXPECT_EQ(BfcBinOf(2 * least), bin + 1);
    }
  }
}

TEST(BfcGeometryTest, TheLastBinHoldsAllFrom256MiB) {  // R3
  EXPECT_EQ(BfcBinOf(Mebibytes(256) - 1), 19);
  EXPECT_EQ(BfcBinOf(Mebibytes(256)), 20);
  EXPECT_EQ(BfcBinOf(Mebibytes(512)), 20);
  EXPECT_EQ(BfcBinOf(kBfcMaxBytes), 20);
  EXPECT_EQ(BfcBinOf(0), 0);
}

}  // namespace
}  // namespace strata
