#include "strata/allocation/diagnostics/annotation.h"

#include <gtest/gtest.h>

#include <array>
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

TEST(AnnotationTest, TheCopyIsTheSameText) {
  std::array<char, 64> text{};
  EXPECT_EQ(CopyCurrentAnnotation(text.data(), text.size()), 0U);
  EXPECT_STREQ(text.data(), "");
  const ScopedAnnotation train("train", "step=3");
  const ScopedAnnotation op("MatMul");
  EXPECT_EQ(CopyCurrentAnnotation(text.data(), text.size()), 22U);
  EXPECT_EQ(text.data(), CurrentAnnotation());
}

TEST(AnnotationTest, ACopyThatDoesNotFitKeepsTheInnerFrames) {
  std::array<char, 11> text{};
  const ScopedAnnotation train("train", "step=3");
  const ScopedAnnotation op("MatMul");
  EXPECT_EQ(CopyCurrentAnnotation(text.data(), text.size()), 10U);
  EXPECT_STREQ(text.data(), "} / MatMul");
  EXPECT_EQ(CopyCurrentAnnotation(text.data(), 1), 0U);
  EXPECT_STREQ(text.data(), "");
}

}  // namespace
}  // namespace strata
