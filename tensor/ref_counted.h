#ifndef STRATA_TENSOR_REF_COUNTED_H_
#define STRATA_TENSOR_REF_COUNTED_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "strata/base/require_cxx20.h"

namespace strata {

// An object that is deleted with its last reference.
//
// Model: created with one reference, which belongs to the creator. Only Unref()
//   deletes it: make the destructors of subclasses private.
// Threads: any thread.
// Cost: an atomic addition per reference; none for the Unref() of a sole owner.
// Source: tf_bfc.md §2 (RefCounted).
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  // Adds a reference. The caller holds one already, so relaxed order is enough.
  void Ref() const noexcept {
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  // Removes a reference. Returns true if it was the last one; then the object
  // is deleted.
  bool Unref() const noexcept {
    // A sole owner has no concurrent thread.
    if (!IsSoleReference() &&
        references_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return false;
    }
    delete this;
    return true;
  }
  // True if the caller holds the only reference. Then no other can appear.
  bool IsSoleReference() const noexcept { return references() == 1; }
  // Number of references, for tests and reports; may be outdated on return.
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
  // Takes over a reference of the caller, for example of the creator.
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

  // Adds a reference to `object`, which may be null.
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
