#ifndef STRATA_TENSOR_SHAPE_H_
#define STRATA_TENSOR_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strata/tensor/data_type.h"

namespace strata {

// The sizes of the dimensions of a tensor, outermost first.
//
// Model: a value. A shape without dimensions is a single number with one
//   element; a shape that was moved from is such a shape. The constructor
//   refuses a product of dimensions that overflows, unless a dimension is 0.
class Shape {
 public:
  Shape() = default;
  // Errors: std::invalid_argument if a dimension is negative, or the number of
  //   elements exceeds a signed 64-bit integer.
  Shape(std::initializer_list<std::int64_t> dims)  // NOLINT: from a list
      : Shape(std::vector<std::int64_t>(dims)) {}
  explicit Shape(std::vector<std::int64_t> dims);
  Shape(const Shape&) = default;
  Shape& operator=(const Shape&) = default;
  Shape(Shape&& other) noexcept
      : dims_(std::exchange(other.dims_, {})),
        num_elements_(std::exchange(other.num_elements_, 1)) {}
  Shape& operator=(Shape&& other) noexcept {
    dims_ = std::exchange(other.dims_, {});
    num_elements_ = std::exchange(other.num_elements_, 1);
    return *this;
  }
  ~Shape() = default;

  std::size_t rank() const { return dims_.size(); }
  // `i` must be below rank().
  std::int64_t dim(std::size_t i) const { return dims_[i]; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::int64_t num_elements() const { return num_elements_; }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> dims_;
  std::int64_t num_elements_ = 1;
};

// "[2,3]"; "[]" without dimensions.
std::string ToString(const Shape& shape);

// Bytes of the elements; nothing if more than the address space. 0 for a type
// without size.
std::optional<std::size_t> CheckedBytesOf(const Shape& shape, DataType dtype);
// Bytes of the elements.
//
// Errors: std::invalid_argument, with shape and type, if more than the address
//   space.
std::size_t BytesOf(const Shape& shape, DataType dtype);

}  // namespace strata

#endif  // STRATA_TENSOR_SHAPE_H_
