#include "strata/tensor/shape.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace strata {
namespace {

std::string Joined(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (const std::int64_t dim : dims) {
    if (text.size() > 1) text += ',';
    text += std::to_string(dim);
  }
  return text + "]";
}

std::int64_t Product(const std::vector<std::int64_t>& dims) {
  if (std::any_of(dims.begin(), dims.end(),
                  [](std::int64_t dim) { return dim < 0; })) {
    throw std::invalid_argument("shape " + Joined(dims) +
                                ": a dimension is negative");
  }
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) {
    if (product > std::numeric_limits<std::int64_t>::max() / dim) {
      throw std::invalid_argument("shape " + Joined(dims) +
                                  ": more than 2^63 - 1 elements");
    }
    product *= dim;
  }
  return product;
}

}  // namespace

Shape::Shape(std::vector<std::int64_t> dims)
    : dims_(std::move(dims)), num_elements_(Product(dims_)) {}

std::string ToString(const Shape& shape) { return Joined(shape.dims()); }

std::optional<std::size_t> CheckedBytesOf(const Shape& shape, DataType dtype) {
  const auto n = static_cast<std::size_t>(shape.num_elements());
  const std::size_t element_bytes = SizeOf(dtype);
  if (element_bytes != 0 &&
      n > std::numeric_limits<std::size_t>::max() / element_bytes) {
    return std::nullopt;
  }
  return n * element_bytes;
}

std::size_t BytesOf(const Shape& shape, DataType dtype) {
  const std::optional<std::size_t> bytes = CheckedBytesOf(shape, dtype);
  if (!bytes) {
    throw std::invalid_argument("a tensor of shape " + ToString(shape) +
                                " and " + ToString(dtype) +
                                " has more bytes than can be addressed");
  }
  return *bytes;
}

}  // namespace strata
