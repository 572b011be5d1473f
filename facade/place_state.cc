#include "strata/facade/place_state.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "strata/allocation/device_allocator.h"
#include "strata/allocation/host_allocator.h"
#include "strata/allocation/managed_allocator.h"
#include "strata/allocation/pinned_allocator.h"
#include "strata/allocation/registry.h"
#include "strata/allocation/size.h"
#include "strata/facade/front.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

std::shared_ptr<Allocator> MakeSystemAllocator(
    Place place, const std::shared_ptr<Platform>& platform) {
  switch (place.kind) {
    case PlaceKind::kDevice:
      return std::make_shared<DeviceAllocator>(platform, place.index);
    case PlaceKind::kPinned:
      return std::make_shared<PinnedAllocator>(platform, place.index);
    case PlaceKind::kManaged:
      return std::make_shared<ManagedAllocator>(platform, place.index);
    case PlaceKind::kHost:
      break;
  }
  return std::make_shared<HostAllocator>();
}

// The limit is on device memory; host memory has none.
std::size_t LimitOf(Place place, const Options& options) {
  return place.kind == PlaceKind::kDevice
             ? Mebibytes(options.gpu_memory_limit_mb)
             : 0;
}

// The host writes a block as soon as it has it, without waiting for a stream,
// so a cached block is not safe to reuse (cuda_semantics.md M7): the system
// allocator serves host places directly.
std::string StrategyOf(Place place, const Options& options) {
  const bool on_host =
      place.kind == PlaceKind::kHost || place.kind == PlaceKind::kPinned;
  return on_host ? "direct" : options.Strategy();
}

// Waiting is for memory that other requests at the place give back; what the
// host has left is not ours to say.
RetryOptions RetryOf(Place place, const Options& options, Clock& clock,
                     const std::shared_ptr<Platform>& platform,
                     const PlaceUsage& usage) {
  RetryOptions retry;
  if (place.kind == PlaceKind::kHost) return retry;
  retry.time = std::chrono::milliseconds(options.decorators.retry_time_ms);
  retry.alone = options.decorators.retry_alone;
  retry.clock = &clock;
  retry.platform = platform;
  retry.usage = &usage;
  return retry;
}

}  // namespace

PlaceState::PlaceState(Place place, std::shared_ptr<Platform> platform,
                       const Options& options, Clock& clock,
                       std::shared_ptr<TraceSink> trace_sink)
    : place_(place),
      platform_(std::move(platform)),
      device_(place.kind == PlaceKind::kHost ? nullptr
                                             : &platform_->device(place.index)),
      options_(options),
      reclaimer_(std::make_shared<Reclaimer>(
          RetryOf(place, options, clock, platform_, *this),
          options.decorators.callback_rounds)),
      budget_(std::make_shared<Budget>(options.decorators.in_use_limit_bytes)),
      meter_(std::make_shared<PlaceMeter>()),
      trace_sink_(std::move(trace_sink)) {
  ChainContext context;
  context.place = place_;
  context.platform = platform_;
  pool_ = std::make_shared<ChunkPool>(
      DecorateSystem(MakeSystemAllocator(place_, platform_),
                     options_.decorators, context),
      LimitOf(place_, options_), reclaimer_);
  strategy_ = std::make_unique<StrategySource>(StrategyOf(place_, options_),
                                               pool_, options_.strategy);
  if (options_.alloc_fill_value >= 0 || options_.sync_after_alloc) {
    std::optional<unsigned char> value;
    if (options_.alloc_fill_value >= 0) {
      value = static_cast<unsigned char>(options_.alloc_fill_value);
    }
    fill_ =
        std::make_unique<DebugFill>(device_, value, options_.sync_after_alloc);
  }
}

PlaceState::~PlaceState() = default;

std::shared_ptr<Allocator> PlaceState::BuildChain(
    const std::shared_ptr<ChainStream>& stream) const {
  ChainContext context;
  context.place = place_;
  context.platform = platform_;
  context.stream = stream;
  context.budget = budget_;
  context.meter = meter_;
  context.trace_sink = trace_sink_;
  return Decorate(strategy_->For(stream), options_.decorators, context);
}

