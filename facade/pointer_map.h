#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_shard.h"
#include "strata/facade/pointer_table.h"

namespace strata {

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: shards, each with a lock of its own, in groups. The first allocation
//   in a region of 2 MiB gives the region to the group of its stream, for good,
//   since chunks are a stream's own: threads on streams of their own seldom
//   meet in a shard. Never gives memory back.
// Errors: an address that is inserted twice fails the process, at the latest
//   when it enters a shard's table.
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: one lock, seldom contended, on the line of what waits; two lines more
//   if the table is asked. 42 KiB, and 13 to 26 bytes a pointer. A heap call
//   only when a table has to be twice as large.
class PointerMap {
 public:
  // `biased_lock`: whether a thread may own the lock of a shard.
  explicit PointerMap(bool biased_lock = false) {
    for (std::size_t i = 0; i < kGroupShards; ++i) shards_[i].Close();
    if (!biased_lock) return;
    for (PointerShard& shard : shards_) shard.AllowBias();
  }
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees what is left.
  ~PointerMap() { Clear(); }

  // `allocation` has an address. Errors: std::bad_alloc; then it is freed.
  void Insert(AllocationPtr allocation) {
    const void* const data = allocation->data();
    PointerShard& shard = ShardOf(data);
    if (!shard.InsertFirst(data, allocation.get()) &&
        !shard.InsertNext(data, allocation.get())) {
      return InsertSlowly(std::move(allocation));
    }
    static_cast<void>(allocation.release());
  }
  // The same where the steps of ShardOf did nothing.
  void InsertSlowly(AllocationPtr allocation);
  // Null if the address is unknown. The result is valid until somebody takes
  // it out, which is for the caller to rule out.
  Allocation* Find(const void* data) const {
    return shards_[ShardIndex(data)].Find(data);
  }
  // Null if the address is unknown, as null is.
  AllocationPtr Take(const void* data) noexcept {
    PointerShard& shard = ShardOf(data);
    Allocation* taken = shard.TakeNewest(data);
    if (taken == nullptr) taken = shard.TakeOther(data);
    if (taken == nullptr) taken = shard.Take(data);
    return AllocationPtr(taken);
  }
  // Frees what is in the map; returns how many allocations that were.
  std::size_t Clear() noexcept;

  // Where an address is, if it is in the map; or where nothing can be inserted
  // yet, but by InsertSlowly. For the steps of a shard.
  PointerShard& ShardOf(const void* data) { return shards_[ShardIndex(data)]; }

 private:
  static constexpr std::size_t kNoGroup = 0;
  static constexpr std::size_t kGroups = 16;  // from 1
  static constexpr std::size_t kGroupShards = 16;
  static constexpr int kRegionBits = 21;  // 2 MiB: few chunks are smaller
  // So many in a row, 16 GiB, are told apart.
  static constexpr std::size_t kRegions = std::size_t{1} << 13;

  static std::size_t RegionOf(const void* data) {
    return (reinterpret_cast<std::uintptr_t>(data) >> kRegionBits) % kRegions;
  }
  std::size_t ShardIndex(const void* data) const {
    const std::size_t group =
        groups_[RegionOf(data)].load(std::memory_order_relaxed);
    // Bits that a table makes no use of.
    return group * kGroupShards +
           (PointerTable::Hash(data) >> 36) % kGroupShards;
  }
  // Gives the region of `allocation` a group, if it has none.
  void Settle(const Allocation& allocation) noexcept;

  // By region; kNoGroup: nothing was ever inserted there. Once set, it stays.
  std::array<std::atomic<std::uint8_t>, kRegions> groups_{};
  // Those of kNoGroup are closed.
  std::array<PointerShard, (1 + kGroups) * kGroupShards> shards_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
