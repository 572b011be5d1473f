#include "strata/facade/graphs/graph_pool.h"

#include <algorithm>
#include <new>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/streams/later_free.h"
#include "strata/base/log.h"
#include "strata/platform/platform.h"

namespace strata {
namespace {

std::uint64_t NextOrder() {
  static std::atomic<std::uint64_t> next{0};
  return ++next;
}

// The layer below handles marks. The other decorators are as outside the pool.
DecoratorOptions DecoratorsOf(const DecoratorOptions& options) {
  DecoratorOptions decorators = options;
  decorators.stream_safe = false;
  decorators.retry_time_ms = 0;
  decorators.guard = false;
  decorators.fault.clear();
  return decorators;
}

}  // namespace

// The stream of a graph pool's chain. Memory returns to the system only after a
// wait for the device, because launches may have used it on any stream. While
// captures are under way the stream is not used.
class GraphPool::PoolStream final : public ChainStream {
 public:
  PoolStream(Device& device, const Stream& stream,
             std::shared_ptr<TimelineTable> timelines, std::uint64_t own_hold,
             bool may_bias)
      : ChainStream(device, stream, nullptr, may_bias),
        timelines_(std::move(timelines)),
        own_hold_(own_hold) {}

  Status Synchronize() noexcept override;
  bool IsDone() noexcept override { return false; }
  std::uint64_t own_hold() const override { return own_hold_; }

 private:
  const std::shared_ptr<TimelineTable> timelines_;
  const std::uint64_t own_hold_;
};

Status GraphPool::PoolStream::Synchronize() noexcept {
  const CaptureGate::Calm calm(timelines_->gate());
  return calm ? device()->Synchronize() : Status::kNotReady;
}

std::shared_ptr<GraphPool> GraphPool::Make(
    GraphPoolId id, std::shared_ptr<TimelineTable> timelines) {
  return {new GraphPool(id, std::move(timelines)), [](GraphPool* pool) {
            // The gate must outlive the call, which may destroy the pool.
            const std::shared_ptr<TimelineTable> held = pool->timelines_;
            held->gate().EndLater(*pool);
          }};
}

GraphPool::GraphPool(GraphPoolId id, std::shared_ptr<TimelineTable> timelines)
    : id_(id), order_(NextOrder()), timelines_(std::move(timelines)) {}

void GraphPool::End() noexcept {
  // The gate must outlive the call.
  const std::shared_ptr<TimelineTable> held = timelines_;
  if (AwaitLaunches()) {
    delete this;
  } else if (!held->gate().Postpone(*this)) {
    STRATA_LOG(Error)
        << "graph pool " << id_
        << ": its memory goes back although its last launch could not "
           "be waited for";
    delete this;
  }
}

bool GraphPool::AwaitLaunches() noexcept {
  // Launches may be running on any stream.
  Platform& platform = *timelines_->platform();
  for (int i = 0; i < platform.device_count(); ++i) {
    Device& device = platform.device(i);
    if (!HasMemoryOf(device)) continue;
    const Status status = device.Synchronize();
    if (status == Status::kSuccess) continue;
    STRATA_LOG_IF(Error, !std::exchange(complained_, true))
        << "graph pool " << id_ << ": cannot wait for the last launch ("
        << status << "); its memory stays reserved until the wait succeeds";
    return false;
  }
  return true;
}

GraphPool::~GraphPool() {
  if (unused_ != nullptr) --*unused_;
  ReleaseHeld();
  for (const auto& [state, at] : places_) {
    for (const auto& [uid, front] : at->fronts) {
      if (front != nullptr) front->Drop();
    }
    // Live blocks still belong to their owners.
    at->pool->EndAllocations();
  }
}

bool GraphPool::HasMemoryOf(const Device& device) const noexcept {
  for (const auto& [state, at] : places_) {
    if (state->device() == &device) return true;
  }
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    const Place place = held.allocation->place();
    return place.kind != PlaceKind::kHost && place.index == device.ordinal();
  });
}

GraphPool::AtPlace& GraphPool::PlaceOf(
    const std::shared_ptr<PlaceState>& state) {
  const auto found = places_.find(state.get());
  if (found != places_.end()) return *found->second;
  auto made = std::make_unique<AtPlace>();
  made->state = state;
  // A separate ladder: no other pool may reclaim idle memory from here.
  made->reclaimer = std::make_shared<Reclaimer>();
  made->pool = std::make_shared<ChunkPool>(state->pool(), /*limit_bytes=*/0,
                                           made->reclaimer);
  StrategyOptions options = state->strategy_options();
  options.holds_chunks = true;
  made->strategy = std::make_unique<StrategySource>(
      GraphPoolStrategy(state->strategy_name()), made->pool, options);
  return *places_.emplace(state.get(), std::move(made)).first->second;
}

Front& GraphPool::FrontOf(const std::shared_ptr<PlaceState>& state,
                          const Stream& stream) {
  const std::lock_guard<std::mutex> guard(mutex_);
  AtPlace& at = PlaceOf(state);
  Front*& front = at.fronts[stream.uid];
  if (front != nullptr) return *front;
  auto own = std::make_shared<PoolStream>(
      *state->device(), stream, timelines_, order(),
      state->decorator_options().biased_lock());
  auto order =
      std::make_shared<CaptureOrderAllocator>(at.strategy->For(own), own);
  orders_.push_back(order);
  front = state->AddGraphFront(
      own, order, DecoratorsOf(state->decorator_options()), at.reclaimer);
  return *front;
}

void GraphPool::CaptureEnded() noexcept {
  // By index: the list may grow meanwhile, and a copy could fail.
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<CaptureOrderAllocator> order;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (i >= orders_.size()) return;
      order = orders_[i].lock();
    }
    if (order != nullptr) order->CaptureEnded();
  }
}

void GraphPool::Hold(std::shared_ptr<Allocator> layer,
                     Allocation* allocation) noexcept {
  try {
    std::list<Held> held;
    held.push_back({std::move(layer), allocation});
    // A second free must fail.
    SetLive(*allocation->block(), false);
    const std::lock_guard<std::mutex> guard(mutex_);
    held_.splice(held_.begin(), held);
  } catch (const std::bad_alloc&) {
    STRATA_LOG(Error) << "graph pool " << id_ << ": no host memory to hold "
                      << allocation->data() << "; it is never reused";
  }
}

void GraphPool::ReleaseHeld() noexcept {
  std::list<Held> all;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    all.swap(held_);
  }
  for (; !all.empty(); all.pop_front()) {
    FreeAtLast(*all.front().layer, *all.front().allocation->block());
  }
}

std::size_t GraphPool::reserved_bytes() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::size_t bytes = 0;
  for (const auto& [state, at] : places_) bytes += at->pool->reserved_bytes();
  return bytes;
}

}  // namespace strata
