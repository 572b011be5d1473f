#ifndef STRATA_TENSOR_DATA_TYPE_H_
#define STRATA_TENSOR_DATA_TYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>

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

}  // namespace strata

#endif  // STRATA_TENSOR_DATA_TYPE_H_
