#ifndef STRATA_FACADE_GRAPH_POOL_H_
#define STRATA_FACADE_GRAPH_POOL_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/capture_order_allocator.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/reclaimer.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/facade/front.h"
#include "strata/facade/graph_pool_id.h"
#include "strata/facade/key_table.h"
#include "strata/facade/place_state.h"
#include "strata/platform/device.h"
#include "strata/platform/place.h"
#include "strata/strategy/registry.h"

namespace strata {

// The stream of a graph pool's chain. While captures are under way it is left
// alone; memory goes back to the system only after the device was waited for,
// as launches may have used it on any stream.
class GraphPoolStream final : public ChainStream {
 public:
  GraphPoolStream(Device& device, const Stream& stream,
                  std::shared_ptr<TimelineTable> timelines)
      : ChainStream(device, stream), timelines_(std::move(timelines)) {}

  Status Synchronize() noexcept override;
  bool IsDone() noexcept override { return false; }

 private:
  const std::shared_ptr<TimelineTable> timelines_;
};

// Memory for the graphs of one or more captures: what is allocated inside them,
// and what was allocated outside and they may have baked in.
//
// Model: per place a ChunkPool of its own above the place's, which counts the
//   bytes and enforces the limit; on it a strategy per stream that never gives
//   a chunk back: auto_growth, or virtual_memory where that serves the place.
//   What is freed here serves this pool's later requests only, of this capture
//   or of the next, and goes back to the place with the pool, once the device
//   was waited for: if it cannot be, the pool stays until it can, but no longer
//   than its facade. Blocks that are live then keep their chunks; the place
//   gives what is idle beside them to the system. Captures that share a pool
//   come one after another, and so must the launches of their graphs
//   (cuda_semantics.md K6).
// Threads: any thread.
// Lifetime: shared by who prepared it, by captures that are under way and by
//   graphs, through their user objects; the last one ends it. Chains with live
//   allocations last until those are freed.
// Source: DESIGN §5; cuda_semantics.md C25-C33, K1-K9; pytorch.md §2.8;
//   paddle.md §3.8.
class GraphPool final : public CaptureHold, private Postponable {
 public:
  // Its last owner ends it, or the end of the captures under way then.
  static std::shared_ptr<GraphPool> Make(
      GraphPoolId id, std::shared_ptr<TimelineTable> timelines);

  GraphPoolId id() const { return id_; }

  // The chain of `stream` at the place of `state`. No device call.
  //
  // Errors: std::bad_alloc.
  Front& FrontOf(const std::shared_ptr<PlaceState>& state,
                 const Stream& stream);
  // All streams of the capture have joined, or it failed.
  void CaptureEnded() noexcept;
  // Everybody has removed it: it is one of `count` until it ends. Called once.
  void CountAsUnused(
      const std::shared_ptr<std::atomic<std::size_t>>& count) noexcept {
    unused_ = count;
    ++*count;
  }

  std::uint64_t order() const noexcept override { return order_; }
  void Keep(std::shared_ptr<Allocator> layer,
            Allocation* allocation) noexcept override;

  // Bytes held from the system for this pool, at all places.
  std::size_t reserved_bytes() const;

 private:
  // What a pool has at one place.
  struct AtPlace {
    std::shared_ptr<PlaceState> state;
    std::shared_ptr<Reclaimer> reclaimer;
    std::shared_ptr<ChunkPool> pool;
    std::unique_ptr<StrategySource> strategy;
    KeyTable<Front> fronts;
  };
  struct Kept {
    std::shared_ptr<Allocator> layer;
    Allocation* allocation = nullptr;
    std::unique_ptr<Kept> next;
  };

  GraphPool(GraphPoolId id, std::shared_ptr<TimelineTable> timelines);
  ~GraphPool() override;

  void End() noexcept override;
  // For launches, of every device with memory here. False if one cannot be
  // waited for.
  bool AwaitLaunches() noexcept;
  AtPlace& PlaceOf(const std::shared_ptr<PlaceState>& state);
  void GiveKept() noexcept;
  // Asked at the end, when nobody else can change what it looks at.
  bool HasMemoryOf(const Device& device) const noexcept;

  const GraphPoolId id_;
  const std::uint64_t order_;
  const std::shared_ptr<TimelineTable> timelines_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::map<PlaceState*, std::unique_ptr<AtPlace>> places_;
  std::vector<std::weak_ptr<CaptureOrderAllocator>> orders_;
  std::unique_ptr<Kept> kept_;
  // Null until everybody has removed it; then a count of such pools.
  std::shared_ptr<std::atomic<std::size_t>> unused_;
  // At the end, by one thread at a time:
  bool complained_ = false;  // it was logged that it has to stay
};

}  // namespace strata

#endif  // STRATA_FACADE_GRAPH_POOL_H_