Front& PlaceState::FindOrMake(const Stream& stream, std::uint64_t key) {
  const std::lock_guard<std::mutex> guard(fronts_mutex_);
  if (Front* front = by_uid_.FindLocked(key)) return *front;
  auto chain_stream = has_streams()
                          ? std::make_shared<ChainStream>(*device_, stream)
                          : std::make_shared<ChainStream>();
  auto chain = BuildChain(chain_stream);
  Front* front = nullptr;
  {
    const std::lock_guard<std::mutex> list_guard(list_mutex_);
    fronts_.reserve(fronts_.size() + 1);
    front = new Front(shared_from_this(), chain_stream, std::move(chain));
    fronts_.push_back(front);
  }
  try {
    by_uid_.Insert(key, front);
  } catch (...) {
    front->Drop();
    throw;
  }
  if (default_front_.load() == nullptr) default_front_.store(front);
  VLOG(1) << "chain built for " << ToString(place_) << ", stream "
          << stream.uid;
  return *front;
}

Front* PlaceState::Retire(Stream stream) {
  const std::lock_guard<std::mutex> guard(fronts_mutex_);
  Front* front = by_uid_.FindLocked(stream.uid);
  if (front == nullptr) return nullptr;
  by_uid_.Remove(stream.uid);
  by_handle_.Remove(reinterpret_cast<std::uintptr_t>(stream.handle));
  return front;
}

void PlaceState::Close() {
  decltype(callbacks_) callbacks;
  {
    const std::lock_guard<std::mutex> guard(fronts_mutex_);
    callbacks.swap(callbacks_);
  }
  for (const auto& callback : callbacks) {
    if (const auto source = callback.lock()) source->Drop();
  }
  for (Front* front : by_uid_.Entries()) front->Drop();
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

std::optional<Stats> PlaceState::ExactSum() const noexcept {
  // Without that layer, strategies report what they serve together.
  if (!options_.decorators.stat) return std::nullopt;
  try {
    return SumOfFronts();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

std::size_t PlaceState::LiveBytes() const noexcept {
  const std::optional<Stats> sum = ExactSum();
  return sum ? sum->in_use_bytes : 0;
}

std::optional<std::uint64_t> PlaceState::CountIfUnused() const noexcept {
  // An allocation is counted after its memory is taken, but before it can be
  // freed; so one that was in use meanwhile shows in one of the three.
  const std::optional<Stats> before = ExactSum();
  const bool is_unused = pool_->IsUnused();
  const std::optional<Stats> after = ExactSum();
  if (!before || !is_unused || !after ||
      before->allocations != after->allocations) {
    return std::nullopt;
  }
  return after->allocations;
}

void PlaceState::Unpinner::operator()(Front* front) const noexcept {
  front->Unpin();
}

void PlaceState::Finish(Front& front, const Stats& totals) {
  const std::lock_guard<std::mutex> guard(list_mutex_);
  fronts_.erase(std::remove(fronts_.begin(), fronts_.end(), &front),
                fronts_.end());
  Accumulate(finished_, totals);
  finished_peak_bytes_ =
      std::max(finished_peak_bytes_, totals.peak_in_use_bytes);
}

std::vector<PlaceState::PinnedFront> PlaceState::PinAll() const {
  std::vector<PinnedFront> pinned;
  pinned.reserve(fronts_.size());
  for (Front* front : fronts_) {
    if (front->TryPin()) pinned.emplace_back(front);
  }
  return pinned;
}

void PlaceState::ForEachFront(const std::function<void(Front&)>& visit) const {
  std::vector<PinnedFront> pinned;
  {
    const std::lock_guard<std::mutex> guard(list_mutex_);
    pinned = PinAll();
  }
  for (const PinnedFront& front : pinned) visit(*front);
}

Stats PlaceState::SumOfFronts() const {
  Stats sum;
  std::vector<PinnedFront> pinned;
  {
    // Both under one lock, so that a front on its way out is counted once.
    const std::lock_guard<std::mutex> guard(list_mutex_);
    sum = finished_;
    pinned = PinAll();
  }
  for (const PinnedFront& front : pinned) Accumulate(sum, front->stats());
  return sum;
}

std::uint64_t PlaceState::LargestPeak() const {
  std::uint64_t largest = 0;
  ForEachFront([&](Front& front) {
    largest = std::max(largest, front.stats().peak_in_use_bytes);
  });
  const std::lock_guard<std::mutex> guard(list_mutex_);
  return std::max(largest, finished_peak_bytes_);
}

void PlaceState::ResetPeak() {
  ForEachFront([](Front& front) { front.ResetPeak(); });
  meter_->ResetPeak();
  const std::lock_guard<std::mutex> guard(list_mutex_);
  finished_.peak_in_use_bytes = 0;
  finished_peak_bytes_ = 0;
}

}  // namespace strata
