#include "strata/tensor/dense_tensor.h"

#include <stdexcept>
#include <string>

namespace strata {

void* DenseTensor::AllocateFrom(Allocator& allocator, DataType dtype,
                                std::size_t requested_bytes, bool fake_alloc) {
  if (dtype == DataType::kUndefined) {
    throw std::invalid_argument("AllocateFrom: the type is undefined");
  }
  const std::size_t needed = BytesOf(meta_.dims, dtype);
  std::size_t bytes = 0;
  if (!fake_alloc) {
    if (requested_bytes != 0 && requested_bytes < needed) {
      throw std::invalid_argument("AllocateFrom: requested_bytes is " +
                                  std::to_string(requested_bytes) +
                                  ", but the elements need " +
                                  std::to_string(needed));
    }
    bytes = requested_bytes != 0 ? requested_bytes : needed;
  }
  const bool has_room = holder_ != nullptr &&
                        holder_->size() >= meta_.offset_bytes &&
                        holder_->size() - meta_.offset_bytes >= bytes;
  if (fake_alloc ? holder_ == nullptr : !has_room) {
    holder_ = allocator.Allocate(bytes);
    meta_.offset_bytes = 0;
  }
  meta_.dtype = dtype;
  return data();
}

void* DenseTensor::data() const {
  if (!initialized()) return nullptr;
  return static_cast<std::byte*>(holder_->data()) + meta_.offset_bytes;
}

Place DenseTensor::place() const {
  if (holder_ == nullptr) {
    throw std::logic_error("a tensor without memory is at no place");
  }
  return holder_->place();
}

}  // namespace strata
