#ifndef STRATA_PLATFORM_SIM_GRAPHS_GRAPH_FRAMES_H_
#define STRATA_PLATFORM_SIM_GRAPHS_GRAPH_FRAMES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// The number of a frame of the device.
using FrameNumber = std::uint64_t;
inline constexpr FrameNumber kNoFrame = ~FrameNumber{0};

// The frames shared by the graphs of one device.
//
// Model: a frame may serve many chunks of addresses, one after the other. It is
//   usable for a chunk if no other chunk pins it, and if all uses by other
//   chunks are complete or ordered before the stream.
// Threads: externally synchronised.
// Lifetime: `memory` outlives it.
class GraphFrames {
 public:
  explicit GraphFrames(DeviceMemory* memory) : memory_(memory) {}

  // Allocates new frames; nullopt if the device has too few.
  std::optional<std::vector<FrameNumber>> Take(std::uint64_t count);
  void Give(FrameNumber frame);

  // All frames of the graphs, by number.
  std::vector<FrameNumber> All() const;
  std::uint64_t size() const { return frames_.size(); }
  bool IsUsable(FrameNumber frame, DevicePtr chunk, const Stream& stream,
                const StreamOrder& order) const;
  // `chunk` uses the frame until `point`. The frame is usable for the chunk, so
  // all earlier uses come before.
  void SetUse(FrameNumber frame, DevicePtr chunk, const StreamPoint& point) {
    frames_.at(frame).uses = {{chunk, point}};
  }
  // Adds a use of the frame by `chunk` until `point`.
  void AddUse(FrameNumber frame, DevicePtr chunk, const StreamPoint& point) {
    frames_.at(frame).uses.push_back({chunk, point});
  }
  // Only `chunk` may use the frame until it is unpinned.
  void Pin(FrameNumber frame, DevicePtr chunk) {
    frames_.at(frame).pinned_by = chunk;
  }
  void Unpin(FrameNumber frame) { frames_.at(frame).pinned_by = 0; }
  // True if nothing needs the frame any more.
  bool IsIdle(FrameNumber frame, const StreamOrder& order) const;

 private:
  struct Use {
    DevicePtr chunk;
    StreamPoint point;
  };
  struct Frame {
    DevicePtr pinned_by = 0;  // a chunk, or 0
    std::vector<Use> uses;
  };

  DeviceMemory* const memory_;
  std::map<FrameNumber, Frame> frames_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_GRAPH_FRAMES_H_
