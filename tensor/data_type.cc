#include "strata/tensor/data_type.h"

#include <stdexcept>
#include <string>

namespace strata {

std::size_t SizeOf(DataType dtype) {
  switch (dtype) {
#define STRATA_DATA_TYPE(Name, name, Type) \
  case DataType::k##Name:                  \
    return sizeof(Type);
#include "strata/tensor/data_types.def"
#undef STRATA_DATA_TYPE
    case DataType::kUndefined:
      break;
  }
  return 0;
}

const char* ToString(DataType dtype) {
  switch (dtype) {
#define STRATA_DATA_TYPE(Name, name, Type) \
  case DataType::k##Name:                  \
    return #name;
#include "strata/tensor/data_types.def"
#undef STRATA_DATA_TYPE
    case DataType::kUndefined:
      break;
  }
  return "undefined";
}

void ThrowWrongType(DataType held, DataType asked) {
  throw std::invalid_argument(std::string("the tensor holds ") +
                              ToString(held) + ", not " + ToString(asked));
}

}  // namespace strata
