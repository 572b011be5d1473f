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

// Typed memory is at least this aligned: a cache line, the widest vector.
inline constexpr std::size_t kTypedAlignmentBytes = 64;

// Whether an object must be constructed before it is used: it is neither
// trivial nor a number that a tensor can hold.
template <class T>
inline constexpr bool kNeedsConstruction =
    !std::is_trivial_v<T> && kDataTypeOf<T> == DataType::kUndefined;

// Whether the host may read and write what `allocator` returns.
inline bool IsHostAccessible(const Allocator& allocator) {
  return allocator.place().kind != PlaceKind::kDevice &&
         !allocator.returns_handles();
}

// The alignment to ask `allocator` for, so that memory is aligned to `wanted`;
// 0 where it is anyway. A handle is no address.
inline std::size_t AlignmentToAsk(const Allocator& allocator,
                                  std::size_t wanted) {
  const bool is_given =
      allocator.returns_handles() || allocator.natural_alignment() >= wanted;
  return is_given ? 0 : wanted;
}

// Why objects get no memory that have more bytes than can be counted.
inline Failure UncountableBytes(const Allocator& allocator, const char* layer) {
  Failure failure;
  failure.reason = Failure::Reason::kTooLarge;
  failure.place = allocator.place();
  failure.layer = layer;
  failure.detail = "or more: the objects have more bytes than can be counted";
  failure.requested_bytes = std::numeric_limits<std::size_t>::max();
  return failure;
}

// The memory for `n` objects: null, with the reason in `failure`, if it cannot
// be had. kTooLarge if its size overflows; kBadRequest if the objects need
// construction where the host cannot reach them. No object is constructed.
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
  // A handle is no place for objects; whoever keeps them there constructs them.
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

// An array in the memory of an allocator, and its owner.
//
// Model: objects that need construction are value-initialised when it is made
//   and destroyed, last first, before its memory is freed. Others are left as
//   the memory is. Empty after a failure, and after being moved from.
template <class T>
class TypedAllocation {
 public:
  TypedAllocation() = default;
  // Constructs `n` objects in `allocation`, which has room for them; null gives
  // an empty array.
  //
  // Errors: what a constructor throws; then the memory is freed.
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

  // Whether there is memory, or none was needed.
  explicit operator bool() const { return allocation_ != nullptr; }
  // Null for an empty array.
  T* data() const {
    return allocation_ != nullptr ? static_cast<T*>(allocation_->data())
                                  : nullptr;
  }
  std::size_t size() const { return size_; }  // objects
  // For memory that the host can reach.
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

// An array of `n` objects from `allocator`; empty, with the reason in
// `failure`, if it cannot be had (see AllocateFor).
//
// Errors: what a constructor of T throws; then nothing is allocated.
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
