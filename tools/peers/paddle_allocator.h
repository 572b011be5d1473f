#ifndef STRATA_TOOLS_PEERS_PADDLE_ALLOCATOR_H_
#define STRATA_TOOLS_PEERS_PADDLE_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "strata/platform/memory_types.h"

namespace strata {

class PaddleAllocator;

// Thrown by a layer that has no memory, and caught by those that can do
// something about it.
struct PaddleOutOfMemory {};

// A spin lock that asks again and again.
class PaddleSpinLock {
 public:
  void lock() {  // NOLINT(readability-identifier-naming): as std::mutex has it
    while (taken_.test_and_set(std::memory_order_acquire)) {
      while (taken_.test(std::memory_order_relaxed)) {
      }
    }
  }
  void unlock() {  // NOLINT(readability-identifier-naming)
    taken_.clear(std::memory_order_release);
  }

 private:
  std::atomic_flag taken_;
};

// Where memory lives, by the original's three numbers: 16 bytes.
struct PaddlePlace {
  std::int8_t kind = 1;  // memory of a GPU
  std::int8_t device = 0;
  std::size_t device_type = 0;

  friend auto operator<=>(const PaddlePlace&, const PaddlePlace&) = default;
};

// What a layer hands out, with the layers that still have to see it freed.
//
// Threads: externally synchronised.
// Source: paddle.md §1, §3.1.
class PaddleAllocation {
 public:
  PaddleAllocation(DevicePtr address, std::size_t bytes, PaddlePlace place)
      : address_(address), bytes_(bytes), place_(place) {}
  PaddleAllocation(const PaddleAllocation&) = delete;
  PaddleAllocation& operator=(const PaddleAllocation&) = delete;
  virtual ~PaddleAllocation() = default;

  // Virtual, as in the newest version: one strategy moves live memory.
  virtual DevicePtr address() const { return address_; }
  virtual std::size_t bytes() const { return bytes_; }
  virtual PaddlePlace place() const { return place_; }

 private:
  friend class PaddleAllocator;
  // The original moves more layers than this into a vector; there are three.
  static constexpr std::size_t kMostLayers = 8;

  const DevicePtr address_;
  const std::size_t bytes_;
  const PaddlePlace place_;
  std::size_t layer_count_ = 0;
  std::array<PaddleAllocator*, kMostLayers> layers_{};
};

using PaddleAllocationPtr =
    std::unique_ptr<PaddleAllocation, std::function<void(PaddleAllocation*)>>;

// A layer.
//
// Model: whoever handed an allocation out last sees it freed first. A layer
//   that keeps nothing of its own passes the object of the one below on;
//   others put an object around it.
// Errors: PaddleOutOfMemory.
// Threads: any thread.
// Source: paddle.md §3.1, rules 2 to 4.
class PaddleAllocator {
 public:
  PaddleAllocator() = default;
  PaddleAllocator(const PaddleAllocator&) = delete;
  PaddleAllocator& operator=(const PaddleAllocator&) = delete;
  virtual ~PaddleAllocator() = default;

  virtual PaddleAllocationPtr Allocate(std::size_t bytes);
  virtual void Free(PaddleAllocation* allocation);

  // What an allocation is destroyed with.
  static void Delete(PaddleAllocation* allocation);

 protected:
  virtual PaddleAllocation* AllocateImpl(std::size_t bytes) = 0;
  virtual void FreeImpl(PaddleAllocation* allocation) = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_PADDLE_ALLOCATOR_H_
