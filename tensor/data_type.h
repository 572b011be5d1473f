#ifndef STRATA_TENSOR_DATA_TYPE_H_
#define STRATA_TENSOR_DATA_TYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strata/base/require_cxx20.h"

namespace strata {

// The bits of number types that C++20 lacks. No arithmetic.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

// Type of the elements of a tensor.
enum class DataType : std::uint8_t {
  kUndefined,  // unknown; has no size
#define STRATA_DATA_TYPE(Name, name, Type) k##Name,
#include "strata/tensor/data_types.def"
#undef STRATA_DATA_TYPE
};

// Bytes of one element; 0 for kUndefined.
std::size_t SizeOf(DataType dtype);

// "float32"; "undefined" for kUndefined.
const char* ToString(DataType dtype);

// Throws std::invalid_argument: the elements of a tensor have another type.
[[noreturn]] void ThrowWrongType(DataType held, DataType asked);

// The DataType of a C++ type; kUndefined if there is none.
template <class T>
inline constexpr DataType kDataTypeOf = DataType::kUndefined;
#define STRATA_DATA_TYPE(Name, name, Type) \
  template <>                              \
  inline constexpr DataType kDataTypeOf<Type> = DataType::k##Name;
#include "strata/tensor/data_types.def"
#undef STRATA_DATA_TYPE

// Either `long` or `long long` is std::int64_t. The other type maps to the same
// DataType if it has 64 bits.
// NOLINTBEGIN(google-runtime-int)
using OtherInt64 = std::conditional_t<std::is_same_v<std::int64_t, long long>,
                                      long, long long>;
// NOLINTEND(google-runtime-int)
inline constexpr bool kOtherHas64Bits = sizeof(OtherInt64) == 8;
template <>
inline constexpr DataType kDataTypeOf<OtherInt64> =
    kOtherHas64Bits ? DataType::kInt64 : DataType::kUndefined;
template <>
inline constexpr DataType kDataTypeOf<std::make_unsigned_t<OtherInt64>> =
    kOtherHas64Bits ? DataType::kUint64 : DataType::kUndefined;

// The types as which the elements of a tensor can be read: types that have a
// DataType, also const.
template <class T>
concept ElementType = (kDataTypeOf<std::remove_const_t<T>> !=
                       DataType::kUndefined);

}  // namespace strata

#endif  // STRATA_TENSOR_DATA_TYPE_H_
