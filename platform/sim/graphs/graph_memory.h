#ifndef STRATA_PLATFORM_SIM_GRAPHS_GRAPH_MEMORY_H_
#define STRATA_PLATFORM_SIM_GRAPHS_GRAPH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graphs/graph_action.h"
#include "strata/platform/sim/graphs/graph_frames.h"
#include "strata/platform/sim/graphs/graph_heap.h"
#include "strata/platform/sim/memory/address_lane.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/mapped_memory.h"
#include "strata/platform/sim/pools/pool_space.h"
#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/sim/streams/stream_set.h"

namespace strata::sim {

// The graphs' memory of device d has the addresses [kGraphWindowBegin + d *
// kGraphWindowBytes, … + kGraphWindowBytes). They are between the addresses of
// pools and of reservations.
inline constexpr DevicePtr kGraphWindowBegin =
    kPoolWindowBegin + kMaxSimDevices * kPoolWindowBytes;
inline constexpr std::uint64_t kGraphWindowBytes = std::uint64_t{1} << 41;
static_assert(kGraphWindowBegin + kMaxSimDevices * kGraphWindowBytes <=
              DevicePtr{3} << 51);
inline constexpr DeviceWindows kGraphWindows{kGraphWindowBegin,
                                             kGraphWindowBytes};

// The device with `ptr` in its window for graph memory, or -1.
inline int DeviceOfGraphAddress(DevicePtr ptr) {
  return kGraphWindows.DeviceOf(ptr);
}

// The memory that nodes of graphs allocate on one device. Addresses belong to
// the nodes. Frames are bound to them when a graph is launched.
//
// Model: either all of a chunk of addresses has frames or none of it.
//   A launch keeps the frames of the previous launch, if every other user of
//   those frames is ordered before it. Otherwise it uses other frames of the
//   graphs, then new ones. So ordered launches share frames, and unordered
//   launches do not.
//   The launch call selects the frames; the binding changes when the launch
//   runs. Frames stay with the graphs until a trim.
//   An allocation that a launch does not free is live until a stream, a call or
//   another graph frees it, even when the graphs are destroyed. Its chunk keeps
//   its frames.
//   Addresses are released when the graph, its instances, its launches and its
//   live allocations have ended.
// Threads: externally synchronised.
// Cost: a launch visits the frames of all graphs.
// Lifetime: `memory` outlives it.
// Source: cuda_semantics.md P13-P16, D17.
class GraphMemory final : public MappedMemory {
 public:
  GraphMemory(int device, DeviceMemory* memory);

  int device() const { return device_; }

  // Allocates addresses for more allocations of `heap`: at least `bytes`, and
  // at most the size of the device's memory.
  std::optional<GraphHeap::Chunk> Grow(std::uint64_t bytes,
                                       const std::shared_ptr<GraphHeap>& heap,
                                       const StreamOrder& order);
  // Releases a chunk from Grow that no launch has used.
  void Shrink(DevicePtr chunk);
  // The heap that allocated `ptr`; null if there is none.
  std::shared_ptr<GraphHeap> HeapOf(DevicePtr ptr) const;

  // True if `ptr` starts a live allocation of a launch.
  bool HasLive(DevicePtr ptr) const { return live_.count(ptr) != 0; }
  // The live allocations of the graph's launches, even if its nodes free them
  // now.
  std::vector<DevicePtr> LiveOf(const GraphHeapUse& use) const;
  // The allocation is free from `point` on. Work that may use it comes before.
  void FreeLive(DevicePtr ptr, const StreamSnapshot& point);
  std::uint64_t live_count() const { return live_.size(); }
  std::uint64_t live_bytes() const;

