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

// The sizes of a tensor's dimensions, outermost first.
//
// Model: a value. Without dimensions it is that of a single number and has one
//   element; so is one that was moved from. A shape that exists has a number of
//   elements: products that overflow are refused when it is made, unless a
//   dimension is 0.
class Shape {
 public:
  Shape() = default;
  // Errors: std::invalid_argument if a dimension is negative, or the number of
  //   elements does not fit into 64 bits with sign.
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
  // `i` is below rank().
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

// Bytes of the elements; nothing if more than can be addressed. None of a type
// without size.
std::optional<std::size_t> CheckedBytesOf(const Shape& shape, DataType dtype);
// Errors: std::invalid_argument, naming both, if more than can be addressed.
std::size_t BytesOf(const Shape& shape, DataType dtype);

}  // namespace strata

#endif  // STRATA_TENSOR_SHAPE_H_
