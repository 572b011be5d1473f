#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: 64 hash tables, each with a lock of its own, of slots in a row: linear
//   probing, and a removal closes the gap it leaves. A table has room for a
//   third more than it ever had to hold at once, and never gives it back.
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: one lock of 64 and a few slots in a row. A heap call only when a table
//   has to be twice as large.
// Source: linear probing with the removal of Knuth, TAOCP 6.4, Algorithm R.
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees what is left.
  ~PointerMap() { Clear(); }

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
  static constexpr int kShardBits = 6;

  struct Slot {
    const void* data = nullptr;  // null: empty
    Allocation* allocation = nullptr;
  };
  // Guarded by the lock of its shard. At least a quarter of the slots is empty.
  struct Table {
    std::unique_ptr<Slot[]> slots;
    std::size_t mask = 0;  // their number, a power of two, minus 1
    int shift = 0;         // that leaves as many bits of a hash
    std::size_t count = 0;

    std::size_t capacity() const { return slots != nullptr ? mask + 1 : 0; }
    bool is_full() const { return count + 1 > capacity() / 4 * 3; }
    // Where to begin to look: the next bits after those of the shard.
    std::size_t Home(const void* data) const {
      return (Hash(data) << kShardBits) >> shift;
    }
    // The slot of `data`, or the empty one where it would be; there are slots.
    std::size_t Position(const void* data) const;
    void Remove(std::size_t position);
  };
  struct alignas(64) Shard {
    mutable SpinLock lock;
    Table table;
  };

  // Fibonacci hashing: the high bits are the well-mixed ones.
  static std::uint64_t Hash(const void* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    return std::uint64_t{address} * 0x9e3779b97f4a7c15U;
  }
  static std::size_t Index(const void* data) {
    return static_cast<std::size_t>(Hash(data) >> (64 - kShardBits));
  }
  // Makes room in `shard` for one more. Errors: std::bad_alloc.
  static void Grow(Shard& shard);

  std::array<Shard, std::size_t{1} << kShardBits> shards_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
