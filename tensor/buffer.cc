#include "strata/tensor/buffer.h"

#include <stdexcept>
#include <string>

#include "strata/allocation/diagnostics/allocation_log.h"

namespace strata {

RawBuffer::RawBuffer(AllocationPtr allocation, std::size_t size_bytes)
    : allocation_(std::move(allocation)) {
  if (allocation_ != nullptr) set_memory(allocation_->data(), size_bytes);
}

RawBuffer::~RawBuffer() {
  if (log_id_ == 0) return;
  const Allocator& owner = *allocation_->owner();
  owner.allocation_log()->RecordTensorDeallocation(log_id_, *allocation_,
                                                   owner);
}

void RawBuffer::Record(const char* dtype, const char* shape) {
  if (allocation_ == nullptr) return;
  const Allocator& owner = *allocation_->owner();
  AllocationLog* log = owner.allocation_log();
  if (log == nullptr) return;
  log_id_ = log->RecordTensorAllocation(*allocation_, owner, dtype, shape);
}

SubBuffer::SubBuffer(TensorBuffer& whole, std::size_t offset_bytes,
                     std::size_t size_bytes)
    : root_(RefPtr<TensorBuffer>::Share(&whole.root())) {
  if (offset_bytes > whole.size_bytes() ||
      size_bytes > whole.size_bytes() - offset_bytes) {
    throw std::invalid_argument("a part of " + std::to_string(size_bytes) +
                                " bytes at " + std::to_string(offset_bytes) +
                                " is not inside a buffer of " +
                                std::to_string(whole.size_bytes()) + " bytes");
  }
  const Allocation* memory = whole.allocation();
  if (memory != nullptr && memory->owner()->returns_handles()) {
    throw std::invalid_argument(
        std::string("a part of a buffer: the memory of ") +
        memory->owner()->name() + " is a handle, which has no address in it");
  }
  if (whole.data() != nullptr) {
    set_memory(static_cast<std::byte*>(whole.data()) + offset_bytes,
               size_bytes);
  }
}

}  // namespace strata
