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

}  // namespace strata