  // Frames for a launch in `stream`, not yet bound.
  struct Binding {
    struct Part {
      DevicePtr chunk = 0;
      std::vector<FrameNumber> frames;
    };
    std::vector<Part> parts;
    std::vector<FrameNumber> fresh;  // allocated for this launch
  };
  // Returns nullopt and changes nothing if the device has too few frames.
  std::optional<Binding> Plan(const GraphHeapUse& use, const Stream& stream,
                              const StreamOrder& order);
  // Frees the frames that Plan allocated.
  void Undo(const Binding& binding);
  // Number of frames that Plan lacks.
  std::uint64_t MissingFrames(const GraphHeapUse& use, const Stream& stream,
                              const StreamOrder& order) const;
  // The work that the launch has to come after, besides earlier launches of its
  // exec.
  std::vector<StreamSnapshot> UsesOf(const GraphHeapUse& use) const;
  // The launch has been submitted. It is complete at `end`.
  void Commit(const GraphHeapUse& use, const Binding& binding,
              const StreamSnapshot& end, const StreamOrder& order);

  // The effects of work when it runs: binds frames, allocates and frees.
  void Bind(const Binding& binding);
  void Begin(DevicePtr ptr, std::uint64_t bytes, const GraphRights& rights);
  void End(DevicePtr ptr);

  // Frees the frames that no running launch and no live allocation needs.
  void Trim(const StreamOrder& order);
  // In bytes of whole frames.
  std::uint64_t Attribute(GraphMemAttributeKind kind,
                          const StreamOrder& order) const;
  // Releases addresses that nothing needs any more.
  void Sweep(const StreamOrder& order);

  bool Contains(DevicePtr ptr) const override {
    return DeviceOfGraphAddress(ptr) == device_;
  }
  bool IsLive(DevicePtr ptr, std::uint64_t bytes) const override {
    return LiveAt(ptr, bytes) != nullptr;
  }
  bool IsPromised(DevicePtr ptr, std::uint64_t bytes) const override;
  std::optional<Access> AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                 int device) const override;
  // For live allocations, even if their launch has not run yet.
  std::optional<Access> AccessOnSubmission(DevicePtr ptr, std::uint64_t bytes,
                                           int device) const override;
  std::optional<Place> Locate(DevicePtr ptr) const override;

 private:
  // An allocation that exists while work runs.
  struct Present {
    std::uint64_t bytes;
    GraphRights rights;
  };
  struct Chunk {
    std::uint64_t bytes = 0;
    std::weak_ptr<GraphHeap> heap;
    std::vector<FrameNumber> bound;   // by the last submitted launch, if any
    std::vector<FrameNumber> mapped;  // by the last launch that began, if any
    std::map<DevicePtr, Present> present;
    std::vector<StreamSnapshot> uses;  // work that a launch comes after
    std::uint64_t live = 0;            // allocations
  };
  struct Live {
    std::uint64_t bytes;
    DevicePtr chunk;
    GraphRights rights;
  };
  using Chunks = std::map<DevicePtr, Chunk>;

  Chunks::iterator Forget(Chunks::iterator chunk);
  Chunks::const_iterator ChunkAt(DevicePtr ptr) const;
  // The live allocation that contains the whole range, or null.
  const Live* LiveAt(DevicePtr ptr, std::uint64_t bytes) const;
  Binding Reuse(const GraphHeapUse& use, const Stream& stream,
                const StreamOrder& order) const;
  static std::uint64_t Missing(const Binding& binding);
  static bool IsDone(const Chunk& chunk, const StreamOrder& order);
  std::uint64_t UsedFrames(const StreamOrder& order) const;
  template <class Visit>
  static void VisitRuns(const Chunk& chunk, std::uint64_t offset,
                        std::uint64_t bytes, Visit visit);

  const int device_;
  DeviceMemory* const memory_;
  AddressLane lane_;
  GraphFrames frames_;
  Chunks chunks_;                   // by address
  std::map<DevicePtr, Live> live_;  // by address
  std::uint64_t used_high_ = 0;     // frames
  std::uint64_t reserved_high_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_GRAPH_MEMORY_H_
