#ifndef STRATA_PLATFORM_SIM_MEMORY_SLICE_SPACE_H_
#define STRATA_PLATFORM_SIM_MEMORY_SLICE_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// One live allocation: the requested size, and its memory.
struct LiveAllocation {
  std::uint64_t bytes = 0;  // as requested
  FrameShare share;
};

// The addresses of allocations that are slices, and the live allocations at
// them.
//
// Model: addresses rise and start over at the end. A page of addresses is
//   reused only as a whole, after all its slices have been free for
//   kQuarantinedFrees frees. So the cost of a call is the same for ten live
//   slices and for millions.
// Threads: externally synchronised.
// Cost: O(1), plus a binary search among the slices of one page.
class SliceSpace {
 public:
  static constexpr std::size_t kQuarantinedFrees = 4096;
  static constexpr int kMaxPagesTried = 256;

  // `begin` and `bytes` are multiples of kFrameBytes.
  SliceSpace(DevicePtr begin, std::uint64_t bytes);

  bool Contains(DevicePtr ptr) const {
    return ptr >= begin_ && ptr - begin_ < pages_in_all_ * kFrameBytes;
  }
  // Returns an address for the allocation, which consists of slices. Nullopt if
  // none of the next pages is free.
  std::optional<DevicePtr> Add(const LiveAllocation& live);
  // Removes the allocation that starts at `ptr`. Nullopt if there is none.
  std::optional<LiveAllocation> Remove(DevicePtr ptr);
  // True if one live allocation covers [ptr, ptr + bytes).
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const;
  // The live allocation that contains `ptr`, and the offset of `ptr` in it.
  // Nullopt if there is none.
  std::optional<LiveAllocation> Find(DevicePtr ptr,
                                     std::uint64_t* offset) const;

 private:
  // Offsets count slices from the start of the page.
  struct Slice {
    std::uint16_t offset;
    std::uint16_t slices;
    std::uint16_t first_slice;  // of the shared frame
    bool live;
    std::uint32_t shared_frame;
    std::uint32_t bytes;
  };
  struct Page {
    std::vector<Slice> slices;  // by offset; live, or dead and not yet removed
    std::uint32_t live = 0;
    std::uint32_t held = 0;  // live or in quarantine
  };
  using PageIndex = std::uint64_t;

  PageIndex PageOf(DevicePtr ptr) const { return (ptr - begin_) / kFrameBytes; }
  bool MoveToFreePage();
  const Slice* SliceAt(DevicePtr ptr) const;
  static LiveAllocation AllocationOf(const Slice& slice);
  static void DropDead(Page* page);
  void LetGo(PageIndex index);

  const DevicePtr begin_;
  const std::uint64_t pages_in_all_;
  PageIndex current_ = 0;         // the page for new slices
  std::uint32_t next_slice_ = 0;  // the first unused one of current_
  std::unordered_map<PageIndex, Page> pages_;  // those with held > 0
  std::deque<PageIndex> quarantine_;           // of freed slices, oldest first
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_SLICE_SPACE_H_
