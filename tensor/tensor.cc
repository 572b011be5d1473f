#include "strata/tensor/tensor.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"

namespace strata {
namespace {

// Allocates `bytes`; null with the reason in `failure` if that fails or if
// there is no number of bytes.
AllocationPtr AllocateBytes(Allocator& allocator,
                            std::optional<std::size_t> bytes,
                            const AllocationAttributes& attributes,
                            Failure& failure) {
  if (!bytes) {
    failure = UncountableBytes(allocator, "tensor");
    return nullptr;
  }
  Request request = ToRequest(*bytes, attributes);
  // The tensor or its creator records the allocation.
  if (allocator.allocation_log() != nullptr) request.flags |= kWillBeLogged;
  request.alignment = AlignmentToAsk(allocator, kTypedAlignmentBytes);
  return allocator.AllocateOrNull(request, failure);
}

Shape WithFirst(const Shape& shape, std::int64_t first) {
  std::vector<std::int64_t> dims = shape.dims();
  dims.front() = first;
  return Shape(std::move(dims));
}

}  // namespace

Tensor::Tensor(Allocator& allocator, DataType dtype, Shape shape,
               const AllocationAttributes& attributes, Failure* failure)
    : dtype_(dtype), shape_(std::move(shape)) {
  if (dtype_ == DataType::kUndefined) {
    throw std::invalid_argument("a tensor needs the type of its elements");
  }
  if (num_elements() == 0 && !allocator.returns_handles()) return;
  Failure reason;
  AllocationPtr allocation = AllocateBytes(
      allocator, CheckedBytesOf(shape_, dtype_), attributes, reason);
  if (allocation == nullptr) {
    if (failure != nullptr) *failure = reason;
    return;
  }
  const RefPtr<RawBuffer> buffer(
      new RawBuffer(std::move(allocation), size_bytes()));
  if (!attributes.allocation_will_be_logged) {
    buffer->Record(ToString(dtype_), ToString(shape_).c_str());
  }
  buffer_ = RefPtr<TensorBuffer>::Share(buffer.get());
}

Tensor::Tensor(DataType dtype, Shape shape, RefPtr<TensorBuffer> buffer)
    : dtype_(dtype), shape_(std::move(shape)), buffer_(std::move(buffer)) {}

Tensor Tensor::Make(Allocator& allocator, DataType dtype, Shape shape,
                    const AllocationAttributes& attributes) {
  Failure failure;
  Tensor tensor(allocator, dtype, std::move(shape), attributes, &failure);
  // A handle is needed even without elements.
  const bool needs_memory =
      tensor.num_elements() != 0 || allocator.returns_handles();
  if (needs_memory && !tensor.buffer_) ThrowFailure(failure, allocator);
  return tensor;
}

std::size_t Tensor::allocated_bytes() const {
  return allocation() != nullptr ? allocation()->size() : 0;
}

void Tensor::CheckRange(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || begin > end || end > shape_.dim(0)) {
    throw std::invalid_argument("a tensor of shape " + ToString(shape_) +
                                " has no elements " + std::to_string(begin) +
                                " to " + std::to_string(end));
  }
}

RefPtr<TensorBuffer> Tensor::Part(std::int64_t begin,
                                  const Shape& shape) const {
  // No elements or no memory: there is no part.
  if (num_elements() == 0 || data() == nullptr) return buffer_;
  const std::size_t row_bytes =
      size_bytes() / static_cast<std::size_t>(shape_.dim(0));
  return RefPtr<TensorBuffer>(
      new SubBuffer(*buffer_, static_cast<std::size_t>(begin) * row_bytes,
                    BytesOf(shape, dtype_)));
}

Tensor Tensor::Slice(std::int64_t begin, std::int64_t end) const {
  CheckRange(begin, end);
  if (begin == 0 && end == shape_.dim(0)) return *this;
  Shape part = WithFirst(shape_, end - begin);
  RefPtr<TensorBuffer> buffer = Part(begin, part);
  return Tensor(dtype_, std::move(part), std::move(buffer));
}

Tensor Tensor::SubSlice(std::int64_t i) const {
  CheckRange(i, i == std::numeric_limits<std::int64_t>::max() ? i : i + 1);
  Shape part(std::vector<std::int64_t>(shape_.dims().begin() + 1,
                                       shape_.dims().end()));
  RefPtr<TensorBuffer> buffer = Part(i, part);
  return Tensor(dtype_, std::move(part), std::move(buffer));
}

Tensor Tensor::Reshaped(Shape shape) const {
  if (shape.num_elements() != num_elements()) {
    throw std::invalid_argument("a tensor of shape " + ToString(shape_) +
                                " has no shape " + ToString(shape));
  }
  return Tensor(dtype_, std::move(shape), buffer_);
}

bool Tensor::SharesBufferWith(const Tensor& other) const {
  return buffer_ && other.buffer_ && &buffer_->root() == &other.buffer_->root();
}

}  // namespace strata
