#include "strata/allocation/annotation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>

namespace strata {
namespace {

TEST(AnnotationTest, IsEmptyWithoutAFrame) {
  EXPECT_EQ(CurrentAnnotation(), "");
  EXPECT_STREQ(AnnotationOp(), "");
  EXPECT_EQ(AnnotationStep(), -1);
}

// tf_bfc R57.
TEST(AnnotationTest, JoinsFramesOutermostFirst) {
  const ScopedAnnotation train("train", "step=3");
  const ScopedAnnotation layer("conv1");
  {
    const ScopedAnnotation op("MatMul");
    EXPECT_EQ(CurrentAnnotation(), "train{step=3} / conv1 / MatMul");
    EXPECT_STREQ(AnnotationOp(), "MatMul");
  }
  EXPECT_EQ(CurrentAnnotation(), "train{step=3} / conv1");
}

TEST(AnnotationTest, BelongsToItsThread) {
  const ScopedAnnotation here("here");
  SetAnnotationStep(7);
  std::string there = "unset";
  std::int64_t step = 0;
  std::thread([&] {
    there = CurrentAnnotation();
    step = AnnotationStep();
  }).join();
  EXPECT_EQ(there, "");
  EXPECT_EQ(step, -1);
  EXPECT_EQ(AnnotationStep(), 7);
  SetAnnotationStep(-1);
}

}  // namespace
}  // namespace strata
