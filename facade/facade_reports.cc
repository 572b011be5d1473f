// Reports: checks of memory, visitors, statistics and layers.

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "strata/allocation/guard/guard_allocator.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/graph_pools.h"
#include "strata/facade/place_state.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"

namespace strata {
namespace {

[[noreturn]] void ThrowNoGuard(const char* what) {
  throw std::logic_error(std::string(what) + " needs strata_guard");
}

}  // namespace

MemoryCheck AllocatorFacade::CheckMemory(Place place) {
  PlaceState& state = Find(place);
  if (state.guard_reporter() == nullptr) ThrowNoGuard("CheckMemory");
  // Its copies and waits end captures of a thread that is not relaxed.
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), state.device());
  if (!relaxed) ThrowNotRelaxed("CheckMemory");
  MemoryCheck sum;
  state.ForEachFront([&](Front& front) {
    GuardAllocator* guard = FindGuard(&front);
    if (guard == nullptr) return;  // a graph pool has no guard
    const MemoryCheck one = guard->CheckAll();
    sum.checked += one.checked;
    sum.skipped += one.skipped;
    sum.errors += one.errors;
  });
  return sum;
}

void AllocatorFacade::AddMemoryErrorCallback(
    const GuardReporter::Callback& callback) {
  if (!options_.decorators.guard) ThrowNoGuard("AddMemoryErrorCallback");
  if (!callback) {
    throw std::invalid_argument("the memory-error callback is empty");
  }
  ForEachState([&](PlaceState& state) {
    state.guard_reporter()->AddCallback(callback);
  });
}

void AllocatorFacade::AddVisitor(Place place, ChunkVisitor visitor) {
  PlaceState& state = Find(place);
  if (!visitor) throw std::invalid_argument("the visitor of chunks is empty");
  state.AddVisitor([place, visitor = std::move(visitor)](
                       void* data, std::size_t bytes, int count_change) {
    visitor(place, data, bytes, count_change);
  });
}

Stats AllocatorFacade::GetStats(Place place) {
  PlaceState& state = Find(place);
  // The size of a driver's pool is a driver call, which ends captures of a
  // thread that is not relaxed.
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), state.device());
  Stats sum = state.SumOfFronts();
  // The pool counts the memory that the strategies hold.
  const Stats pool = state.pool()->stats();
  sum.reserved_bytes = pool.reserved_bytes;
  sum.peak_reserved_bytes = pool.peak_reserved_bytes;
  sum.chunks = pool.chunks;
  // The strategies count free blocks, hits and misses.
  const Stats strategies = state.SumOfStrategies();
  sum.cache_hits = strategies.cache_hits;
  sum.cache_misses = strategies.cache_misses;
  sum.splits = strategies.splits;
  sum.coalesces = strategies.coalesces;
  sum.idle_bytes = strategies.idle_bytes + pool.idle_bytes;
  sum.free_blocks = strategies.free_blocks;
  sum.largest_free_bytes = strategies.largest_free_bytes;
  LimitInUse(sum, options_.decorators.in_use_limit_bytes);
  LimitReserved(sum, pool.reserved_limit_bytes, pool.reserved_limit_flag);
  LimitReserved(sum, strategies.reserved_limit_bytes,
                strategies.reserved_limit_flag);
  SetPeak(state, sum);
  return sum;
}

void AllocatorFacade::SetPeak(const PlaceState& state, Stats& sum) const {
  if (const std::shared_ptr<PlacePeak> peak = state.peak()) {
    sum.peak_in_use_bytes = peak->bytes();
    sum.peak_in_use_is_bound = peak->is_bound();
  }
  // Bytes in use are reserved, too.
  sum.peak_in_use_bytes =
      std::min(sum.peak_in_use_bytes, sum.peak_reserved_bytes);
  if (!sum.peak_in_use_is_bound) return;
  // Exact if one stream alone has reached it, or all streams together do now.
  const std::uint64_t least = std::max(state.LargestPeak(), sum.in_use_bytes);
  sum.peak_in_use_is_bound = sum.peak_in_use_bytes > least;
}

std::size_t AllocatorFacade::LargestStreamPeak(Place place) {
  return Find(place).LargestPeak();
}

void AllocatorFacade::ResetPeak(Place place) {
  PlaceState& state = Find(place);
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), state.device());
  state.ResetPeak();
}

std::string AllocatorFacade::StatsJson() {
  std::string json;
  for (const Place place : places()) {
    json += (json.empty() ? "{\"" : ",\"") + ToString(place) +
            "\":" + ToJson(GetStats(place));
    json.back() = ',';  // the next key follows
    json += "\"largest_stream_peak_bytes\":" +
            std::to_string(LargestStreamPeak(place));
    const RetryWaits waits = Find(place).reclaimer()->retry().waits();
    json += ",\"retry_waits\":" + std::to_string(waits.count) +
            ",\"retry_waited_us\":" +
            std::to_string(waits.time / std::chrono::microseconds(1)) + "}";
  }
  return json + "}";
}

void AllocatorFacade::Accept(Place place, AllocatorVisitor& visitor) {
  GetAllocator(place).Accept(visitor);
}
void AllocatorFacade::AcceptAll(Place place, AllocatorVisitor& visitor) {
  PlaceState& state = Find(place);
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), state.device());
  state.AcceptAll(visitor);
}

const Allocator& AllocatorFacade::GetAutoGrowthAllocator(Place place) {
  const Allocator& layer = CarvingLayer(GetAllocator(place));
  if (dynamic_cast<const AutoGrowthAllocator*>(&layer) == nullptr) {
    throw std::invalid_argument(
        ToString(place) +
        " has neither auto_growth nor virtual_memory: its strategy is " +
        layer.name());
  }
  return layer;
}

std::vector<std::string> AllocatorFacade::Layers(Place place) {
  std::vector<std::string> names;
  for (const Allocator* layer = &GetAllocator(place); layer != nullptr;
       layer = layer->underlying()) {
    names.emplace_back(layer->name());
  }
  return names;
}

}  // namespace strata
