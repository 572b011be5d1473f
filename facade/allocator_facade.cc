#include "strata/facade/allocator_facade.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "strata/allocation/diagnostics/log_allocator.h"
#include "strata/allocation/diagnostics/trace_allocator.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/base/log.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/graph_pools.h"
#include "strata/facade/lookup/front_table.h"
#include "strata/facade/place_state.h"
#include "strata/facade/settings/tf_environment.h"
#include "strata/facade/thread_ends.h"
#include "strata/facade/usage_log.h"
#include "strata/platform/registry.h"

namespace strata {

AllocatorFacade::AllocatorFacade(const Options& options,
                                 std::shared_ptr<Platform> platform,
                                 Clock& clock)
    : options_(WithProcessEnvironment(options)),
      platform_(std::move(platform)) {
  shared_.clock = &clock;
  options_.Validate(/*strategy_was_set=*/false);
  if (platform_ == nullptr) platform_ = MakePlatform(options_.platform);
  MakeShared();
  try {
    AddPlaces();
  } catch (...) {
    Close();  // fronts and places refer to each other
    throw;
  }
}

AllocatorFacade::~AllocatorFacade() {
  LogUsage();
  Close();
}

void AllocatorFacade::LogUsage() noexcept {
  if (!options_.enable_gpu_memory_usage_log) return;
  try {
    ForEachState([this](PlaceState& state) {
      if (state.place().kind != PlaceKind::kDevice) return;
      const Stats stats = GetStats(state.place());
      STRATA_LOG_IF(Info, stats.allocations != 0) << UsageLine(
          state.place(), stats, options_.enable_gpu_memory_usage_log_mb);
    });
  } catch (const std::bad_alloc&) {
    STRATA_LOG(Error) << "no host memory to log the use of memory";
  }
}

void AllocatorFacade::Close() noexcept {
  thread_ends_->Close();
  graph_pools_->Close();
  ForEachState([](PlaceState& state) { state.Close(); });
}

void AllocatorFacade::MakeShared() {
  fronts_ = std::make_shared<FrontTable>();
  thread_ends_ = std::make_shared<ThreadEnds>(
      [this](const Stream& stream) { EndOfThread(stream); });
  shared_.facade_services = std::make_shared<SharedServices>();
  timelines_ = shared_.Shared<TimelineTable>(ServiceScope::kFacade, platform_);
  graph_pools_ = std::make_shared<GraphPools>(timelines_);
  shared_.facade_services->Set<CaptureHolds>(graph_pools_);
  trace_sink_ = TraceSinkOf(options_.decorators, shared_);
  allocation_log_ = AllocationLogOf(options_.decorators, shared_);
}

void AllocatorFacade::AddPlaces() {
  const auto add = [&](Place place) {
    auto& kind = places_[static_cast<std::size_t>(place.kind)];
    kind.resize(std::size_t{place.index} + 1);  // null: no such memory there
    kind.back() =
        std::make_shared<PlaceState>(place, platform_, options_, shared_,
                                     graph_pools_, fronts_, thread_ends_);
    PlaceState& state = *kind.back();
    state.FrontOf(state.has_streams() ? state.device()->LegacyStream()
                                      : Stream());
  };
  add(HostPlace());  // also where node 0 has no memory
  if (options_.host.numa) {
    for (const int node : platform_->host()->NumaNodes()) {
      if (node != 0) add(HostPlace(node));
    }
  }
  for (int i = 0; i < platform_->device_count(); ++i) {
    add(DevicePlace(i));
    const Caps& caps = platform_->device(i).caps();
    if (caps.pinned_memory) add(PinnedPlace(i));
    if (caps.managed_memory) add(ManagedPlace(i));
  }
}

namespace {

std::mutex g_instance_mutex;
AllocatorFacade* g_instance = nullptr;  // guarded by g_instance_mutex

}  // namespace

AllocatorFacade& AllocatorFacade::Instance() {
  const std::lock_guard<std::mutex> guard(g_instance_mutex);
  if (g_instance == nullptr) g_instance = new AllocatorFacade(Options());
  return *g_instance;
}

AllocatorFacade& AllocatorFacade::InitInstance(const Options& options) {
  const std::lock_guard<std::mutex> guard(g_instance_mutex);
  if (g_instance != nullptr) {
    throw std::logic_error("the facade of the process exists already");
  }
  g_instance = new AllocatorFacade(options);
  // The instance is never destroyed.
  if (options.enable_gpu_memory_usage_log) {
    std::atexit([] { Instance().LogUsage(); });
  }
  return *g_instance;
}

void AllocatorFacade::ForEachState(FunctionRef<void(PlaceState&)> visit) const {
  for (const auto& kind : places_) {
    for (const auto& state : kind) {
      if (state != nullptr) visit(*state);
    }
  }
}

void AllocatorFacade::ThrowNoPlace(Place place) const {
  throw std::invalid_argument("there is no place " + ToString(place) +
                              ": the platform " + platform_->name() + " has " +
                              std::to_string(platform_->device_count()) +
                              " device(s)");
}

std::vector<Place> AllocatorFacade::places() const {
  std::vector<Place> result;
  ForEachState([&](PlaceState& state) { result.push_back(state.place()); });
  return result;
}

namespace {

using Route = FrontTable::Route;

[[noreturn]] void ThrowWrongStream(Place place, const Stream& stream) {
  throw std::invalid_argument(
      ToString(place) + (stream.uid == 0 ? ": the stream names none; see Wrap"
                                         : ": the stream belongs to device " +
                                               std::to_string(stream.device)));
}

}  // namespace

// Inlined by force: an out-of-line call costs every hit about 30 instructions.
[[gnu::always_inline]] inline Front& AllocatorFacade::FrontOf(
    Place place, const Stream& stream) {
  PlaceState& state = Find(place);
  if (!state.has_streams()) return state.DefaultFront();
  if (stream.uid == 0 || stream.device != place.index) {
    ThrowWrongStream(place, stream);
  }
  if (options_.check_streams) CheckStream(stream);
  return state.FrontOf(stream);
}

Front& AllocatorFacade::FrontOf(Place place, void* stream_handle) {
  PlaceState& state = Find(place);
  if (!state.has_streams()) return state.DefaultFront();
  const auto handle = reinterpret_cast<std::uintptr_t>(stream_handle);
  const std::uint64_t version = fronts_->version();
  Front* known = state.FindByHandle(handle);
  if (known != nullptr && !options_.check_streams) {
    Route::Of(ThisThread(), Route::Kind::kByHandle) = {*known, known->state(),
                                                       version, handle, place};
    return *known;
  }
  const Stream stream = Wrap(stream_handle, place.index);
  if (known != nullptr && known->stream() != stream) {
    const Stream gone = known->stream();
    timelines_->Lose(gone);
    EndLostStreams();
    ThrowStale(gone, stream);
  }
  Front& front = FrontOf(place, stream);
  // The per-thread handle names another stream in every thread.
  if (stream != state.device()->PerThreadStream() && handle != 0) {
    state.Remember(handle, front);
  }
  return front;
}

[[gnu::aligned(64)]] Allocation* AllocatorFacade::AllocPlain(
    Place place, std::size_t bytes) {
  ThreadState& self = ThisThread();
  const Route& route = Route::Of(self, Route::Kind::kByDefault);
  if (!route.LeadsTo(place, 0, fronts_->version())) [[unlikely]] {
    return AllocFirst(place, bytes);
  }
  return route.front->Alloc(*route.hit, bytes, self);
}
[[gnu::aligned(64)]] Allocation* AllocatorFacade::AllocPlain(
    Place place, std::size_t bytes, const Stream& stream) {
  ThreadState& self = ThisThread();
  const Route& route = Route::Of(self, Route::Kind::kByStream);
  // The legacy streams of all devices have one uid.
  if (stream.device != place.index ||
      !route.LeadsTo(place, stream.uid, fronts_->version())) [[unlikely]] {
    return AllocFirst(place, bytes, stream);
  }
  return route.front->Alloc(*route.hit, bytes, self);
}
[[gnu::aligned(64)]] Allocation* AllocatorFacade::AllocPlain(
    Place place, std::size_t bytes, void* stream_handle) {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream_handle);
  ThreadState& self = ThisThread();
  const Route& route = Route::Of(self, Route::Kind::kByHandle);
  if (!route.LeadsTo(place, handle, fronts_->version())) [[unlikely]] {
    return AllocFirst(place, bytes, stream_handle);
  }
  return route.front->Alloc(*route.hit, bytes, self);
}

