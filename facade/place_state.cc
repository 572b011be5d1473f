#include "strata/facade/place_state.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/diagnostics/log_allocator.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/system/device_allocator.h"
#include "strata/allocation/system/host_allocator.h"
#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/captured_alloc.h"
#include "strata/facade/settings/auto_strategy.h"
#include "strata/facade/thread_ends.h"
#include "strata/strategy/virtual_memory/sharing/peer_access.h"

namespace strata {
namespace {

std::shared_ptr<Allocator> MakeManagedForDevice(
    Place place, const std::shared_ptr<Platform>& platform,
    const std::shared_ptr<const CaptureGate>& gate) {
  if (!platform->device(place.index).caps().managed_memory) {
    throw std::invalid_argument("use_cuda_managed_memory: " + ToString(place) +
                                " has no managed memory");
  }
  return std::make_shared<ManagedAllocator>(platform, place.index,
                                            PlaceKind::kDevice, gate);
}

// The granule of pinned memory in PaddlePaddle
// (use_auto_growth_pinned_allocator).
constexpr std::uint64_t kPinnedGranuleBytes = std::uint64_t{64} << 10;

StrategyOptions StrategyOptionsAt(Place place, const Options& options) {
  const bool is_on_device =
      place.kind == PlaceKind::kDevice || place.kind == PlaceKind::kManaged;
  StrategyOptions settings = options.strategy.ByType(!is_on_device);
  settings.cross_stream_wait = options.decorators.cross_stream_wait;
  settings.is_managed = options.use_cuda_managed_memory;
  if (place.kind == PlaceKind::kDevice) {
    settings.peers = std::make_shared<PeerAccess>(
        Location{Location::Kind::kDevice, place.index});
  }
  if (place.kind == PlaceKind::kPinned &&
      options.host.use_auto_growth_pinned_allocator) {
    settings.Edit<AutoGrowthOptions>().auto_growth_granule_bytes =
        kPinnedGranuleBytes;
  }
  return settings;
}

HostMemoryOptions HostMemoryOf(const HostOptions& options,
                               const std::string& strategy) {
  HostMemoryOptions result;
  // Lock only memory that a pool reuses; for every malloc it would cost too
  // much.
  result.lock = options.lock_pages && (TraitsOf(strategy) & kHoldsNothing) == 0;
  result.warn_large_fraction = options.warn_large_fraction;
  result.warn_total_fraction = options.warn_total_fraction;
  return result;
}

// A request waits only for memory that other requests at the place free. Free
// host memory outside the place is not counted.
RetryOptions RetryOf(Place place, const Options& options,
                     const ChainContext& shared,
                     const std::shared_ptr<Platform>& platform,
                     const PlaceUsage& usage) {
  RetryOptions retry;
  retry.usage = &usage;
  if (place.kind == PlaceKind::kHost) return retry;
  retry.time = std::chrono::milliseconds(options.decorators.retry_time_ms);
  retry.alone = options.decorators.retry_alone;
  retry.clock = shared.clock;
  retry.platform = platform;
  return retry;
}

}  // namespace

PlaceState::PlaceState(Place place, std::shared_ptr<Platform> platform,
                       const Options& options, const ChainContext& shared,
                       std::shared_ptr<CapturedAlloc> captured,
                       std::shared_ptr<FrontTable> fronts,
                       std::shared_ptr<ThreadEnds> thread_ends)
    : place_(place),
      platform_(std::move(platform)),
      device_(place.kind == PlaceKind::kHost ? nullptr
                                             : &platform_->device(place.index)),
      options_(options),
      reclaimer_(std::make_shared<Reclaimer>(
          RetryOf(place, options, shared, platform_, *this),
          options.decorators.callback_rounds)),
      captured_(std::move(captured)),
      settings_(StrategyOptionsAt(place, options)),
      thread_ends_(std::move(thread_ends)),
      context_(shared),
      by_uid_(fronts != nullptr ? std::move(fronts)
                                : std::make_shared<FrontTable>()) {
  context_.place = place_;
  context_.platform = platform_;
  context_.reclaimer = reclaimer_;
  context_.place_services = std::make_shared<SharedServices>();
  if (context_.facade_services == nullptr) {
    context_.facade_services = std::make_shared<SharedServices>();
  }
  timelines_ = context_.Shared<TimelineTable>(ServiceScope::kFacade, platform_);
  reclaimer_->retry().CountWaitersIn(gate().attention());
  if (captured_ != nullptr) {
    graph_registrations_ = {
        Reclaimer::Register(reclaimer_, Reclaimer::Step::kDrainFrees,
                            captured_->ask_step()),
        Reclaimer::Register(reclaimer_, Reclaimer::Step::kAwaitFrees,
                            captured_->await_step())};
  }
  allocation_log_ = AllocationLogOf(options_.decorators, context_);
  frees_ = context_.Shared<DeferredFrees>(
      ServiceScope::kPlace, timelines_, reclaimer_,
      options_.decorators.cross_stream_wait);
  BuildPool(StrategyNow(/*has_visitors=*/false));
  const std::optional<unsigned char> fill = options_.FillByte();
  if (fill || options_.sync_after_alloc) {
    fill_ = std::make_unique<DebugFill>(device_, fill,
                                        options_.sync_after_alloc, &gate());
  }
  if (options_.share_idle && place_.kind == PlaceKind::kDevice) {
    neighbour_ =
        std::make_unique<IdleNeighbour>(*device_, *pool_, gate(), reclaimer_);
  }
}

PlaceState::~PlaceState() {
  neighbour_.reset();
  // Streams that share a strategy defer frees of its blocks, and refer to this
  // object.
  frees_->End();
  pool_->Close();
}

bool PlaceState::IsNumaNode() const {
  if (place_.kind != PlaceKind::kHost || !options_.host.numa) return false;
  const std::vector<int> nodes = platform_->host()->NumaNodes();
  return std::find(nodes.begin(), nodes.end(), place_.index) != nodes.end();
}

HostStrategy PlaceState::StrategyNow(bool has_visitors) const {
  if (place_.kind == PlaceKind::kHost || place_.kind == PlaceKind::kPinned) {
    HostOptions options = options_.host;
    if (options_.use_system_allocator) {
      options.strategy = options.pinned_strategy = "direct";
    }
    return place_.kind == PlaceKind::kPinned
               ? StrategyOfPinned(options, options_.decorators.stream_safe,
                                  &std::getenv)
               : StrategyOfHost(options, IsNumaNode(), has_visitors,
                                &std::getenv);
  }
  HostStrategy strategy;
  strategy.name = StrategyOn(options_, device_->caps(), place_.kind);
  // The limit applies to device memory only.
  if (place_.kind == PlaceKind::kDevice) {
    strategy.limit_bytes = Mebibytes(options_.gpu_memory_limit_mb);
    strategy.limit_flag = "--gpu_memory_limit_mb";
  }
  return strategy;
}

std::shared_ptr<Allocator> PlaceState::MakeSystemAllocator(
    const std::string& strategy) const {
  const std::shared_ptr<const CaptureGate> gate = timelines_->shared_gate();
  switch (place_.kind) {
    case PlaceKind::kDevice:
      if (options_.use_cuda_managed_memory) {
        return MakeManagedForDevice(place_, platform_, gate);
      }
      return std::make_shared<DeviceAllocator>(platform_, place_.index, gate);
    case PlaceKind::kPinned:
      return std::make_shared<PinnedAllocator>(platform_, place_.index, gate);
    case PlaceKind::kManaged:
      return std::make_shared<ManagedAllocator>(platform_, place_.index,
                                                PlaceKind::kManaged, gate);
    case PlaceKind::kHost:
      break;
  }
  const HostMemoryOptions memory = HostMemoryOf(options_.host, strategy);
  if (IsNumaNode()) {
    return std::make_shared<NumaAllocator>(place_.index, platform_->host(),
                                           memory);
  }
  return std::make_shared<HostAllocator>(platform_->host(), memory);
}

void PlaceState::BuildPool(const HostStrategy& strategy) {
  auto pool = std::make_shared<ChunkPool>(
      DecorateSystem(MakeSystemAllocator(strategy.name), options_.decorators,
                     context_),
      strategy.limit_bytes, reclaimer_, strategy.limit_flag);
  strategy_ =
      std::make_unique<StrategySource>(strategy.name, pool, settings_, frees_);
  pool_ = std::move(pool);
  strategy_name_ = strategy;
}

void PlaceState::AddVisitor(ChunkPool::Visitor visitor) {
  if (pool_->stats().allocations != 0) {
    throw std::logic_error(ToString(place_) +
                           ": chunks are visited from the first one on; add "
                           "visitors before the first allocation");
  }
  if (place_.kind == PlaceKind::kDevice &&
      (TraitsOf(strategy_name_.name) & kPoolsInDriver) != 0) {
    throw std::logic_error(ToString(place_) + ": " + strategy_name_.name +
                           " leaves its memory to the "
                           "driver, which does not report its chunks");
  }
  const HostStrategy strategy = StrategyNow(/*has_visitors=*/true);
  const bool changes = !has_visitors_ && !(strategy == strategy_name_);
  if (changes) {
    auto pool = pool_;
    auto source = std::move(strategy_);
    const HostStrategy name = strategy_name_;
    try {
      BuildPool(strategy);
      pool_->AddVisitor(visitor);
      const std::lock_guard<std::mutex> guard(fronts_mutex_);
      Front* front = MakeFront(Stream());
      Front& old = DefaultFront();
      InsertOrDrop(kLegacyStreamUid, front);
      default_front_.store(front);
      by_uid_->ChangeVersion();
      old.Drop();
    } catch (...) {
      pool_ = std::move(pool);
      strategy_ = std::move(source);
      strategy_name_ = name;
      throw;
    }
  }
  // Threads of other facades must not run the visitors of this one.
  if (neighbour_ != nullptr) neighbour_->StopGiving();
  if (!changes) pool_->AddVisitor(std::move(visitor));
  has_visitors_ = true;
}

Front* PlaceState::MakeFront(const Stream& stream) {
  const bool may_bias = options_.decorators.biased_lock();
  auto chain_stream =
      has_streams() ? std::make_shared<ChainStream>(
                          *device_, stream, timelines_->Of(stream), may_bias)
                    : std::make_shared<ChainStream>(may_bias);
  ChainContext context = context_;
  context.stream = chain_stream;
  auto chain =
      Decorate(strategy_->For(chain_stream), options_.decorators, context);
  return AddFront(chain_stream, std::move(chain), Front::Role::kEager);
}

Front* PlaceState::AddGraphFront(const std::shared_ptr<ChainStream>& stream,
                                 std::shared_ptr<Allocator> strategy,
                                 const DecoratorOptions& decorators,
                                 std::shared_ptr<Reclaimer> reclaimer) {
  ChainContext context = context_;
  context.stream = stream;
  context.reclaimer = std::move(reclaimer);
  return AddFront(stream, Decorate(std::move(strategy), decorators, context),
                  Front::Role::kGraph);
}

Allocation* PlaceState::TryAllocateCaptured(const Stream& stream,
                                            const Request& request,
                                            Failure& failure,
                                            bool* is_captured) noexcept {
  *is_captured = false;
  if (captured_ == nullptr || !has_streams()) return nullptr;
  return captured_->TryAllocate(shared_from_this(), stream, request, failure,
                                is_captured);
}

void PlaceState::WatchIfOwn(const Stream& stream) const {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream.handle);
  if (thread_ends_ == nullptr || !has_streams() || handle != kPerThreadHandle ||
      device_->PerThreadStream() != stream) {
    return;
  }
  thread_ends_->Watch(stream);
}

