#ifndef STRATA_FACADE_GRAPHS_GRAPH_POOL_H_
#define STRATA_FACADE_GRAPHS_GRAPH_POOL_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/decorators/capture_order_allocator.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/graph_pool_id.h"
#include "strata/facade/place_state.h"
#include "strata/platform/device.h"
#include "strata/platform/place.h"
#include "strata/strategy/registry.h"

namespace strata {

// Memory for the graphs of one or more captures: memory allocated inside them,
// and outside memory that they may refer to.
//
// Model: per place, a ChunkPool above the place's pool counts the bytes and
//   enforces the limit. A strategy per stream on it never releases a chunk:
//   auto_growth, or virtual_memory where that serves the place.
//   A freed block serves only later requests of this pool, of this capture or
//   of the next. The memory returns to the place when the pool ends, after a
//   wait for the device. If the wait fails, the pool remains until it succeeds,
//   but not longer than its facade. Live blocks then keep their chunks alive;
//   the place releases the idle memory beside them to the system.
//   Captures that share a pool run one after another, and so must the launches
//   of their graphs (cuda_semantics.md K6).
// Threads: any thread.
// Lifetime: shared by its users, by captures that are under way, and by graphs,
//   through their user objects. The last owner ends the pool. Chains with live
//   allocations last until those are freed.
// Source: DESIGN §5; cuda_semantics.md C25-C33, K1-K9; pytorch.md §2.8;
//   paddle.md §3.8.
class GraphPool final : public CaptureHold, private CaptureGate::Postponable {
 public:
  // The pool ends with its last owner. If captures are under way then, it ends
  // after them.
  static std::shared_ptr<GraphPool> Make(
      GraphPoolId id, std::shared_ptr<TimelineTable> timelines);

  GraphPoolId id() const { return id_; }

  // The chain of `stream` at the place of `state`. Makes no device call.
  //
  // Errors: std::bad_alloc.
  Front& FrontOf(const std::shared_ptr<PlaceState>& state,
                 const Stream& stream);
  // All streams of the capture have joined, or it failed.
  void CaptureEnded() noexcept;
  // All users have removed the pool. Counts it in `count` until it ends.
  void CountAsUnused(
      const std::shared_ptr<std::atomic<std::size_t>>& count) noexcept {
    unused_ = count;
    ++*count;
  }

  std::uint64_t order() const noexcept override { return order_; }
  void Hold(std::shared_ptr<Allocator> layer,
            Allocation* allocation) noexcept override;

  std::size_t reserved_bytes() const;

 private:
  class PoolStream;  // the stream of a chain of the pool
  struct AtPlace {
    std::shared_ptr<PlaceState> state;
    std::shared_ptr<Reclaimer> reclaimer;
    std::shared_ptr<ChunkPool> pool;
    std::unique_ptr<StrategySource> strategy;
    std::map<std::uint64_t, Front*> fronts;  // by uid; null: not built
  };
  // A freed allocation that graphs may still use; ReleaseHeld() frees it.
  struct Held {
    std::shared_ptr<Allocator> layer;
    Allocation* allocation = nullptr;
  };

  GraphPool(GraphPoolId id, std::shared_ptr<TimelineTable> timelines);
  ~GraphPool() override;

  void End() noexcept override;
  // Waits on every device with memory here. False if a wait fails.
  bool AwaitLaunches() noexcept;
  AtPlace& PlaceOf(const std::shared_ptr<PlaceState>& state);
  void ReleaseHeld() noexcept;
  // Called at the end, when no other thread can change the state.
  bool HasMemoryOf(const Device& device) const noexcept;

  const GraphPoolId id_;
  const std::uint64_t order_;
  const std::shared_ptr<TimelineTable> timelines_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::map<PlaceState*, std::unique_ptr<AtPlace>> places_;
  std::vector<std::weak_ptr<CaptureOrderAllocator>> orders_;
  std::list<Held> held_;
  // Null until all users have removed the pool; then the count of such pools.
  std::shared_ptr<std::atomic<std::size_t>> unused_;
  // Used at the end, by one thread at a time:
  bool complained_ = false;  // the log says that the pool cannot end yet
};

}  // namespace strata

#endif  // STRATA_FACADE_GRAPHS_GRAPH_POOL_H_
