#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_shard.h"
#include "strata/facade/pointer_slots.h"

namespace strata {

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: groups, of slots that need no lock and of shards for what finds its
//   slot taken, or had to leave it. The first allocation in a region of 2 MiB
//   gives the region to the group of its stream, for good, since chunks are a
//   stream's own: threads on streams of their own seldom meet. Insert and Take
//   do what can be asked of them; each is also cut into steps by what it takes,
//   the likely first, for callers that try them one after the other in
//   functions of their own.
// Errors: an address that is inserted twice fails the process where its slot or
//   its shard knows it.
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: up to about a thousand live pointers of a stream, mostly one atomic
//   operation on one line; beyond, a lock, and three lines. 8 KiB, 66 KiB for
//   each group in use, and 13 to 26 bytes a pointer that has no slot. A heap
//   call only for the first pointer of a group, and when a table has to be
//   twice as large.
class PointerMap {
 public:
  PointerMap() = default;
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees what is left.
  ~PointerMap();

  // `allocation` has an address. Errors: std::bad_alloc; then it is freed.
  void Insert(AllocationPtr allocation);
  // Null if the address is unknown. The result is valid until somebody takes
  // it out, which is for the caller to rule out.
  Allocation* Find(const void* data) const;
  // Null if the address is unknown, as null is.
  AllocationPtr Take(const void* data) noexcept;
  // Frees what is in the map; returns how many allocations that were.
  std::size_t Clear() noexcept;

  // Insert by steps. False, and nothing is done, if it takes more. `data` is
  // the address of `allocation`.
  bool InsertIntoSlot(const void* data, Allocation* allocation) noexcept {
    Group* const group = GroupOf(data);
    return group != nullptr && group->slots.Insert(data, allocation);
  }
  bool InsertIntoShard(const void* data, Allocation* allocation) noexcept {
    Group* const group = GroupOf(data);
    // It is there already, or the group is not.
    if (group == nullptr || group->slots.Find(data) != nullptr) return false;
    return group->ShardOf(data).InsertAtOnce(data, allocation, group->slots);
  }
  // Take by steps: null, and nothing is done, if it is elsewhere.
  Allocation* TakeFromSlot(const void* data) noexcept {
    Group* const group = GroupOf(data);
    return group != nullptr ? group->slots.Take(data) : nullptr;
  }
  Allocation* TakeFromShard(const void* data) noexcept {
    Group* const group = GroupOf(data);
    return group != nullptr ? group->ShardOf(data).TakeAtOnce(data) : nullptr;
  }

 private:
  static constexpr std::size_t kNoGroup = 0;
  static constexpr std::size_t kGroups = 16;  // from 1
  static constexpr std::size_t kShards = 16;  // of a group
  static constexpr int kRegionBits = 21;      // 2 MiB: few chunks are smaller
  // So many in a row, 16 GiB, are told apart.
  static constexpr std::size_t kRegions = std::size_t{1} << 13;

  struct Group {
    PointerShard& ShardOf(const void* data) {
      // One for all addresses of a slot.
      return shards[PointerSlots::IndexOf(data) % kShards];
    }

    PointerSlots slots;
    std::array<PointerShard, kShards> shards;
  };

  static std::size_t RegionOf(const void* data) {
    return (reinterpret_cast<std::uintptr_t>(data) >> kRegionBits) % kRegions;
  }
  // Where an address is, if it is in the map; null if nothing was ever inserted
  // in its region.
  Group* GroupOf(const void* data) const {
    const std::size_t number =
        regions_[RegionOf(data)].load(std::memory_order_acquire);
    return groups_[number].load(std::memory_order_acquire);
  }
  // Gives the region of `allocation` a group, if it has none. Errors:
  // std::bad_alloc.
  Group& Settle(const Allocation& allocation);

  // The number of the group; once set, it stays. Bytes, because a program may
  // use many regions in turn.
  std::array<std::atomic<std::uint8_t>, kRegions> regions_{};
  std::array<std::atomic<Group*>, 1 + kGroups> groups_{};  // by number
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
