#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_table.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: shards, each with a lock of its own, in groups. The first allocation
//   in a region of 2 MiB gives the region to the group of its stream, for good,
//   since chunks are a stream's own: threads on streams of their own seldom
//   meet in a shard. The newest pointer of a shard waits before it enters the
//   shard's table, until the next one comes: one that is freed soon never gets
//   there, and for others the line they go to has been fetched meanwhile.
//   Never gives memory back.
// Errors: an address that is inserted twice fails the process, at the latest
//   when it enters a table.
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: one lock, seldom contended, on the line of what waits; one line more in
//   the table. 25 KiB, and 13 to 26 bytes a pointer. A heap call only when a
//   table has to be twice as large.
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees what is left.
  ~PointerMap() { Clear(); }

  // `allocation` has an address. Errors: std::bad_alloc; then it is freed.
  void Insert(AllocationPtr allocation) {
    const void* data = allocation->data();
    std::size_t group = GroupOf(data);
    if (group == kNoGroup) group = Settle(*allocation);
    Shard& shard = shards_[ShardIndex(group, data)];
    while (!TryInsert(shard, data, allocation.get())) Grow(shard);
    static_cast<void>(allocation.release());
  }
  // Null if the address is unknown. The result is valid until somebody takes
  // it out, which is for the caller to rule out.
  Allocation* Find(const void* data) const;
  // Null if the address is unknown, as null is.
  AllocationPtr Take(const void* data) noexcept {
    Shard& shard = shards_[ShardIndex(GroupOf(data), data)];
    const std::lock_guard<SpinLock> guard(shard.lock);
    if (shard.newest_data == data) {
      shard.newest_data = nullptr;
      return AllocationPtr(std::exchange(shard.newest, nullptr));
    }
    return AllocationPtr(shard.table.Take(data));
  }
  // Frees what is in the map; returns how many allocations that were.
  std::size_t Clear() noexcept;

 private:
  static constexpr std::size_t kNoGroup = 0;
  static constexpr std::size_t kGroups = 16;  // from 1
  static constexpr std::size_t kGroupShards = 16;
  static constexpr int kRegionBits = 21;  // 2 MiB: few chunks are smaller
  // So many in a row, 16 GiB, are told apart.
  static constexpr std::size_t kRegions = std::size_t{1} << 13;

  // One line.
  struct alignas(64) Shard {
    mutable SpinLock lock;
    // All below guarded by lock.
    const void* newest_data = nullptr;  // of `newest`; null if it is
    Allocation* newest = nullptr;       // not in the table; may be null
    PointerTable table;
  };

  static std::size_t RegionOf(const void* data) {
    return (reinterpret_cast<std::uintptr_t>(data) >> kRegionBits) % kRegions;
  }
  std::size_t GroupOf(const void* data) const {
    return groups_[RegionOf(data)].load(std::memory_order_relaxed);
  }
  static std::size_t ShardIndex(std::size_t group, const void* data) {
    // Bits that a table makes no use of.
    return group * kGroupShards +
           (PointerTable::Hash(data) >> 36) % kGroupShards;
  }
  // Gives the region of `allocation` a group; returns it.
  std::size_t Settle(const Allocation& allocation) noexcept;
  // False, and nothing is done, if the table has to grow first.
  static bool TryInsert(Shard& shard, const void* data,
                        Allocation* allocation) noexcept {
    const std::lock_guard<SpinLock> guard(shard.lock);
    if (shard.newest != nullptr && !MakeWay(shard, data)) return false;
    shard.newest_data = data;
    shard.newest = allocation;
    return true;
  }
  // Has the newest enter the table, since `data` is the new one; false, and
  // nothing is done, if there is no room. Under the lock.
  static bool MakeWay(Shard& shard, const void* data) noexcept;
  // Makes room in the table for one more. Errors: std::bad_alloc.
  static void Grow(Shard& shard);

  // By region; kNoGroup: nothing was ever inserted there. Once set, it stays.
  std::array<std::atomic<std::uint8_t>, kRegions> groups_{};
  // Those of kNoGroup stay empty.
  std::array<Shard, (1 + kGroups) * kGroupShards> shards_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
