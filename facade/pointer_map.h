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
// Model: each front of the facade has a group. The front's hits insert, and its
//   frees find, their pointers under the lock of its chain, which they acquire
//   anyway (Front::StartKnown, StartFree). So threads on separate streams never
//   contend here. The region of an address says which groups may know it. An
//   address whose region changed streams is searched in the most likely group
//   first. When a front ends, its group serves the next front. There are 253
//   groups; further fronts share a common one, which is bound to no front.
// Errors: an address that is inserted twice fails the process.
// Threads: any thread. An address is in the map before its caller knows it, and
//   until it is taken out. Only one caller can take it out.
// Cost: a PointerGroup operation, and two loads. A heap call for the first
//   pointer of a front, and where its group makes one. 130 KiB.
class PointerMap {
 public:
  PointerMap();
  PointerMap(const PointerMap&) = delete;
  PointerMap& operator=(const PointerMap&) = delete;
  // Frees all remaining allocations.
  ~PointerMap();

  // `allocation` belongs to a front and has an address.
  //
  // Errors: std::bad_alloc; then it is freed.
  void Insert(AllocationPtr allocation);
  // Null if the address is unknown. The result is valid until another thread
  // takes it out; the caller prevents that.
  Allocation* Find(const void* data) const;
  // Null if the address is unknown or null.
  AllocationPtr Take(const void* data) noexcept;
  // Frees all allocations of the map; returns their number.
  std::size_t Clear() noexcept;

  const PointerRegions& regions() const { return *regions_; }
  // The most likely group of an address, if it is in the map; null if nothing
  // was ever inserted in its region.
  PointerGroup* GroupOf(const void* data) const {
    const PointerRegions::Owners owners = regions_->OwnersOf(data);
    const bool is_likely_before =
        owners.before != PointerRegions::kNobody && owners.before == t_last;
    return groups_[is_likely_before ? owners.before : owners.last].load(
        std::memory_order_acquire);
  }

 private:
  // The group into which the calling thread last inserted outside the hit path.
  // Where two groups share a region, the thread's next free is probably there.
  STRATA_INITIAL_EXEC static thread_local constinit std::uint8_t t_last;

  // Numbers of groups; the common group belongs to no front.
  static constexpr std::size_t kCommon = 1;
  static constexpr std::size_t kGroups = PointerRegions::kMany;

  // The group of the front, or the common one.
  //
  // Errors: std::bad_alloc.
  PointerGroup& GroupFor(Front& front);
  // Hold mutex_.
  PointerGroup& BindOne(Front& front);
  // Calls `ask` for the groups that may know the address, until one of them
  // does.
  template <class Ask>
  Allocation* AskAll(const void* data, Ask ask) const;
  PointerGroup& Make(std::size_t number);

  const std::shared_ptr<PointerRegions> regions_;
  // indexed by number
  std::array<std::atomic<PointerGroup*>, kGroups> groups_{};

  std::mutex mutex_;
  // All groups that were created; fronts share theirs. Guarded by mutex_.
  std::vector<std::shared_ptr<PointerGroup>> made_;
};

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_MAP_H_
