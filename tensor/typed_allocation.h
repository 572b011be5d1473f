#ifndef STRATA_TENSOR_TYPED_ALLOCATION_H_
#define STRATA_TENSOR_TYPED_ALLOCATION_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/allocation/attributes.h"
#include "strata/tensor/data_type.h"

namespace strata {

// Minimum alignment of typed memory: a cache line, the widest vector. Bytes.
inline constexpr std::size_t kTypedAlignmentBytes = 64;

// True if an object must be constructed before use: its type is not trivial and
// no DataType represents it.
template <class T>
inline constexpr bool kNeedsConstruction =
    !std::is_trivial_v<T> && kDataTypeOf<T> == DataType::kUndefined;

// True if the host can read and write the memory of `allocator`.
inline bool IsHostAccessible(const Allocator& allocator) {
  return allocator.place().kind != PlaceKind::kDevice &&
         !allocator.returns_handles();
}

// The alignment to request from `allocator` for memory aligned to `wanted`; 0
// if it is always aligned. A handle is not an address.
inline std::size_t AlignmentToAsk(const Allocator& allocator,
                                  std::size_t wanted) {
  const bool is_given =
      allocator.returns_handles() || allocator.natural_alignment() >= wanted;
  return is_given ? 0 : wanted;
}

// The failure for objects with a size that overflows.
inline Failure UncountableBytes(const Allocator& allocator, const char* layer) {
  Failure failure;
  failure.reason = Failure::Reason::kTooLarge;
  failure.place = allocator.place();
  failure.layer = layer;
  failure.detail = "or more: the objects have more bytes than can be counted";
  failure.requested_bytes = std::numeric_limits<std::size_t>::max();
  return failure;
}

// Allocates memory for `n` objects. On failure returns null and sets `failure`:
// kTooLarge if the size overflows; kBadRequest if the objects need construction
// and the host cannot access the memory. Constructs no object.
template <class T>
AllocationPtr AllocateFor(Allocator& allocator, std::size_t n, Failure& failure,
                          const AllocationAttributes& attributes) noexcept {
  if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
    failure = UncountableBytes(allocator, "typed");
    return nullptr;
  }
  failure = Failure();
  failure.place = allocator.place();
  failure.layer = "typed";
  failure.requested_bytes = n * sizeof(T);
  // The memory behind a handle contains no objects yet; the owner of the handle
  // constructs them.
  if (kNeedsConstruction<T> && !IsHostAccessible(allocator) &&
      !allocator.returns_handles()) {
    failure.reason = Failure::Reason::kBadRequest;
    failure.detail = "objects with constructors need memory of the host";
    return nullptr;
  }
  Request request = ToRequest(n * sizeof(T), attributes);
  request.alignment =
      AlignmentToAsk(allocator, std::max(alignof(T), kTypedAlignmentBytes));
  return allocator.AllocateOrNull(request, failure);
}

// An array in memory of an allocator, and its owner.
//
// Model: objects that need construction are value-initialised in the
//   constructor. They are destroyed, last first, before the memory is freed.
//   Other objects are not initialised. Empty after a failure, and after a move
//   from it.
template <class T>
class TypedAllocation {
 public:
  TypedAllocation() = default;
  // Constructs `n` objects in `allocation`, which must have room for them. Null
  // gives an empty array.
  //
  // Errors: exceptions of the constructors; then the memory is freed.
  TypedAllocation(AllocationPtr allocation, std::size_t n)
      : allocation_(std::move(allocation)),
        size_(allocation_ != nullptr ? n : 0) {
    if (HasObjects()) {
      std::uninitialized_value_construct_n(data(), size_);
    }
  }
  TypedAllocation(TypedAllocation&& other) noexcept
      : allocation_(std::move(other.allocation_)),
        size_(std::exchange(other.size_, 0)) {}
  TypedAllocation& operator=(TypedAllocation&& other) noexcept {
    if (this != &other) {
      Destroy();
      allocation_ = std::move(other.allocation_);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~TypedAllocation() { Destroy(); }

  // True if the array has an allocation. An allocation of 0 objects counts.
  explicit operator bool() const { return allocation_ != nullptr; }
  // Null for an empty array.
  T* data() const {
    return allocation_ != nullptr ? static_cast<T*>(allocation_->data())
                                  : nullptr;
  }
  std::size_t size() const { return size_; }  // number of objects
  // Only for memory that the host can access.
  std::span<T> span() const { return std::span<T>(data(), size_); }
  Allocation* allocation() const { return allocation_.get(); }

 private:
  bool HasObjects() const {
    return kNeedsConstruction<T> && size_ != 0 &&
           IsHostAccessible(*allocation_->owner());
  }
  void Destroy() noexcept {
    if (HasObjects()) {
      for (std::size_t i = size_; i > 0; --i) std::destroy_at(data() + i - 1);
    }
    allocation_.reset();
    size_ = 0;
  }

  AllocationPtr allocation_;
  std::size_t size_ = 0;
};

// Allocates an array of `n` objects from `allocator`. On failure returns an
// empty array and sets `failure` (see AllocateFor()).
//
// Errors: exceptions of the constructor of T; then nothing is allocated.
// Source: tf_bfc.md §2 (TypedAllocator).
template <class T>
TypedAllocation<T> Allocate(Allocator& allocator, std::size_t n,
                            Failure& failure,
                            const AllocationAttributes& attributes = {}) {
  return TypedAllocation<T>(AllocateFor<T>(allocator, n, failure, attributes),
                            n);
}
template <class T>
TypedAllocation<T> Allocate(Allocator& allocator, std::size_t n) {
  Failure failure;
  return Allocate<T>(allocator, n, failure);
}

}  // namespace strata

#endif  // STRATA_TENSOR_TYPED_ALLOCATION_H_
