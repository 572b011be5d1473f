#ifndef STRATA_TENSOR_TENSOR_H_
#define STRATA_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "strata/allocation/allocator.h"
#include "strata/allocation/attributes.h"
#include "strata/tensor/buffer.h"
#include "strata/tensor/data_type.h"
#include "strata/tensor/shape.h"

namespace strata {

// Elements of one type in a shape, in memory that several tensors may share.
//
// Model: a value whose copies and slices share one buffer, which is freed with
//   the last of them. The type and shape of a tensor never change, but one
//   that was moved from is a number without memory.
// Threads: as a std::shared_ptr: distinct tensors from any thread.
// Cost: one allocation and one heap call for a new tensor; a copy copies the
//   shape.
// Source: tf_bfc.md §2 (Tensor).
class Tensor {
 public:
  // No elements, no buffer: float32 of shape [0].
  Tensor() : shape_({0}) {}

  // Allocates here if the tensor has elements, or if the allocator returns
  // handles. Memory that cannot be had is no exception: data() is null,
  // IsInitialized() false, and `failure`, if given, says why.
  //
  // A chain with an allocation log gets a line for the tensor and one for its
  // end, unless `attributes` say that it is logged elsewhere.
  //
  // Errors: std::invalid_argument for kUndefined.
  Tensor(Allocator& allocator, DataType dtype, Shape shape,
         const AllocationAttributes& attributes = {},
         Failure* failure = nullptr);

  // The same, where memory that cannot be had is an exception, also that of a
  // handle for no elements.
  //
  // Errors: also those of Allocator::Allocate.
  static Tensor Make(Allocator& allocator, DataType dtype, Shape shape,
                     const AllocationAttributes& attributes = {});

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t num_elements() const { return shape_.num_elements(); }
  // Of the elements; the whole buffer may be larger.
  //
  // Errors: std::invalid_argument if they are more than can be addressed; such
  //   a tensor has no memory.
  std::size_t size_bytes() const { return BytesOf(shape_, dtype_); }
  // Of the buffer's allocation, as rounded, whoever else shares it.
  std::size_t allocated_bytes() const;

  // Whether it has the memory that it needs: none, for no elements.
  bool IsInitialized() const {
    return num_elements() == 0 || data() != nullptr;
  }
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  // Errors: std::invalid_argument if T is not the type of the elements.
  template <ElementType T>
  T* data() const {
    constexpr DataType kAsked = kDataTypeOf<std::remove_const_t<T>>;
    if (kAsked != dtype_) ThrowWrongType(kAsked);
    return static_cast<T*>(data());
  }
  // The one behind the buffer, for RecordStream; null without one.
  Allocation* allocation() const {
    return buffer_ ? buffer_->allocation() : nullptr;
  }

  // Elements `begin` to `end` of the first dimension, sharing the buffer.
  //
  // Errors: std::invalid_argument if there are no such elements, or if the
  //   memory is a handle and they are not all of them.
  Tensor Slice(std::int64_t begin, std::int64_t end) const;
  // Element `i` of the first dimension, as a tensor with one dimension less.
  Tensor SubSlice(std::int64_t i) const;
  // The same elements in another shape.
  //
  // Errors: std::invalid_argument if their number differs.
  Tensor Reshaped(Shape shape) const;

  bool SharesBufferWith(const Tensor& other) const;
  // Whether nobody else refers to the buffer, so that it may be overwritten.
  bool IsSoleOwner() const {
    return buffer_ && buffer_->IsSoleReference() &&
           buffer_->root().IsSoleReference();
  }

 private:
  Tensor(DataType dtype, Shape shape, RefPtr<TensorBuffer> buffer);
  [[noreturn]] void ThrowWrongType(DataType asked) const;
  void CheckRange(std::int64_t begin, std::int64_t end) const;
  RefPtr<TensorBuffer> Part(std::int64_t begin, const Shape& shape) const;

  DataType dtype_ = DataType::kFloat32;
  Shape shape_;
  RefPtr<TensorBuffer> buffer_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_TENSOR_H_
