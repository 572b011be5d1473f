#ifndef STRATA_TENSOR_DATA_TYPE_H_
#define STRATA_TENSOR_DATA_TYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strata/platform/require_cxx20.h"

namespace strata {

// The bits of a number that C++20 has no type for. No arithmetic.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

// What the elements of a tensor are.
enum class DataType : std::uint8_t {
  kUndefined,  // not known yet; has no size
#define STRATA_DATA_TYPE(Name, name, Type) k##Name,
#include "strata/tensor/data_types.def"
#undef STRATA_DATA_TYPE
};

// Bytes of one element; 0 for kUndefined.
std::size_t SizeOf(DataType dtype);

// "float32"; "undefined" for kUndefined.
const char* ToString(DataType dtype);

// The DataType of a C++ type; kUndefined if it has none.
template <class T>
inline constexpr DataType kDataTypeOf = DataType::kUndefined;
#define STRATA_DATA_TYPE(Name, name, Type) \
  template <>                              \
  inline constexpr DataType kDataTypeOf<Type> = DataType::k##Name;
#include "strata/tensor/data_types.def"
#undef STRATA_DATA_TYPE

// Of `long` and `long long` one is std::int64_t. The other is no different to a
// tensor, if it has as many bits.
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

// What the elements of a tensor may be looked at as: types that have a
// DataType, also const ones.
template <class T>
concept ElementType = (kDataTypeOf<std::remove_const_t<T>> !=
                       DataType::kUndefined);

}  // namespace strata

#endif  // STRATA_TENSOR_DATA_TYPE_H_
