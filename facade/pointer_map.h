#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_table.h"
#include "strata/platform/biased_lock.h"

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
// Cost: one lock, seldom contended, on the line of what waits; two lines more
//   if the table is asked. 42 KiB, and 13 to 26 bytes a pointer. A heap call
//   only when a table has to be twice as large.
class PointerMap {
 public:
  // `biased_lock`: whether a thread may own the lock of a shard.
  explicit PointerMap(bool biased_lock = false) {
    if (!biased_lock) return;
    for (Shard& shard : shards_) shard.lock.AllowBias();
  }
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees what is left.
  ~PointerMap() { Clear(); }

  // `allocation` has an address. Errors: std::bad_alloc; then it is freed.
  void Insert(AllocationPtr allocation) {
    Allocation* const inserted = allocation.release();
    const void* data = inserted->data();
    const std::size_t group = GroupOf(data);
    if (group == kNoGroup) [[unlikely]] {
      return InsertSlowly(inserted);
    }
    Shard& shard = shards_[ShardIndex(group, data)];
    BiasedLock::Brief brief(shard.lock);
    if (!brief) [[unlikely]] {
      return InsertSlowly(inserted);
    }
    if (shard.newest != nullptr) {
      brief.Keep();
      return Replace(shard, inserted);
    }
    shard.newest_data = data;
    shard.newest = inserted;
  }
  // Null if the address is unknown. The result is valid until somebody takes
  // it out, which is for the caller to rule out.
  Allocation* Find(const void* data) const;
  // Null if the address is unknown, as null is.
  AllocationPtr Take(const void* data) noexcept {
    Shard& shard = shards_[ShardIndex(GroupOf(data), data)];
    BiasedLock::Brief brief(shard.lock);
    if (!brief) [[unlikely]] {
      return AllocationPtr(TakeSlowly(shard, data));
    }
    if (shard.newest_data != data) {
      brief.Keep();
      return AllocationPtr(TakeFromTable(shard, data));
    }
    shard.newest_data = nullptr;
    return AllocationPtr(std::exchange(shard.newest, nullptr));
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

  // What every use needs is in the first line.
  struct alignas(64) Shard {
    mutable BiasedLock lock;
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
  // Insert, wherever it has to wait or to call. Errors: std::bad_alloc; then
  // `allocation` is freed.
  void InsertSlowly(Allocation* allocation);
  // The rest of Insert, with the lock held, if the newest has to make way.
  void Replace(Shard& shard, Allocation* allocation);
  // False, and nothing is done, if the table has to grow first.
  static bool TryInsert(Shard& shard, Allocation* allocation) noexcept;
  // The rest of Take, with the lock held, if it is not the newest.
  static Allocation* TakeFromTable(Shard& shard, const void* data) noexcept;
  static Allocation* TakeSlowly(Shard& shard, const void* data) noexcept;
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
