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
#include "strata/platform/initial_exec.h"

namespace strata {

class Front;

// Owns allocations by their address, for callers that hold plain pointers.
//
// Model: each front of the facade has a group. A front's hits are known, and
// its
//   frees found, with the lock of its chain, which they take anyway
//   (Front::StartKnown, StartFree); so threads on streams of their own never
//   meet here. Where an address may be, its region says; one that changed
//   streams is looked for where it is likely first. A group whose front has
//   ended serves the next one. There are 253; fronts beyond that share one
//   which serves none of them.
// Errors: an address that is inserted twice fails the process.
// Threads: any thread. An address is in the map from before its caller knows it
//   until it is taken out, and only one caller gets it out.
// Cost: that of a PointerGroup, and two loads. A heap call for the first
//   pointer of a front, and as its group says. 130 KiB.
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

  const PointerRegions& regions() const { return *regions_; }
  // Where an address is, most likely, if it is in the map; null if nothing was
  // ever inserted in its region.
  PointerGroup* GroupOf(const void* data) const {
    const PointerRegions::Owners owners = regions_->OwnersOf(data);
    const bool is_likely_before =
        owners.before != PointerRegions::kNobody && owners.before == t_last;
    return groups_[is_likely_before ? owners.before : owners.last].load(
        std::memory_order_acquire);
  }

 private:
  // The group into which the calling thread inserted last, slowly: where two
  // share a region, what it frees is probably there.
  STRATA_INITIAL_EXEC static thread_local constinit std::uint8_t t_last;

  // Numbers of groups; the common one is of no front.
  static constexpr std::size_t kCommon = 1;
  static constexpr std::size_t kGroups = PointerRegions::kMany;

  // The group of the front, or the common one.
  //
  // Errors: std::bad_alloc.
  PointerGroup& GroupFor(Front& front);
  // Hold mutex_.
  PointerGroup& BindOne(Front& front);
  // Asks those where the address may be, until one of them knows it.
  template <class Ask>
  Allocation* AskAll(const void* data, Ask ask) const;
  PointerGroup& Make(std::size_t number);

  const std::shared_ptr<PointerRegions> regions_;
  std::array<std::atomic<PointerGroup*>, kGroups> groups_{};  // by number

  std::mutex mutex_;
  // Those that were made; fronts hold theirs. Guarded by mutex_.
  std::vector<std::shared_ptr<PointerGroup>> made_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
