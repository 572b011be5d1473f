#ifndef STRATA_FACADE_PLACE_STATE_H_
#define STRATA_FACADE_PLACE_STATE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/allocation/allocation_log.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/debug_fill.h"
#include "strata/allocation/events_allocator.h"
#include "strata/allocation/guard_error.h"
#include "strata/allocation/limit_allocator.h"
#include "strata/allocation/reclaimer.h"
#include "strata/allocation/stat_allocator.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/allocation/trace_allocator.h"
#include "strata/facade/front_table.h"
#include "strata/facade/host_strategy.h"
#include "strata/facade/idle_neighbour.h"
#include "strata/facade/key_table.h"
#include "strata/facade/options.h"
#include "strata/facade/out_of_memory_callback.h"
#include "strata/platform/clock.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/platform.h"
#include "strata/strategy/registry.h"

namespace strata {

class CaptureHold;
class Front;
class GraphPools;
class ThreadEnds;

// What all chains of one place share, and the list of those chains.
//
// Threads: any thread.
// Lifetime: shared by the facade and by every front, so it outlives the last
//   allocation.
class PlaceState : public std::enable_shared_from_this<PlaceState>,
                   private PlaceUsage {
 public:
  // `shared` is what the chains of all places share; `fronts`, where they are
  // found, if null, this place's own; `thread_ends` hears of per-thread streams
  // that get a chain, if it is not null. Makes no device call.
  //
  // Errors: std::invalid_argument if the platform has no such memory.
  PlaceState(Place place, std::shared_ptr<Platform> platform,
             const Options& options, const ChainContext& shared,
             std::shared_ptr<GraphPools> graph_pools = nullptr,
             std::shared_ptr<FrontTable> fronts = nullptr,
             std::shared_ptr<ThreadEnds> thread_ends = nullptr);
  ~PlaceState() override;

  Place place() const { return place_; }
  // Null for host memory.
  Device* device() const { return device_; }
  const std::shared_ptr<Platform>& platform() const { return platform_; }
  const std::shared_ptr<ChunkPool>& pool() const { return pool_; }
  const std::shared_ptr<Reclaimer>& reclaimer() const { return reclaimer_; }
  const PlaceMeter& meter() const { return *context_.meter; }
  PlaceMeter& meter() { return *context_.meter; }
  const DebugFill* debug_fill() const { return fill_.get(); }
  // Null without strata_guard.
  GuardReporter* guard_reporter() const {
    return context_.guard_reporter.get();
  }
  AllocationLog* allocation_log() const {
    return context_.allocation_log.get();
  }

  // The strategy of the chains at this place.
  const std::string& strategy_name() const { return strategy_name_.name; }
  // What the chains of a graph pool at this place are built with.
  const StrategyOptions& strategy_options() const { return settings_; }
  const DecoratorOptions& decorator_options() const {
    return options_.decorators;
  }
  // For frees while captures are announced.
  void MakeRoomForFrees() noexcept { context_.frees->MakeRoom(); }
  CaptureGate& gate() const { return context_.timelines->gate(); }

  // Whether work on the memory is ordered by streams: requests name one.
  bool has_streams() const {
    return place_.kind == PlaceKind::kDevice ||
           place_.kind == PlaceKind::kManaged;
  }

  // The front of `stream`, made on its first use, which may ask streams that
  // are gone whether they are done.
  Front& FrontOf(const Stream& stream) {
    // Memory without streams has one chain, under the key of the legacy stream.
    const std::uint64_t uid = has_streams() ? stream.uid : kLegacyStreamUid;
    Front* front = by_uid_->Find(place_, uid);
    return front != nullptr ? *front : FindOrMake(stream, uid);
  }
  // The front by the driver's handle; null if Remember was not called for it.
  Front* FindByHandle(std::uintptr_t handle) const {
    return by_handle_.Find(handle);
  }
  void Remember(std::uintptr_t handle, Front& front) {
    by_handle_.Insert(handle, &front);
  }
  // Has TellOfEnd of `stream` visit the front.
  void HeedEnd(Front& front, Stream stream) noexcept;
  // Tells the layers that know the stream of its end: those of its own chains,
  // and of chains with memory that it is marked with.
  //
  // Errors: std::bad_alloc. Cost: visits no other front.
  void TellOfEnd(Stream stream);
  // Takes the stream's front out of the tables; null if it has none. Whoever
  // does drops it.
  Front* TakeOut(Stream stream);
  // Drops the stream's front, if it has one: the stream is about to go, and
  // its timeline has ended. Work in it may be running. Waits for nothing.
  void Retire(Stream stream) noexcept;
  // Lets go of every front and callback: the facade goes away.
  void Close() noexcept;
  // A chain has ended: once closed, nobody asks for what it left in the pool.
  void ReleaseIfClosed() noexcept;

  // A front of a graph pool: `strategy` under the layers that the options ask
  // for. It counts for this place, but only its pool finds it.
  //
  // Errors: std::bad_alloc.
  Front* AddGraphFront(const std::shared_ptr<ChainStream>& stream,
                       std::shared_ptr<Allocator> strategy,
                       const DecoratorOptions& decorators,
                       std::shared_ptr<Reclaimer> reclaimer,
                       const CaptureHold& pool);
  // Serves the request from the pool of the capture that the stream of `front`
  // takes part in, if `is_captured`.
  Allocation* TryAllocateCaptured(const Front& front, const Request& request,
                                  Failure& failure, bool* is_captured) noexcept;

  // The front of requests that name no stream.
  Front& DefaultFront() const {
    return *default_front_.load(std::memory_order_acquire);
  }
  // Errors: std::logic_error if it was set or used before.
  void SetDefault(Stream stream);

  // Errors: std::invalid_argument if the callback is empty.
  OutOfMemoryCallback AddCallback(OutOfMemoryFunction callback, int priority);

  // Adds a visitor of the pool's chunks, of which there are none so far; at a
  // host place the first may change the strategy. No other call may be in
  // flight.
  //
  // Errors: std::logic_error if there was a chunk; std::invalid_argument as
  //   StrategyOfHost.
  void AddVisitor(ChunkPool::Visitor visitor);

  // `front` and its last allocation are gone; its totals stay.
  void Finish(Front& front, const Stats& totals);
  // Calls `visit` with every front, orphans too, with no lock held; a front
  // lives at least until its visit is over.
  void ForEachFront(FunctionRef<void(Front&)> visit) const;
  // Visits every layer of every chain once, and what is left of chains that are
  // gone; what comes and goes meanwhile may be missed.
  void AcceptAll(AllocatorVisitor& visitor) const;

  // Sets the bytes in use and cached at this place, unless the host is out of
  // memory.
  void Explain(Failure& failure) const noexcept;
  // The numbers of every front there is or was, added up.
  Stats SumOfFronts() const;
  // What their strategies know: hits and misses, splits and joins, of those
  // that are gone, too, and what is free.
  Stats SumOfStrategies() const;
  // The largest peak in use of any one of them.
  std::uint64_t LargestPeak() const;
  void ResetPeak();

 private:
  // The sum if what is in use is counted exactly.
  std::optional<Stats> ExactSum() const noexcept;
  std::size_t LiveBytes() const noexcept override;
  std::optional<std::uint64_t> CountIfUnused() const noexcept override;
  void SettleFrees() const override;

  // Ends a visit to a front.
  struct Unpinner {
    void operator()(Front* front) const noexcept;
  };
  using PinnedFront = std::unique_ptr<Front, Unpinner>;

  // What serves this place, with or without visitors.
  HostStrategy StrategyNow(bool has_visitors) const;
  bool IsNumaNode() const;
  std::shared_ptr<Allocator> MakeSystemAllocator(
      const std::string& strategy) const;
  // The pool and the strategy, before any chain is built on them.
  void BuildPool(const HostStrategy& strategy);
  // Hold list_mutex_.
  std::vector<PinnedFront> PinAll() const;
  void List(Front* front) noexcept;  // has room for it
  void MakeRoomInList();
  // With heeds_mutex_ held. Errors: std::bad_alloc.
  void Heed(Front& front, std::uint64_t uid);
  void ForgetHeeds(Front& front) noexcept;
  Front* MakeFront(const Stream& stream);
  // Has the end of the calling thread noticed if the stream is its own.
  void WatchIfOwn(const Stream& stream) const;
  Front& FindOrMake(const Stream& stream, std::uint64_t uid);
  std::shared_ptr<Allocator> BuildChain(
      const std::shared_ptr<ChainStream>& stream) const;

  const Place place_;
  const std::shared_ptr<Platform> platform_;
  Device* const device_;
  const Options options_;
  std::shared_ptr<Reclaimer> reclaimer_;
  const std::shared_ptr<GraphPools> graph_pools_;  // of the facade, or null
  std::array<Reclaimer::Registration, 2> graph_registrations_;
  const StrategyOptions settings_;  // of the strategy at this place
  const std::shared_ptr<ThreadEnds> thread_ends_;
  ChainContext context_;  // what the chains of this place share
  std::shared_ptr<ChunkPool> pool_;
  std::unique_ptr<StrategySource> strategy_;
  HostStrategy strategy_name_;  // what strategy_ builds
  bool has_visitors_ = false;
  std::unique_ptr<DebugFill> fill_;           // null: none asked for
  const std::shared_ptr<FrontTable> by_uid_;  // of the facade
  KeyTable<Front, 11> by_handle_;
  std::atomic<Front*> default_front_{nullptr};
  std::mutex fronts_mutex_;       // held while fronts come and go
  bool default_was_set_ = false;  // guarded by fronts_mutex_
  // Guarded by fronts_mutex_:
  std::vector<std::weak_ptr<OutOfMemoryCallback::Source>> callbacks_;

  std::mutex heeds_mutex_;
  // By the uid of a stream, the fronts to tell of its end, by their numbers;
  // guarded by heeds_mutex_.
  std::unordered_map<std::uint64_t, std::map<std::uint64_t, Front*>> heeding_;
  // There was no host memory for one of them: all fronts are told.
  std::atomic<bool> tells_all_{false};

  mutable std::mutex list_mutex_;
  std::vector<Front*> fronts_;  // all, orphans too; guarded by list_mutex_
  std::uint64_t listed_ = 0;    // fronts so far; likewise
  Stats finished_;              // of fronts that are gone; likewise
  Stats finished_strategies_;   // of their own; likewise
  // The largest peak in use of a front that is gone; likewise.
  std::uint64_t finished_peak_bytes_ = 0;

  // Null if its idle memory is for no other facade.
  std::unique_ptr<IdleNeighbour> neighbour_;
};

}  // namespace strata

#endif  // STRATA_FACADE_PLACE_STATE_H_
