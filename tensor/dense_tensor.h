#ifndef STRATA_TENSOR_DENSE_TENSOR_H_
#define STRATA_TENSOR_DENSE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/tensor/data_type.h"
#include "strata/tensor/shape.h"

namespace strata {

// Properties of a DenseTensor without its memory.
struct DenseTensorMeta {
  DataType dtype = DataType::kUndefined;
  Shape dims = {0};
  std::size_t offset_bytes = 0;  // of the first element in the holder
};

// A tensor that acquires memory before it is written, and keeps the memory
// while it is large enough.
//
// Model: copies share the holder. A copy that allocates anew does not change
//   the others. Unlike in a Tensor, the type and shape can change, but never to
//   more bytes than the address space. A tensor that was moved from has no
//   type, dimensions or memory.
// Threads: one thread at a time.
// Source: PaddlePaddle's phi::DenseTensor.
class DenseTensor {
 public:
  DenseTensor() = default;
  // Errors: std::invalid_argument for more bytes than the address space.
  explicit DenseTensor(DenseTensorMeta meta) : meta_(std::move(meta)) {
    BytesOf(meta_.dims, meta_.dtype);
  }
  DenseTensor(const DenseTensor&) = default;
  DenseTensor& operator=(const DenseTensor&) = default;
  DenseTensor(DenseTensor&& other) noexcept
      : meta_(std::exchange(other.meta_, Nothing())),
        holder_(std::move(other.holder_)) {}
  DenseTensor& operator=(DenseTensor&& other) noexcept {
    meta_ = std::exchange(other.meta_, Nothing());
    holder_ = std::exchange(other.holder_, nullptr);
    return *this;
  }
  ~DenseTensor() = default;

  const DenseTensorMeta& meta() const { return meta_; }
  DataType dtype() const { return meta_.dtype; }
  const Shape& dims() const { return meta_.dims; }
  std::int64_t numel() const { return meta_.dims.num_elements(); }
  // Bytes of the elements; 0 for kUndefined.
  std::size_t size_bytes() const { return BytesOf(meta_.dims, meta_.dtype); }
  // Bytes of the holder.
  std::size_t capacity_bytes() const {
    return holder_ != nullptr ? holder_->size() : 0;
  }

  // Changes the shape. The memory is unchanged until the next AllocateFrom().
  //
  // Errors: std::invalid_argument if the elements would need more bytes than
  //   the address space. Then the tensor is unchanged.
  void Resize(Shape dims) {
    BytesOf(dims, meta_.dtype);
    meta_.dims = std::move(dims);
  }
  // Sets the offset of the first element in the holder; ResetHolder() sets it
  // to 0.
  void SetOffset(std::size_t offset_bytes) {
    meta_.offset_bytes = offset_bytes;
  }
  // Replaces the memory; null removes it.
  void ResetHolder(std::shared_ptr<Allocation> holder) {
    holder_ = std::move(holder);
    meta_.offset_bytes = 0;
  }
  // Shares the memory of `other`, with its offset, type and shape.
  void ShareDataWith(const DenseTensor& other) { *this = other; }
  bool IsSharedWith(const DenseTensor& other) const {
    return holder_ != nullptr && holder_ == other.holder_;
  }

  // Provides memory for the elements as `dtype`, which becomes the type of the
  // tensor. Keeps the holder if there is room after the offset; else allocates
  // a new one from `allocator`. `requested_bytes`, if not 0, is the room needed
  // instead of the size of the elements. With `fake_alloc`, allocates nothing
  // and ignores `requested_bytes`: sets the type and, if there is no holder, a
  // holder of 0 bytes. Returns data().
  //
  // Errors: std::invalid_argument, with both sizes, if `requested_bytes` is
  //   less than the elements need; for kUndefined; if the elements would need
  //   more bytes than the address space; and as Allocator::Allocate(). Then the
  //   tensor is unchanged.
  void* AllocateFrom(Allocator& allocator, DataType dtype,
                     std::size_t requested_bytes = 0, bool fake_alloc = false);

  // True if the tensor has memory.
  bool initialized() const {
    return holder_ != nullptr && holder_->data() != nullptr;
  }
  // Null if the tensor has no memory.
  void* data() const;
  // Errors: std::invalid_argument if T is not the type of the elements.
  template <ElementType T>
  T* data() const {
    constexpr DataType kAsked = kDataTypeOf<std::remove_const_t<T>>;
    if (kAsked != meta_.dtype) ThrowWrongType(meta_.dtype, kAsked);
    return static_cast<T*>(data());
  }
  const std::shared_ptr<Allocation>& holder() const { return holder_; }
  // Place of the holder.
  //
  // Errors: std::logic_error if there is no holder.
  Place place() const;

 private:
  // Needs no heap call, unlike the default constructor.
  static DenseTensorMeta Nothing() noexcept {
    return {DataType::kUndefined, Shape(), 0};
  }

  DenseTensorMeta meta_;
  std::shared_ptr<Allocation> holder_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_DENSE_TENSOR_H_
