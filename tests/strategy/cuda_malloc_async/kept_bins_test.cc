#include "strata/strategy/cuda_malloc_async/kept_bins.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "strata/base/size.h"

namespace strata {
namespace {

TEST(KeptBinsTest, CountsEachLargeBin) {
  KeptBins bins;
  EXPECT_TRUE(bins.empty());
  bins.Add(Mebibytes(2));
  bins.Add(Mebibytes(2));
  bins.Add(std::size_t{1} << 63);
  EXPECT_TRUE(bins.any(Mebibytes(2)));
  EXPECT_FALSE(bins.any(Mebibytes(4)));
  EXPECT_TRUE(bins.any(std::size_t{1} << 63));
  bins.Remove(Mebibytes(2));
  EXPECT_TRUE(bins.any(Mebibytes(2)));
  bins.Remove(Mebibytes(2));
  EXPECT_FALSE(bins.any(Mebibytes(2)));
  EXPECT_FALSE(bins.empty());
}

}  // namespace
}  // namespace strata
