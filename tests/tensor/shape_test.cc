#include "strata/tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace strata {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(ShapeTest, CountsItsElements) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape({7}).num_elements(), 7);
  EXPECT_EQ(Shape({2, 3, 4}).num_elements(), 24);
  EXPECT_EQ(Shape({2, 0, 4}).num_elements(), 0);
  EXPECT_EQ(Shape({kMost, 1, 1}).num_elements(), kMost);
}

TEST(ShapeTest, RefusesMoreElementsThanCanBeCounted) {
  EXPECT_THROW(Shape({kMost, 2}), std::invalid_argument);
  EXPECT_THROW(Shape({std::int64_t{1} << 32, std::int64_t{1} << 31}),
               std::invalid_argument);
  EXPECT_NO_THROW(Shape({std::int64_t{1} << 31, std::int64_t{1} << 31}));
}

TEST(ShapeTest, ADimensionOfZeroMeansNoElementsWhateverTheOthersAre) {
  EXPECT_EQ(Shape({kMost, kMost, 0}).num_elements(), 0);
  EXPECT_EQ(Shape({0, kMost, kMost}).num_elements(), 0);
}

TEST(ShapeTest, RefusesNegativeDimensionsNamingTheShape) {
  try {
    const Shape shape({2, -1});
    FAIL() << "a dimension is negative";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("[2,-1]"));
  }
  EXPECT_THROW(Shape({0, -1}), std::invalid_argument);
}

TEST(ShapeTest, CountsTheBytesOfItsElements) {
  EXPECT_EQ(BytesOf(Shape({2, 3}), DataType::kFloat64), 48U);
  EXPECT_EQ(BytesOf(Shape({2, 3}), DataType::kUndefined), 0U);
  EXPECT_EQ(BytesOf(Shape({kMost, 0}), DataType::kComplex128), 0U);
  EXPECT_EQ(BytesOf(Shape({kMost}), DataType::kInt16), std::size_t{kMost} * 2);
  EXPECT_EQ(CheckedBytesOf(Shape({kMost}), DataType::kFloat32), std::nullopt);
}

TEST(ShapeTest, RefusesMoreBytesThanCanBeAddressedNamingShapeAndType) {
  try {
    BytesOf(Shape({(std::int64_t{1} << 62) + 4}), DataType::kFloat32);
    FAIL() << "the bytes cannot be counted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("[4611686018427387908]"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("float32"));
  }
}

TEST(ShapeTest, IsAValue) {
  const Shape shape({2, 3});
  EXPECT_EQ(shape.rank(), 2U);
  EXPECT_EQ(shape.dim(1), 3);
  EXPECT_EQ(shape, Shape({2, 3}));
  EXPECT_NE(shape, Shape({3, 2}));
  EXPECT_EQ(ToString(shape), "[2,3]");
  EXPECT_EQ(ToString(Shape()), "[]");
}

TEST(ShapeTest, OneThatWasMovedFromIsThatOfANumber) {
  Shape shape({2, 3});
  Shape other = std::move(shape);
  EXPECT_EQ(other, Shape({2, 3}));
  EXPECT_EQ(shape, Shape());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(shape.num_elements(), 1);
  shape = std::move(other);
  EXPECT_EQ(shape.num_elements(), 6);
  EXPECT_EQ(other, Shape());  // NOLINT(bugprone-use-after-move)
  Shape& same = shape;
  shape = std::move(same);
  EXPECT_EQ(shape, Shape({2, 3}));
}

}  // namespace
}  // namespace strata
