#ifndef STRATA_PLATFORM_SIM_SLICE_SPACE_H_
#define STRATA_PLATFORM_SIM_SLICE_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/frame_table.h"

namespace strata {

// One live allocation: what was asked for, and the memory it has.
struct LiveAllocation {
  std::uint64_t bytes = 0;  // as requested
  FrameShare share;
};

// The addresses of allocations that are slices, and which of them are live.
//
// Model: addresses rise and start over at the end. A page of addresses is used
//   again when all its slices have been free for kQuarantinedFrees frees, and
//   never in part: addresses are plenty. This keeps the cost of a call the same
//   for ten live slices and for millions.
// Threads: externally synchronised.
// Cost: O(1) but for a binary search among the slices of one page.
class SliceSpace {
 public:
  static constexpr std::size_t kQuarantinedFrees = 4096;
  static constexpr int kMaxPagesTried = 256;

  // `begin` and `bytes` are multiples of kFrameBytes.
  SliceSpace(DevicePtr begin, std::uint64_t bytes);

  bool Contains(DevicePtr ptr) const {
    return ptr >= begin_ && ptr - begin_ < pages_in_all_ * kFrameBytes;
  }
  // An address for the live allocation, which is made of slices; nothing if
  // none of the next pages is free.
  std::optional<DevicePtr> Add(const LiveAllocation& live);
  // Takes the allocation that starts at `ptr` out; nothing if there is none.
  std::optional<LiveAllocation> Remove(DevicePtr ptr);
  // Whether one live allocation covers [ptr, ptr + bytes).
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const;
  // The live allocation that `ptr` lies in, and where in it; nothing if there
  // is none.
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
    std::vector<Slice> slices;  // by offset; live, or to be dropped
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
  PageIndex current_ = 0;         // where new slices go
  std::uint32_t next_slice_ = 0;  // the first unused one of current_
  std::unordered_map<PageIndex, Page> pages_;  // those with held > 0
  std::deque<PageIndex> quarantine_;           // of freed slices, oldest first
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SLICE_SPACE_H_
