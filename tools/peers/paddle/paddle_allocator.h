#ifndef STRATA_TOOLS_PEERS_PADDLE_PADDLE_ALLOCATOR_H_
#define STRATA_TOOLS_PEERS_PADDLE_PADDLE_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "strata/platform/memory_types.h"

namespace strata::peers {

class PaddleAllocator;

// Thrown by a layer without memory, and caught by layers that can react.
struct PaddleOutOfMemory {};

// A spin lock that retries without a pause.
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

// The place of memory, with the three numbers of the original: 16 bytes.
struct PaddlePlace {
  std::int8_t kind = 1;  // memory of a GPU
  std::int8_t device = 0;
  std::size_t device_type = 0;

  friend auto operator<=>(const PaddlePlace&, const PaddlePlace&) = default;
};

// The allocation of a layer, with the list of layers to which its free is still
// passed.
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
  // The original uses a vector for more layers; there are three.
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
// Model: the layer that returned an allocation last sees its free first. A
//   layer without state per allocation passes on the object of the layer below.
//   Other layers wrap it in their own object.
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

  // The deleter of allocations.
  static void Delete(PaddleAllocation* allocation);

 protected:
  virtual PaddleAllocation* AllocateImpl(std::size_t bytes) = 0;
  virtual void FreeImpl(PaddleAllocation* allocation) = 0;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PADDLE_PADDLE_ALLOCATOR_H_
