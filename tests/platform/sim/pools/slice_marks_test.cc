// SliceMarks compared with a set.

#include "strata/platform/sim/pools/slice_marks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>
#include <random>
#include <set>

namespace strata::sim {
namespace {

TEST(SliceMarksTest, TheLastMarkUpToASlice) {
  SliceMarks marks(20000);
  marks.Set(0);
  EXPECT_EQ(marks.LastUpTo(0), 0u);
  EXPECT_EQ(marks.LastUpTo(19999), 0u);
  marks.Set(4096);
  EXPECT_EQ(marks.LastUpTo(4095), 0u);
  EXPECT_EQ(marks.LastUpTo(4096), 4096u);
  EXPECT_EQ(marks.LastUpTo(19999), 4096u);
  marks.Clear(4096);
  EXPECT_EQ(marks.LastUpTo(19999), 0u);
}

class SliceMarksRandomTest : public testing::TestWithParam<std::size_t> {};

// Dense and sparse marks, in ranges with a full and with a partial last word.
TEST_P(SliceMarksRandomTest, FindsWhatASetFinds) {
  const std::size_t slices = GetParam();
  std::mt19937_64 random(slices);
  SliceMarks marks(slices);
  std::set<std::size_t> plain{0};
  marks.Set(0);
  for (int i = 0; i < 20000; ++i) {
    const std::size_t slice = random() % slices;
    const bool is_full = plain.size() > (i / 2000 % 2 == 0 ? 5 : slices / 3);
    if (!is_full) {
      marks.Set(slice);
      plain.insert(slice);
    } else if (const auto found = plain.lower_bound(slice);
               found != plain.end() && *found != 0) {
      marks.Clear(*found);
      plain.erase(found);
    }
    const std::size_t asked = random() % slices;
    ASSERT_EQ(marks.LastUpTo(asked), *std::prev(plain.upper_bound(asked)))
        << asked << " of " << slices;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SliceMarksRandomTest,
                         testing::Values(1, 63, 64, 65, 4095, 4096, 4097, 8192,
                                         50000));

}  // namespace
}  // namespace strata::sim