[[gnu::noinline]] Allocation* AllocatorFacade::AllocFirst(Place place,
                                                          std::size_t bytes) {
  EndLostStreams();
  const std::uint64_t version = fronts_->version();
  Front& front = Find(place).DefaultFront();
  Route::Of(ThisThread(), Route::Kind::kByDefault) = {front, front.state(),
                                                      version, 0, place};
  return front.AllocFirst(bytes);
}
[[gnu::noinline]] Allocation* AllocatorFacade::AllocFirst(
    Place place, std::size_t bytes, const Stream& stream) {
  EndLostStreams();
  const std::uint64_t version = fronts_->version();
  Front& front = FrontOf(place, stream);
  if (!options_.check_streams) {
    Route::Of(ThisThread(), Route::Kind::kByStream) = {
        front, front.state(), version, stream.uid, place};
  }
  return front.AllocFirst(bytes);
}
[[gnu::noinline]] Allocation* AllocatorFacade::AllocFirst(Place place,
                                                          std::size_t bytes,
                                                          void* stream_handle) {
  EndLostStreams();
  return FrontOf(place, stream_handle).AllocFirst(bytes);
}

AllocationPtr AllocatorFacade::Alloc(Place place, const Request& request) {
  return Find(place).DefaultFront().Allocate(request);
}
AllocationPtr AllocatorFacade::Alloc(Place place, const Request& request,
                                     Stream stream) {
  return FrontOf(place, stream).Allocate(request);
}
AllocationPtr AllocatorFacade::Alloc(Place place, const Request& request,
                                     void* stream_handle) {
  return FrontOf(place, stream_handle).Allocate(request);
}
AllocationPtr AllocatorFacade::TryAlloc(Place place, const Request& request,
                                        Failure& failure) {
  return Find(place).DefaultFront().AllocateOrNull(request, failure);
}
AllocationPtr AllocatorFacade::TryAlloc(Place place, const Request& request,
                                        Stream stream, Failure& failure) {
  return FrontOf(place, stream).AllocateOrNull(request, failure);
}

Allocator& AllocatorFacade::GetAllocator(Place place) {
  return Find(place).DefaultFront();
}
Allocator& AllocatorFacade::GetAllocator(Place place, Stream stream) {
  return FrontOf(place, stream);
}

}  // namespace strata
