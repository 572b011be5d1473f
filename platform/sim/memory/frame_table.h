#ifndef STRATA_PLATFORM_SIM_MEMORY_FRAME_TABLE_H_
#define STRATA_PLATFORM_SIM_MEMORY_FRAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "strata/platform/sim/memory/recycled_map.h"

namespace strata::sim {

// Size of a frame, the unit of physical memory (cuda_semantics.md D5).
inline constexpr std::uint64_t kFrameBytes = std::uint64_t{2} << 20;
// Number of frames that `bytes` need. The sum in AlignUp could overflow.
constexpr std::uint64_t FramesFor(std::uint64_t bytes) {
  return bytes / kFrameBytes + (bytes % kFrameBytes != 0 ? 1 : 0);
}

// Requests of at least this size use whole frames.
inline constexpr std::uint64_t kOwnFramesBytes = std::uint64_t{1} << 20;
// Smaller requests use slices of shared frames. The size is the alignment that
// MemAlloc shows on hardware (cuda_semantics.md H2).
inline constexpr std::uint64_t kSliceBytes = 512;

// Consecutive free slices of a shared frame.
struct SliceRun {
  std::uint16_t begin;
  std::uint16_t count;
};

// The free slices of one shared frame.
class SharedFrame {
 public:
  static constexpr std::uint16_t kSlices = kFrameBytes / kSliceBytes;

  SharedFrame();

  // Slices in the longest free run.
  std::uint16_t longest() const { return longest_; }
  // Allocates from the lowest free run that is long enough. `count` is at most
  // longest().
  std::uint16_t Take(std::uint16_t count);
  void Give(std::uint16_t begin, std::uint16_t count);

 private:
  std::vector<SliceRun> free_;  // by address, no two adjacent
  std::uint16_t longest_ = kSlices;
};

// Consecutive frames of an allocation.
struct FrameExtent {
  std::uint64_t first = 0;  // the number of the first frame
  std::uint64_t count = 0;
  std::uint64_t before = 0;  // frames in the allocation's earlier extents
};

// The frames or slices of an allocation.
struct FrameShare {
  std::uint64_t frames = 0;        // whole frames; 0: slices of a shared frame
  std::uint32_t shared_frame = 0;  // an index, not the number of the frame
  std::uint16_t first_slice = 0;
  std::uint16_t slices = 0;
  std::vector<FrameExtent> extents;  // of whole frames
};

// Contiguous physical bytes.
struct PhysicalRun {
  std::uint64_t offset = 0;  // from the start of the device's memory
  std::uint64_t bytes = 0;
};

// The physical memory of one device.
//
// Model: a large request uses the lowest free frames. The frames need not be
//   contiguous, because the driver can map any frames side by side. A small
//   request uses the first fit in the shared frame of the lowest index that has
//   room; otherwise a free frame becomes a shared one. An empty shared frame
//   becomes free again. A request fails exactly when not enough free frames are
//   left.
// Threads: externally synchronised.
// Cost: O(log frames), plus the extents of a large request, or the free runs of
//   a frame.
class FrameTable {
 public:
  explicit FrameTable(std::uint64_t frames);

  std::uint64_t frames() const { return frames_; }
  std::uint64_t free_frames() const { return free_frames_; }

  // Allocates `bytes` > 0; nullopt if there is not enough memory.
  std::optional<FrameShare> Take(std::uint64_t bytes);
  // Frees the memory of a Take.
  void Give(const FrameShare& share);

  // The contiguous bytes of the share from `offset` on. `offset` is below the
  // share's size.
  PhysicalRun Locate(const FrameShare& share, std::uint64_t offset) const;
  // The number of the frame that is now the shared frame of this index.
  std::uint64_t SharedFrameNumber(std::uint32_t index) const {
    return shared_numbers_[index];
  }

 private:
  std::vector<FrameExtent> TakeFrames(std::uint64_t count);
  void GiveFrames(std::uint64_t first, std::uint64_t count);
  std::optional<std::uint32_t> LowestWith(std::uint16_t slices) const;
  std::optional<std::uint32_t> NewSharedFrame();
  void SetLongest(std::uint32_t index, std::uint16_t longest);
  void Grow();

  const std::uint64_t frames_;
  std::uint64_t free_frames_;
  FreeRanges free_;  // of frame numbers
  std::vector<SharedFrame> shared_;
  std::vector<std::uint64_t> shared_numbers_;  // of the frames in shared_
  std::set<std::uint32_t> unused_;  // entries of shared_ without a frame
  // A binary tree of maxima over longest() of shared_, 0 for unused entries;
  // the leaves start at leaves_.
  std::vector<std::uint16_t> tree_;
  std::uint32_t leaves_ = 1;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_FRAME_TABLE_H_
