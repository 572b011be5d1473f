#ifndef STRATA_TENSOR_REF_COUNTED_H_
#define STRATA_TENSOR_REF_COUNTED_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "strata/platform/require_cxx20.h"

namespace strata {

// An object that goes with the last reference to it.
//
// Model: made with one reference, its maker's. Deleted by Unref alone: make the
//   destructors of subclasses private.
// Threads: any thread.
// Cost: an atomic addition per reference; none for the Unref of a single owner.
// Source: tf_bfc.md §2 (RefCounted).
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  // Whoever refers to the object may pass it on: no order is needed.
  void Ref() const noexcept {
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  // True if that was the last reference: the object is gone.
  bool Unref() const noexcept {
    // A sole owner has nobody to race with.
    if (!IsSoleReference() &&
        references_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return false;
    }
    delete this;
    return true;
  }
  // Whether the caller's is the only one. No other can then appear.
  bool IsSoleReference() const noexcept { return references() == 1; }
  // For tests and reports: may have changed on return.
  std::uint64_t references() const noexcept {
    return references_.load(std::memory_order_acquire);
  }

 protected:
  RefCounted() = default;
  virtual ~RefCounted() = default;

 private:
  mutable std::atomic<std::uint64_t> references_{1};
};

// A reference to a RefCounted object, as a value.
template <class T>
class RefPtr {
 public:
  RefPtr() = default;
  // Takes over a reference that the caller has, as the maker of an object does.
  explicit RefPtr(T* object) noexcept : object_(object) {}
  RefPtr(const RefPtr& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->Ref();
  }
  RefPtr(RefPtr&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  RefPtr& operator=(RefPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~RefPtr() {
    if (object_ != nullptr) object_->Unref();
  }

  // A further reference to `object`, which may be null.
  static RefPtr Share(T* object) noexcept {
    if (object != nullptr) object->Ref();
    return RefPtr(object);
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace strata

#endif  // STRATA_TENSOR_REF_COUNTED_H_
