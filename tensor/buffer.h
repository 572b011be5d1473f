#ifndef STRATA_TENSOR_BUFFER_H_
#define STRATA_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/tensor/ref_counted.h"
#include "strata/tensor/typed_allocation.h"

namespace strata {

// The memory of one or more tensors.
//
// Source: tf_bfc.md §2 (TensorBuffer, BufferBase, Buffer, SubBuffer).
class TensorBuffer : public RefCounted {
 public:
  // Null if the allocation failed or has 0 bytes.
  void* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // The buffer that owns the memory: this one, or the whole that this is a part
  // of.
  virtual TensorBuffer& root() = 0;
  // Allocation of the root; null if it failed.
  virtual Allocation* allocation() const = 0;

 protected:
  TensorBuffer() = default;
  ~TensorBuffer() override = default;

  void set_memory(void* data, std::size_t size_bytes) {
    data_ = data;
    size_bytes_ = size_bytes;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// A buffer that owns raw bytes.
class RawBuffer : public TensorBuffer {
 public:
  // `allocation` is null if it failed.
  RawBuffer(AllocationPtr allocation, std::size_t size_bytes);

  // Records the memory in the log of the chain now, and its free in the
  // destructor.
  void Record(const char* dtype, const char* shape);

  TensorBuffer& root() override { return *this; }
  Allocation* allocation() const override { return allocation_.get(); }

 protected:
  ~RawBuffer() override;

 private:
  AllocationPtr allocation_;
  std::uint64_t log_id_ = 0;  // 0: not in the log
};

// A buffer that owns objects: constructed with it, destroyed with its last
// reference.
template <class T>
class Buffer final : public TensorBuffer {
 public:
  // If there is no memory for `n` objects, data() is null and `failure` has the
  // reason.
  Buffer(Allocator& allocator, std::size_t n, Failure& failure,
         const AllocationAttributes& attributes = {})
      : array_(Allocate<T>(allocator, n, failure, attributes)) {
    set_memory(array_.data(), array_.size() * sizeof(T));
  }

  T* objects() const { return array_.data(); }
  std::size_t size() const { return array_.size(); }

  TensorBuffer& root() override { return *this; }
  Allocation* allocation() const override { return array_.allocation(); }

 private:
  ~Buffer() override = default;

  TypedAllocation<T> array_;
};

// A part of another buffer. Keeps the root alive.
class SubBuffer final : public TensorBuffer {
 public:
  // Errors: std::invalid_argument if the range is not inside `whole`, or if its
  //   memory is a handle, to which no offset can be added.
  SubBuffer(TensorBuffer& whole, std::size_t offset_bytes,
            std::size_t size_bytes);

  TensorBuffer& root() override { return *root_; }
  Allocation* allocation() const override { return root_->allocation(); }

 private:
  ~SubBuffer() override = default;

  RefPtr<TensorBuffer> root_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_BUFFER_H_
