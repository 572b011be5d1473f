#ifndef STRATA_FACADE_PLACE_STATE_H_
#define STRATA_FACADE_PLACE_STATE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/decorators/stat_allocator.h"
#include "strata/allocation/diagnostics/allocation_log.h"
#include "strata/allocation/diagnostics/debug_fill.h"
#include "strata/allocation/guard/guard_allocator.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/base/function_ref.h"
#include "strata/facade/chains/chain.h"
#include "strata/facade/idle_neighbour.h"
#include "strata/facade/lookup/front_table.h"
#include "strata/facade/options.h"
#include "strata/facade/out_of_memory_callback.h"
#include "strata/facade/settings/host_strategy.h"
#include "strata/platform/platform.h"
#include "strata/strategy/registry.h"

namespace strata {

class CapturedAlloc;
class Front;
class ThreadEnds;

// The state that all chains of one place share, and the list of those chains.
//
// Threads: any thread.
// Lifetime: shared by the facade and by every front, so it outlives the last
//   allocation.
class PlaceState : public std::enable_shared_from_this<PlaceState>,
                   public Chain::Home,
                   private PlaceUsage {
 public:
  // `shared` is the state that the chains of all places share. `fronts` is the
  // table of the fronts; null: the place uses its own. `thread_ends`, if not
  // null, is notified of per-thread streams that get a chain. Makes no device
  // call.
  //
  // Errors: std::invalid_argument if the platform has no such memory.
  PlaceState(Place place, std::shared_ptr<Platform> platform,
             const Options& options, const ChainContext& shared,
             std::shared_ptr<CapturedAlloc> captured = nullptr,
             std::shared_ptr<FrontTable> fronts = nullptr,
             std::shared_ptr<ThreadEnds> thread_ends = nullptr);
  ~PlaceState() override;

  Place place() const { return place_; }
  // Null for host memory.
  Device* device() const { return device_; }
  const std::shared_ptr<Platform>& platform() const { return platform_; }
  const std::shared_ptr<ChunkPool>& pool() const { return pool_; }
  const std::shared_ptr<Reclaimer>& reclaimer() const { return reclaimer_; }
  // The peak of all chains; null if each chain counts its own peak only.
  std::shared_ptr<PlacePeak> peak() const {
    return context_.Find<PlacePeak>(ServiceScope::kPlace);
  }
  const DebugFill* debug_fill() const { return fill_.get(); }
  // Null without strata_guard.
  std::shared_ptr<GuardReporter> guard_reporter() const {
    return GuardReporterOf(options_.decorators, context_);
  }

  const std::string& strategy_name() const { return strategy_name_.name; }
  const StrategyOptions& strategy_options() const { return settings_; }
  const DecoratorOptions& decorator_options() const {
    return options_.decorators;
  }
  CaptureGate& gate() const { return timelines_->gate(); }

  // Whether streams order the work on the memory, so that requests name one.
  bool has_streams() const {
    return place_.kind == PlaceKind::kDevice ||
           place_.kind == PlaceKind::kManaged;
  }

  // The front of `stream`. The first use creates it, and may query whether
  // ended streams have completed.
  Front& FrontOf(const Stream& stream) {
    // Memory without streams has one chain, under the key of the legacy stream.
    const std::uint64_t uid = has_streams() ? stream.uid : kLegacyStreamUid;
    Front* front = by_uid_->Find(FrontTable::KeyOf(place_, uid));
    return front != nullptr ? *front : FindOrMake(stream, uid);
  }
  // Null if Remember was not called for the handle.
  Front* FindByHandle(std::uintptr_t handle) const {
    return by_handle_.Find(handle);
  }
  void Remember(std::uintptr_t handle, Front& front) {
    by_handle_.Insert(handle, &front);
  }
  // Lets TellOfEnd of `stream` visit the chain.
  void HeedEnd(Chain& chain, Stream stream) noexcept override;
  // Notifies the layers that know the stream of its end, also in chains with
  // memory that is marked with it.
  //
  // Errors: std::bad_alloc.
  // Cost: visits no other front.
  void TellOfEnd(Stream stream);
  // Removes the front from the tables; null if there is none. The caller drops
  // it.
  Front* TakeOut(Stream stream);
  // Drops the front of a stream that is about to be destroyed; its timeline has
  // ended. Does not wait.
  void Retire(Stream stream) noexcept;
  // Drops all fronts and callbacks: the facade is being destroyed.
  void Close() noexcept;
  // Called when a chain has ended. After Close no other call releases its idle
  // memory in the pool.
  void ReleaseIfClosed() noexcept override;

  // Creates a front of a graph pool: `strategy` under the layers that the
  // options select. It counts for this place, but only its pool finds it.
  //
  // Errors: std::bad_alloc.
  Front* AddGraphFront(const std::shared_ptr<ChainStream>& stream,
                       std::shared_ptr<Allocator> strategy,
                       const DecoratorOptions& decorators,
                       std::shared_ptr<Reclaimer> reclaimer);
  Allocation* TryAllocateCaptured(const Stream& stream, const Request& request,
                                  Failure& failure,
                                  bool* is_captured) noexcept override;

  // The front of requests that name no stream.
  Front& DefaultFront() const {
    return *default_front_.load(std::memory_order_acquire);
  }
  // Errors: std::logic_error if it was set or used before.
  void SetDefault(Stream stream);

  // Errors: std::invalid_argument if the callback is empty.
  OutOfMemoryCallback AddCallback(OutOfMemoryFunction callback, int priority);

  // Adds a visitor of the pool's chunks; there is no chunk yet. At a host place
  // the first visitor may change the strategy. No other call may be in flight.
  //
  // Errors: std::logic_error if there was a chunk; std::invalid_argument as
  //   StrategyOfHost.
  void AddVisitor(ChunkPool::Visitor visitor);

  void Finish(Chain& chain, const Stats& totals) override;
  // Visits every front, including orphans, with no lock held. A front lives at
  // least until its visit returns.
  void ForEachFront(FunctionRef<void(Front&)> visit) const;
  // Visits every layer once, and the remains of ended chains. May miss memory
  // that is allocated or freed meanwhile.
  void AcceptAll(AllocatorVisitor& visitor) const;

  void Explain(Failure& failure) const noexcept override;
  // Sum over all fronts, past and present.
  Stats SumOfFronts() const;
  // Sum over their strategies: hits, misses, splits and joins of past and
  // present fronts, and the free memory.
  Stats SumOfStrategies() const;
  std::uint64_t LargestPeak() const;
  void ResetPeak();

 private:
  // The sum if the bytes in use are counted exactly.
  std::optional<Stats> ExactSum() const noexcept;
  std::size_t LiveBytes() const noexcept override;
  std::optional<std::uint64_t> CountIfUnused() const noexcept override;
  void SettleFrees() const override;

  struct Unpinner {
    void operator()(Chain* chain) const noexcept;
  };
  using PinnedChain = std::unique_ptr<Chain, Unpinner>;
  using PinnedFront = std::unique_ptr<Front, Unpinner>;

  HostStrategy StrategyNow(bool has_visitors) const;
  bool IsNumaNode() const;
  std::shared_ptr<Allocator> MakeSystemAllocator(
      const std::string& strategy) const;
  // Builds the pool and the strategy, before any chain is built on them.
  void BuildPool(const HostStrategy& strategy);
  std::vector<PinnedFront> PinAll() const;  // Hold list_mutex_.
  // Hold heeds_mutex_. Errors: std::bad_alloc.
  void Heed(Chain& chain, std::uint64_t uid);
  void ForgetHeeds(Chain& chain) noexcept;
  Front* MakeFront(const Stream& stream);
  // Builds a front above `chain`, and lists it.
  Front* AddFront(const std::shared_ptr<ChainStream>& stream,
                  std::shared_ptr<Allocator> chain, Chain::Role role);
  // Watches the end of the thread if the stream is its own.
  void WatchIfOwn(const Stream& stream) const;
  Front& FindOrMake(const Stream& stream, std::uint64_t uid);
  // Drops `front` if the table has no memory for it. Hold fronts_mutex_.
  void InsertOrDrop(std::uint64_t uid, Front* front);

  const Place place_;
  const std::shared_ptr<Platform> platform_;
  Device* const device_;
  const Options options_;
  std::shared_ptr<Reclaimer> reclaimer_;
  const std::shared_ptr<CapturedAlloc> captured_;  // of the facade, or null
  std::array<Reclaimer::Registration, 2> graph_registrations_;
  const StrategyOptions settings_;  // of the strategy at this place
  const std::shared_ptr<ThreadEnds> thread_ends_;
  ChainContext context_;  // state that the chains of this place share
  std::shared_ptr<TimelineTable> timelines_;  // of the facade
  std::shared_ptr<DeferredFrees> frees_;
  std::shared_ptr<AllocationLog> allocation_log_;  // null: no log
  std::shared_ptr<ChunkPool> pool_;
  std::unique_ptr<StrategySource> strategy_;
  HostStrategy strategy_name_;  // the strategy that strategy_ builds
  bool has_visitors_ = false;
  std::unique_ptr<DebugFill> fill_;           // null: no fill
  const std::shared_ptr<FrontTable> by_uid_;  // of the facade
  FrontTable by_handle_;                      // by handle of the stream
  std::atomic<Front*> default_front_{nullptr};
  std::mutex fronts_mutex_;       // held while fronts are added or removed
  bool default_was_set_ = false;  // guarded by fronts_mutex_
  // Guarded by fronts_mutex_:
  std::vector<std::weak_ptr<OutOfMemoryCallback::Source>> callbacks_;

  std::mutex heeds_mutex_;
  // Per uid of a stream, the fronts to notify of its end, by their numbers;
  // guarded by heeds_mutex_.
  std::unordered_map<std::uint64_t, std::map<std::uint64_t, Chain*>> heeding_;
  // An entry of heeding_ failed for lack of host memory: notify all fronts.
  std::atomic<bool> tells_all_{false};

  mutable std::mutex list_mutex_;
  // all, including orphans; guarded by list_mutex_
  std::vector<Front*> fronts_;
  std::uint64_t listed_ = 0;  // fronts so far; guarded by list_mutex_
  Stats finished_;            // of past fronts; guarded by list_mutex_
  // of their own strategies; guarded by list_mutex_
  Stats finished_strategies_;
  // The largest peak in use of a past front. Guarded by list_mutex_.
  std::uint64_t finished_peak_bytes_ = 0;

  // Null if other facades may not use its idle memory.
  std::unique_ptr<IdleNeighbour> neighbour_;
};

}  // namespace strata

#endif  // STRATA_FACADE_PLACE_STATE_H_
