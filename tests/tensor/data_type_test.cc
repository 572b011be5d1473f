#include "strata/tensor/data_type.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace strata {
namespace {

TEST(DataTypeTest, HasTheSizeOfItsElements) {
  EXPECT_EQ(SizeOf(DataType::kBool), 1U);
  EXPECT_EQ(SizeOf(DataType::kInt8), 1U);
  EXPECT_EQ(SizeOf(DataType::kUint8), 1U);
  EXPECT_EQ(SizeOf(DataType::kInt16), 2U);
  EXPECT_EQ(SizeOf(DataType::kUint16), 2U);
  EXPECT_EQ(SizeOf(DataType::kFloat16), 2U);
  EXPECT_EQ(SizeOf(DataType::kBfloat16), 2U);
  EXPECT_EQ(SizeOf(DataType::kInt32), 4U);
  EXPECT_EQ(SizeOf(DataType::kUint32), 4U);
  EXPECT_EQ(SizeOf(DataType::kFloat32), 4U);
  EXPECT_EQ(SizeOf(DataType::kInt64), 8U);
  EXPECT_EQ(SizeOf(DataType::kUint64), 8U);
  EXPECT_EQ(SizeOf(DataType::kFloat64), 8U);
  EXPECT_EQ(SizeOf(DataType::kComplex64), 8U);
  EXPECT_EQ(SizeOf(DataType::kComplex128), 16U);
  EXPECT_EQ(SizeOf(DataType::kUndefined), 0U);
}

TEST(DataTypeTest, BelongsToOneTypeOfTheHost) {
  EXPECT_EQ(kDataTypeOf<float>, DataType::kFloat32);
  EXPECT_EQ(kDataTypeOf<std::complex<double>>, DataType::kComplex128);
  EXPECT_EQ(kDataTypeOf<Bfloat16>, DataType::kBfloat16);
  EXPECT_EQ(kDataTypeOf<char*>, DataType::kUndefined);
  EXPECT_EQ(kDataTypeOf<void>, DataType::kUndefined);
}

TEST(DataTypeTest, BothNamesOf64BitsAreOne) {
  // NOLINTBEGIN(google-runtime-int)
  static_assert(sizeof(long long) == 8);
  EXPECT_EQ(kDataTypeOf<long long>, DataType::kInt64);
  EXPECT_EQ(kDataTypeOf<unsigned long long>, DataType::kUint64);
  // NOLINTEND(google-runtime-int)
  EXPECT_EQ(kDataTypeOf<std::int64_t>, DataType::kInt64);
}

TEST(DataTypeTest, ElementsMayBeConst) {
  static_assert(ElementType<const float> && ElementType<bool>);
  static_assert(!ElementType<std::string> && !ElementType<const char>);
}

TEST(DataTypeTest, HasAName) {
  EXPECT_STREQ(ToString(DataType::kFloat16), "float16");
  EXPECT_STREQ(ToString(DataType::kComplex64), "complex64");
  EXPECT_STREQ(ToString(DataType::kUndefined), "undefined");
}

}  // namespace
}  // namespace strata
