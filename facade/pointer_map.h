#ifndef STRATA_FACADE_POINTER_MAP_H_
#define STRATA_FACADE_POINTER_MAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_group.h"
#include "strata/facade/pointer_regions.h"

namespace strata {

class Front;

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: each front of the facade has a group, which has the regions where it
//   allocated first. A front's hits are known, and its frees found, with the
//   lock of its chain, which they take anyway (Front::AllocKnown, FreeKnown);
//   so threads on streams of their own never meet here. What is elsewhere, as
//   memory that changed streams, costs that group's lock besides. A group whose
//   front has ended serves the next one, with all its regions. There are 254;
//   fronts beyond that share one which serves none of them.
// Errors: an address that is inserted twice fails the process.
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: that of a PointerGroup, and two loads. A heap call for the first
//   pointer of a front, and as its group says. 66 KiB.
class PointerMap {
 public:
  PointerMap();
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees what is left.
  ~PointerMap();

  // `allocation`, which has an address, is a front's. Errors: std::bad_alloc;
  // then it is freed.
  void Insert(AllocationPtr allocation);
  // Null if the address is unknown. The result is valid until somebody takes
  // it out, which is for the caller to rule out.
  Allocation* Find(const void* data) const;
  // Null if the address is unknown, as null is.
  AllocationPtr Take(const void* data) noexcept;
  // Frees what is in the map; returns how many allocations that were.
  std::size_t Clear() noexcept;

  // Where an address is, if it is in the map; null if nothing was ever inserted
  // in its region.
  PointerGroup* GroupOf(const void* data) const {
    return groups_[regions_->OwnerOf(data)].load(std::memory_order_acquire);
  }

 private:
  // Numbers of groups; the common one is of no front.
  static constexpr std::size_t kCommon = 1;
  static constexpr std::size_t kGroups = 256;

  // Has the front a group, and the region of `allocation` one; returns that.
  //
  // Errors: std::bad_alloc.
  PointerGroup& Settle(const Allocation& allocation, Front& front);
  // Hold mutex_.
  PointerGroup& BindOne(Front& front);
  PointerGroup& Make(std::size_t number);

  const std::shared_ptr<PointerRegions> regions_;
  std::array<std::atomic<PointerGroup*>, kGroups> groups_{};  // by number

  std::mutex mutex_;
  // Those that were made; fronts hold theirs. Guarded by mutex_.
  std::vector<std::shared_ptr<PointerGroup>> made_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
