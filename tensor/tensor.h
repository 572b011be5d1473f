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

// Elements of one type in a shape. Several tensors may share the memory.
//
// Model: a value. Copies and slices share one buffer, which is freed with the
//   last of them. The type and shape of a tensor never change. A tensor that
//   was moved from is a number without memory.
// Threads: as a std::shared_ptr: distinct tensors from any thread.
// Cost: one allocation and one heap call for a new tensor; a copy copies the
//   shape.
// Source: tf_bfc.md §2 (Tensor).
class Tensor {
 public:
  // A tensor without elements or buffer: float32 of shape [0].
  Tensor() : shape_({0}) {}

  // Allocates memory if the tensor has elements, or if the allocator returns
  // handles. Does not throw if the allocation fails: data() is null,
  // IsInitialized() is false, and `failure`, if not null, has the reason.
  //
  // If the chain has an allocation log, it gets a line for the tensor and one
  // for its end, unless `attributes` say that the caller logs it.
  //
  // Errors: std::invalid_argument for kUndefined.
  Tensor(Allocator& allocator, DataType dtype, Shape shape,
         const AllocationAttributes& attributes = {},
         Failure* failure = nullptr);

  // Like the constructor, but throws if the allocation fails, even of a handle
  // for no elements.
  //
  // Errors: as the constructor and Allocator::Allocate().
  static Tensor Make(Allocator& allocator, DataType dtype, Shape shape,
                     const AllocationAttributes& attributes = {});

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t num_elements() const { return shape_.num_elements(); }
  // Bytes of the elements; the buffer may be larger.
  //
  // Errors: std::invalid_argument if they exceed the address space; such a
  //   tensor has no memory.
  std::size_t size_bytes() const { return BytesOf(shape_, dtype_); }
  // Rounded bytes of the allocation of the buffer, also if other tensors share
  // it.
  std::size_t allocated_bytes() const;

  // True if the tensor has its memory. Always true without elements.
  bool IsInitialized() const {
    return num_elements() == 0 || data() != nullptr;
  }
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  // Errors: std::invalid_argument if T is not the type of the elements.
  template <ElementType T>
  T* data() const {
    constexpr DataType kAsked = kDataTypeOf<std::remove_const_t<T>>;
    if (kAsked != dtype_) ThrowWrongType(dtype_, kAsked);
    return static_cast<T*>(data());
  }
  // Allocation of the buffer, for RecordStream(); null if there is none.
  Allocation* allocation() const {
    return buffer_ ? buffer_->allocation() : nullptr;
  }

  // Elements `begin` to `end` of the first dimension; shares the buffer.
  //
  // Errors: std::invalid_argument if the range is invalid, or if the memory is
  //   a handle and the range is not the whole.
  Tensor Slice(std::int64_t begin, std::int64_t end) const;
  // Element `i` of the first dimension, as a tensor with one dimension less.
  Tensor SubSlice(std::int64_t i) const;
  // A tensor with these elements in another shape.
  //
  // Errors: std::invalid_argument if their number differs.
  Tensor Reshaped(Shape shape) const;

  bool SharesBufferWith(const Tensor& other) const;
  // True if no other object refers to the buffer, so that it may be
  // overwritten.
  bool IsSoleOwner() const {
    return buffer_ && buffer_->IsSoleReference() &&
           buffer_->root().IsSoleReference();
  }

 private:
  Tensor(DataType dtype, Shape shape, RefPtr<TensorBuffer> buffer);
  void CheckRange(std::int64_t begin, std::int64_t end) const;
  RefPtr<TensorBuffer> Part(std::int64_t begin, const Shape& shape) const;

  DataType dtype_ = DataType::kFloat32;
  Shape shape_;
  RefPtr<TensorBuffer> buffer_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_TENSOR_H_
