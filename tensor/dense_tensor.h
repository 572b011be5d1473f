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

// What a DenseTensor is, apart from its memory.
struct DenseTensorMeta {
  DataType dtype = DataType::kUndefined;
  Shape dims = {0};
  std::size_t offset_bytes = 0;  // of the first element in the holder
};

// A tensor that gets its memory when somebody is about to write it, and keeps
// it for as long as it is large enough.
//
// Model: copies share the holder; a copy that allocates anew leaves the others
//   theirs. Unlike a Tensor, its type and shape change, but never to more bytes
//   than can be addressed. One that was moved from has no type, dimensions or
//   memory.
// Threads: one thread at a time.
// Source: PaddlePaddle's phi::DenseTensor.
class DenseTensor {
 public:
  DenseTensor() = default;
  // Errors: std::invalid_argument for more bytes than can be addressed.
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
  // Of the elements; 0 for kUndefined.
  std::size_t size_bytes() const { return BytesOf(meta_.dims, meta_.dtype); }
  // Of the holder.
  std::size_t capacity_bytes() const {
    return holder_ != nullptr ? holder_->size() : 0;
  }

  // Changes the shape; the memory stays as it is until the next AllocateFrom.
  //
  // Errors: std::invalid_argument if the elements, as the tensor's type, have
  //   more bytes than can be addressed; then the tensor is as it was.
  void Resize(Shape dims) {
    BytesOf(dims, meta_.dtype);
    meta_.dims = std::move(dims);
  }
  // Where in the holder the first element is; 0 after ResetHolder.
  void SetOffset(std::size_t offset_bytes) {
    meta_.offset_bytes = offset_bytes;
  }
  // Takes any memory instead of its own; null takes it away.
  void ResetHolder(std::shared_ptr<Allocation> holder) {
    holder_ = std::move(holder);
    meta_.offset_bytes = 0;
  }
  // Takes the memory and the place in it of `other`, with its type and shape.
  void ShareDataWith(const DenseTensor& other) { *this = other; }
  bool IsSharedWith(const DenseTensor& other) const {
    return holder_ != nullptr && holder_ == other.holder_;
  }

  // Memory for the elements as `dtype`, which becomes the tensor's type: the
  // holder, if it has room behind the offset, else a new one from `allocator`.
  // `requested_bytes` other than 0 is what to make room for instead of the
  // elements' size. With `fake_alloc` it asks for nothing, whatever
  // `requested_bytes` says: the tensor gets its type and, if it has none, a
  // holder of 0 bytes. Returns data().
  //
  // Errors: std::invalid_argument, naming both sizes, if `requested_bytes` is
  //   less than the elements need; for kUndefined; if the elements, as `dtype`,
  //   have more bytes than can be addressed; also as Allocator::Allocate. Then
  //   the tensor is as it was.
  void* AllocateFrom(Allocator& allocator, DataType dtype,
                     std::size_t requested_bytes = 0, bool fake_alloc = false);

  // Whether it has memory.
  bool initialized() const {
    return holder_ != nullptr && holder_->data() != nullptr;
  }
  // Null without memory.
  void* data() const;
  // Errors: std::invalid_argument if T is not the type of the elements.
  template <ElementType T>
  T* data() const {
    constexpr DataType kAsked = kDataTypeOf<std::remove_const_t<T>>;
    if (kAsked != meta_.dtype) ThrowWrongType(kAsked);
    return static_cast<T*>(data());
  }
  const std::shared_ptr<Allocation>& holder() const { return holder_; }
  // Of the holder.
  //
  // Errors: std::logic_error without one.
  Place place() const;

 private:
  // Unlike the one by default it needs no heap call.
  static DenseTensorMeta Nothing() noexcept {
    return {DataType::kUndefined, Shape(), 0};
  }
  [[noreturn]] void ThrowWrongType(DataType asked) const;

  DenseTensorMeta meta_;
  std::shared_ptr<Allocation> holder_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_DENSE_TENSOR_H_
