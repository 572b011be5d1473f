#ifndef STRATA_BINDINGS_C_POINTER_MAP_H_
#define STRATA_BINDINGS_C_POINTER_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: 16 shards, each a hash table under a spin lock. The region of 2 MiB
//   of an address selects its shard. A chunk belongs to one stream, so threads
//   on separate streams mostly use separate shards. A table probes linearly.
//   It doubles when it is full (room_), and never shrinks. A removal moves
//   later entries back, so it leaves no tombstone.
// Errors: an address that is inserted twice fails the process.
// Threads: any thread. An address is in the map before its caller knows it,
//   and until it is taken out. Only one caller can take it out.
// Cost: an uncontended lock, and mostly one cache line of a table. A heap call
//   only if a table doubles, with no lock held. 1 KiB, and per pointer at the
//   largest number of pointers so far 32 to 64 bytes, or 64 to 128 in a table
//   of at most kSparseEntries.
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees all remaining allocations.
  ~PointerMap() { Clear(); }

  // Returns the address, by which the allocation can be found now. An
  // allocation without one is freed.
  //
  // Errors: std::bad_alloc; then it is freed.
  void* Insert(AllocationPtr allocation) {
    void* const data = allocation->data();
    if (data == nullptr) return nullptr;
    Shard& shard = ShardOf(data);
    for (;; Grow(shard)) {
      const std::lock_guard<SpinLock> guard(shard.lock);
      if (shard.table.is_full()) [[unlikely]] {
        continue;
      }
      shard.table.Insert(data, allocation.release());
      return data;
    }
  }
  // Null if the address is unknown. The result is valid until another thread
  // takes it out; the caller prevents that.
  Allocation* Find(const void* data) const noexcept {
    const Shard& shard = ShardOf(data);
    const std::lock_guard<SpinLock> guard(shard.lock);
    return shard.table.Find(data);
  }
  // Null if the address is unknown or null.
  AllocationPtr Take(const void* data) noexcept {
    Shard& shard = ShardOf(data);
    const std::lock_guard<SpinLock> guard(shard.lock);
    return AllocationPtr(shard.table.Take(data));
  }
  // Frees all allocations of the map; returns their number.
  std::size_t Clear() noexcept;

 private:
  // The cache lines of the locks stay in the nearest cache.
  static constexpr std::size_t kShards = 16;
  static constexpr int kRegionBits = 21;
  // A table of at most so many entries is at most a quarter full, so that few
  // addresses collide. A larger one is at most half full: beyond the near
  // caches, a line of a table costs more than a collision.
  static constexpr std::size_t kSparseEntries = 1024;

  struct Entry {
    const void* data;  // null: the entry is empty
    Allocation* allocation;
  };

  // A hash table. It has an empty entry, or no entries.
  class Table {
   public:
    Table() = default;
    // `capacity` is a power of two, and at least 2.
    //
    // Errors: std::bad_alloc.
    explicit Table(std::size_t capacity);

    std::size_t capacity() const { return entries_ ? mask_ + 1 : 0; }
    bool is_full() const { return room_ == 0; }
    // The table is not full.
    void Insert(const void* data, Allocation* allocation) noexcept {
      const std::size_t index = Search(data);
      if (entries_[index].data != nullptr) [[unlikely]] {
        RefuseTwice(data);
      }
      entries_[index] = {data, allocation};
      --room_;
    }
    Allocation* Find(const void* data) const noexcept {
      if (entries_ == nullptr) return nullptr;
      const Entry& entry = entries_[Search(data)];
      return entry.data != nullptr ? entry.allocation : nullptr;
    }
    Allocation* Take(const void* data) noexcept {
      if (entries_ == nullptr) return nullptr;
      const std::size_t index = Search(data);
      if (entries_[index].data == nullptr) return nullptr;
      Allocation* const allocation = entries_[index].allocation;
      Empty(index);
      ++room_;
      return allocation;
    }
    template <class Visitor>
    void ForEach(Visitor visit) const {
      for (std::size_t i = 0; i < capacity(); ++i) {
        if (entries_[i].data != nullptr) visit(entries_[i]);
      }
    }

   private:
    // The entry of the address, or the empty entry that a search ends at.
    std::size_t Search(const void* data) const noexcept {
      std::size_t index = HomeOf(data);
      while (entries_[index].data != data && entries_[index].data != nullptr) {
        index = Next(index);
      }
      return index;
    }
    // Empties the entry. Moves later entries back if a search would otherwise
    // end before them.
    void Empty(std::size_t gap) noexcept {
      for (std::size_t i = Next(gap); entries_[i].data != nullptr;
           i = Next(i)) {
        const std::size_t from_home = (i - HomeOf(entries_[i].data)) & mask_;
        if (from_home < ((i - gap) & mask_)) continue;
        entries_[gap] = entries_[i];
        gap = i;
      }
      entries_[gap].data = nullptr;
    }
    std::size_t HomeOf(const void* data) const {
      // Fibonacci hashing.
      const auto address = reinterpret_cast<std::uintptr_t>(data);
      return static_cast<std::size_t>(
          (std::uint64_t{address} * 0x9e3779b97f4a7c15U) >> shift_);
    }
    std::size_t Next(std::size_t index) const { return (index + 1) & mask_; }
    [[noreturn]] static void RefuseTwice(const void* data) noexcept;

    std::unique_ptr<Entry[]> entries_;
    std::size_t mask_ = 0;  // capacity - 1
    std::size_t room_ = 0;  // insertions until the table is full
    int shift_ = 0;         // 64 - log2(capacity)
  };

  struct alignas(64) Shard {
    mutable SpinLock lock;
    Table table;  // guarded by lock
  };
  static_assert(sizeof(Shard) == 64, "one cache line");

  // Doubles the table, unless another thread does.
  //
  // Errors: std::bad_alloc.
  static void Grow(Shard& shard);
  static std::size_t IndexOf(const void* data) {
    return (reinterpret_cast<std::uintptr_t>(data) >> kRegionBits) % kShards;
  }
  Shard& ShardOf(const void* data) { return shards_[IndexOf(data)]; }
  const Shard& ShardOf(const void* data) const {
    return shards_[IndexOf(data)];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace strata

#endif  // STRATA_BINDINGS_C_POINTER_MAP_H_
