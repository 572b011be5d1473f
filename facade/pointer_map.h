#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "strata/allocation/allocation.h"

namespace strata {

// Owns allocations by their address, for callers that hold plain pointers.
//
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: one lock of 64 and a hash table; a heap call for Insert and Take.
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;

  // `allocation` has an address. Errors: std::bad_alloc; then it is freed.
  void Insert(AllocationPtr allocation);
  // Null if the address is unknown. The result is valid until somebody takes
  // it out, which is for the caller to rule out.
  Allocation* Find(const void* data) const;
  // Null if the address is unknown.
  AllocationPtr Take(const void* data) noexcept;
  // Frees what is in the map; returns how many allocations that were.
  std::size_t Clear() noexcept;

 private:
  static constexpr std::size_t kShards = 64;
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::unordered_map<const void*, AllocationPtr> live;  // guarded by mutex
  };

  static std::size_t Index(const void* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    // Fibonacci hashing: the six high bits, which are well mixed.
    return static_cast<std::size_t>((address * 0x9e3779b97f4a7c15U) >> 58);
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
