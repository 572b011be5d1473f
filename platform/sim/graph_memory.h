#ifndef STRATA_PLATFORM_SIM_GRAPH_MEMORY_H_
#define STRATA_PLATFORM_SIM_GRAPH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/address_lane.h"
#include "strata/platform/sim/device_memory.h"
#include "strata/platform/sim/graph_action.h"
#include "strata/platform/sim/graph_frames.h"
#include "strata/platform/sim/graph_heap.h"
#include "strata/platform/sim/mapped_memory.h"
#include "strata/platform/sim/pool_space.h"
#include "strata/platform/sim/stream_order.h"
#include "strata/platform/sim/stream_set.h"

namespace strata {

// The graphs' memory of device d has the addresses [kGraphWindowBegin +
// d * kGraphWindowBytes, … + kGraphWindowBytes): between those of pools and
// reservations.
inline constexpr DevicePtr kGraphWindowBegin =
    kPoolWindowBegin + kMaxSimDevices * kPoolWindowBytes;
inline constexpr std::uint64_t kGraphWindowBytes = std::uint64_t{1} << 41;
static_assert(kGraphWindowBegin + kMaxSimDevices * kGraphWindowBytes <=
              DevicePtr{3} << 51);

// The device whose window of graphs' memory holds `ptr`, or -1.
int DeviceOfGraphAddress(DevicePtr ptr);

// The memory that nodes of graphs allocate on one device: addresses, which
// belong to the nodes, and frames, which are put behind them when a graph is
// launched.
//
// Model: a chunk of addresses is all in frames or not at all. A launch keeps
// the
//   frames of the one before if nobody else has them who is not ordered before
//   it; else it takes other frames of the graphs', else new ones. So launches
//   that are ordered share frames and those that are not do not. Which frames
//   is decided at the call of the launch; they change when it runs. Frames stay
//   with the graphs until a trim. What a launch allocated and did not free is
//   live until a stream, a call or another graph frees it, also when graphs are
//   gone; its chunk keeps its frames. Addresses go back when the graph, its
//   instances and launches, and what is live are gone.
// Threads: externally synchronised.
// Cost: a launch looks at the frames of all graphs.
// Lifetime: `memory` outlives it.
// Source: cuda_semantics.md P13-P16, D17.
class GraphMemory final : public MappedMemory {
 public:
  GraphMemory(int device, DeviceMemory* memory);

  int device() const { return device_; }

  // Addresses for more allocations of `heap`, at least `bytes` of them and at
  // most what the device has of memory.
  std::optional<GraphHeap::Chunk> Grow(std::uint64_t bytes,
                                       const std::shared_ptr<GraphHeap>& heap,
                                       const StreamOrder& order);
  // Takes back what Grow has given and no launch has used.
  void Shrink(DevicePtr chunk);
  // The heap that has allocated `ptr`, or null: there is none (any more).
  std::shared_ptr<GraphHeap> HeapOf(DevicePtr ptr) const;

  // Whether `ptr` starts what a launch has allocated and nobody has freed.
  bool HasLive(DevicePtr ptr) const { return live_.count(ptr) != 0; }
  // Those that launches of the graph have left, whatever its nodes free now.
  std::vector<DevicePtr> LiveOf(const GraphHeapUse& use) const;
  // It is free from `point` on; work that may use it comes before.
  void FreeLive(DevicePtr ptr, const StreamSnapshot& point);
  std::uint64_t live_count() const { return live_.size(); }
  std::uint64_t live_bytes() const;

  // Frames for a launch in `stream`, still to be bound.
  struct Binding {
    struct Part {
      DevicePtr chunk = 0;
      std::vector<FrameNumber> frames;
    };
    std::vector<Part> parts;
    std::vector<FrameNumber> fresh;  // taken from the device for it
  };
  // Nothing if the device has too few frames; then nothing has changed.
  std::optional<Binding> Plan(const GraphHeapUse& use, const Stream& stream,
                              const StreamOrder& order);
  // Gives back what Plan has taken.
  void Undo(const Binding& binding);
  // How many frames Plan lacks.
  std::uint64_t MissingFrames(const GraphHeapUse& use, const Stream& stream,
                              const StreamOrder& order) const;
  // What the launch has to come after, besides earlier launches of its exec.
  std::vector<StreamSnapshot> UsesOf(const GraphHeapUse& use) const;
  // The launch has been submitted, and is done at `end`.
  void Commit(const GraphHeapUse& use, const Binding& binding,
              const StreamSnapshot& end, const StreamOrder& order);

  // What work does at its turn: binds frames, allocates and frees.
  void Bind(const Binding& binding);
  void Begin(DevicePtr ptr, std::uint64_t bytes, const GraphRights& rights);
  void End(DevicePtr ptr);

  // Gives frames back that no launch under way and nothing live needs.
  void Trim(const StreamOrder& order);
  // In bytes, of whole frames.
  std::uint64_t Attribute(GraphMemAttributeKind kind,
                          const StreamOrder& order) const;
  // Forgets addresses that nothing needs any more.
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
  // Of what is live, whether or not its launch has run.
  std::optional<Access> AccessOnSubmission(DevicePtr ptr, std::uint64_t bytes,
                                           int device) const override;
  std::optional<Place> Locate(DevicePtr ptr) const override;

 private:
  // What is there while work runs.
  struct Present {
    std::uint64_t bytes;
    GraphRights rights;
  };
  struct Chunk {
    std::uint64_t bytes = 0;
    std::weak_ptr<GraphHeap> heap;
    std::vector<FrameNumber> bound;   // by the last launch submitted, or none
    std::vector<FrameNumber> mapped;  // by the last that began, or none
    std::map<DevicePtr, Present> present;
    std::vector<StreamSnapshot> uses;  // what a launch has to come after
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
  // The live allocation that has all of the range, or null.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_GRAPH_MEMORY_H_