Front& PlaceState::FindOrMake(const Stream& stream, std::uint64_t uid) {
  strategy_->ForgetOver();
  WatchIfOwn(stream);
  // Without the lock: it may log that another stream is lost, and a log sink
  // may allocate.
  if (has_streams()) static_cast<void>(timelines_->Of(stream));
  Front* front = nullptr;
  {
    const std::lock_guard<std::mutex> guard(fronts_mutex_);
    front = by_uid_->FindLocked(FrontTable::KeyOf(place_, uid));
    if (front != nullptr) return *front;
    front = MakeFront(stream);
    InsertOrDrop(uid, front);
    if (default_front_.load() == nullptr) default_front_.store(front);
  }
  // Without the lock: a log sink may allocate.
  STRATA_VLOG(1) << "chain built for " << ToString(place_) << ", stream "
                 << stream.uid;
  return *front;
}

void PlaceState::InsertOrDrop(std::uint64_t uid, Front* front) {
  try {
    by_uid_->Insert(FrontTable::KeyOf(place_, uid), front);
  } catch (...) {
    front->Drop();
    throw;
  }
}

Front* PlaceState::TakeOut(Stream stream) {
  const std::lock_guard<std::mutex> guard(fronts_mutex_);
  const std::uint64_t key = FrontTable::KeyOf(place_, stream.uid);
  Front* front = by_uid_->FindLocked(key);
  if (front == nullptr) return nullptr;
  by_handle_.Remove(reinterpret_cast<std::uintptr_t>(stream.handle));
  by_uid_->Remove(key);  // last: it ends the routes
  return front;
}

