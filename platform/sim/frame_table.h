#ifndef STRATA_PLATFORM_SIM_FRAME_TABLE_H_
#define STRATA_PLATFORM_SIM_FRAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace strata {

// Physical memory is handed out in frames of this size (cuda_semantics.md D5).
inline constexpr std::uint64_t kFrameBytes = std::uint64_t{2} << 20;
// Requests of at least this size have frames of their own.
inline constexpr std::uint64_t kOwnFramesBytes = std::uint64_t{1} << 20;
// Smaller requests take slices of shared frames: the alignment that MemAlloc
// shows on hardware (cuda_semantics.md H2).
inline constexpr std::uint64_t kSliceBytes = 512;

// Consecutive free slices of a shared frame.
struct SliceRun {
  std::uint16_t begin;
  std::uint16_t count;
};

// The slices of one shared frame: which are free.
class SharedFrame {
 public:
  static constexpr std::uint16_t kSlices = kFrameBytes / kSliceBytes;

  SharedFrame();

  // The length of the longest run of free slices.
  std::uint16_t longest() const { return longest_; }
  // Takes the lowest run that is long enough; `count` is at most longest().
  std::uint16_t Take(std::uint16_t count);
  void Give(std::uint16_t begin, std::uint16_t count);

 private:
  std::vector<SliceRun> free_;  // by address, no two adjacent
  std::uint16_t longest_ = kSlices;
};

// Which frame and slices an allocation has; `frames` counts its own frames.
struct FrameShare {
  std::uint64_t frames = 0;  // 0: slices of a shared frame
  std::uint32_t shared_frame = 0;
  std::uint16_t first_slice = 0;
  std::uint16_t slices = 0;
};

// The physical memory of one device.
//
// Model: a large request takes any free frames, as the driver can map them next
//   to each other. A small one takes the first fit in the lowest shared frame
//   that can hold it, else makes a free frame a shared one; an empty shared
//   frame is free again. A request fails exactly when no frames are left for
//   it.
// Threads: externally synchronised.
// Cost: O(log shared frames), plus a frame's runs of free slices.
class FrameTable {
 public:
  explicit FrameTable(std::uint64_t frames);

  std::uint64_t frames() const { return frames_; }
  std::uint64_t free_frames() const { return free_frames_; }

  // Memory for `bytes` > 0, or nothing.
  std::optional<FrameShare> Take(std::uint64_t bytes);
  // Undoes a Take.
  void Give(const FrameShare& share);

 private:
  std::optional<std::uint32_t> LowestWith(std::uint16_t slices) const;
  std::optional<std::uint32_t> NewSharedFrame();
  void SetLongest(std::uint32_t index, std::uint16_t longest);
  void Grow();

  const std::uint64_t frames_;
  std::uint64_t free_frames_;
  std::vector<SharedFrame> shared_;
  std::set<std::uint32_t> unused_;  // entries of shared_ that are no frame now
  // A binary tree of maxima over longest() of shared_, 0 for unused entries;
  // the leaves start at leaves_.
  std::vector<std::uint16_t> tree_;
  std::uint32_t leaves_ = 1;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FRAME_TABLE_H_