void PlaceState::Retire(Stream stream) noexcept {
  Front* front = TakeOut(stream);
  if (front == nullptr) return;
  // Memory of a shared strategy becomes idle for the other streams.
  pool_->holders().TellOwnersOfEnd(stream);
  front->chain_stream()->Retire();
  reclaimer_->BeginGiving();
  front->Drop();
  reclaimer_->EndGiving(/*gave=*/true);
}

void PlaceState::Close() noexcept {
  neighbour_.reset();
  decltype(callbacks_) callbacks;
  {
    const std::lock_guard<std::mutex> guard(fronts_mutex_);
    callbacks.swap(callbacks_);
  }
  for (const auto& callback : callbacks) {
    if (const auto source = callback.lock()) source->Drop();
  }
  // Memory of streams that have completed returns to the system now; the rest
  // with the end of a chain.
  frees_->Close();
  by_uid_->RemoveAll(place_, [](Front* front) { front->Drop(); });
  ReleaseIfClosed();
}

void PlaceState::ReleaseIfClosed() noexcept {
  if (!frees_->is_closed()) return;
  // Chains that live on keep their idle chunks otherwise.
  pool_->market().GiveBackDone(SIZE_MAX);
  pool_->Release();
}

void PlaceState::SetDefault(Stream stream) {
  Front& front = FrontOf(stream);
  const std::lock_guard<std::mutex> guard(fronts_mutex_);
  if (default_was_set_ || DefaultFront().was_used()) {
    throw std::logic_error(ToString(place_) +
                           ": the default stream can be set once, before the "
                           "first allocation on it");
  }
  default_was_set_ = true;
  default_front_.store(&front, std::memory_order_release);
  by_uid_->ChangeVersion();
}

OutOfMemoryCallback PlaceState::AddCallback(OutOfMemoryFunction callback,
                                            int priority) {
  if (!callback) {
    throw std::invalid_argument("the out-of-memory callback is empty");
  }
  auto source = std::make_shared<OutOfMemoryCallback::Source>(
      place_, std::move(callback));
  {
    const std::lock_guard<std::mutex> guard(fronts_mutex_);
    std::erase_if(callbacks_, [](const auto& old) { return old.expired(); });
    callbacks_.push_back(source);
  }
  return {std::move(source), reclaimer_, priority};
}

}  // namespace strata
