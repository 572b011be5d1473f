#include "strata/strategy/bfc/options.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "strata/allocation/chunk_pool.h"
#include "strata/strategy/bfc/limits.h"
#include "strata/strategy/bfc/memory_log.h"
#include "strata/strategy/bfc/memory_map.h"

namespace strata {
namespace {

// Which of two values an option has.
template <class Value>
Value Choose(const char* option, const std::string& text, const char* first,
             Value first_value, const char* second, Value second_value) {
  if (text == first) return first_value;
  if (text == second) return second_value;
  throw std::invalid_argument(std::string(option) + ": unknown value '" + text +
                              "' (known: " + first + ", " + second + ")");
}

using Report = std::function<void(const BfcSnapshot&)>;

// What is called when memory is exhausted; null: nothing.
Report MakeReport(const StrategyOptions& options) {
  Report map;
  Report log;
  if (!options.bfc_memory_map_prefix.empty()) {
    map = MakeMemoryMapSink(options.bfc_memory_map_prefix);
  }
  if (options.bfc_memory_log_lines != 0) {
    log = MakeMemoryLogSink(options.bfc_memory_log_lines);
  }
  if (map == nullptr) return log;
  if (log == nullptr) return map;
  return [map, log](const BfcSnapshot& snapshot) {
    log(snapshot);
    map(snapshot);
  };
}

// Whether the memory may exceed the device's, at whatever place it is.
bool IsManaged(const ChunkPool& pool) {
  const Allocator* system = &pool;
  while (system->underlying() != nullptr) system = system->underlying();
  return std::string_view(system->name()) == "managed";
}

}  // namespace

BfcOptions ReadBfcOptions(const StrategyOptions& options, const ChunkPool& pool,
                          const Device* device) {
  BfcOptions bfc = ReadBfcOptions(options);
  bfc.memory_map_sink = MakeReport(options);
  const PlaceKind kind = pool.place().kind;
  const bool sets_limit = !options.bfc_memory_fraction.empty() ||
                          options.bfc_system_memory_in_mb != 0;
  if (!sets_limit || device == nullptr ||
      (kind != PlaceKind::kDevice && kind != PlaceKind::kManaged)) {
    return bfc;
  }
  const Caps& caps = device->caps();
  CheckBfcLimits(options, caps);
  bfc.limit_of = [options, is_managed = IsManaged(pool),
                  major = caps.compute_major](std::size_t free_bytes,
                                              std::size_t total_bytes) {
    return ResolveBfcLimit(options,
                           {total_bytes, free_bytes, major, is_managed});
  };
  return bfc;
}

BfcOptions ReadBfcOptions(const StrategyOptions& options) {
  CheckBfcLimits(options);
  BfcOptions bfc;
  bfc.allow_growth = options.bfc_allow_growth;
  bfc.garbage_collection = options.bfc_garbage_collection;
  bfc.coalesce_regions = options.bfc_coalesce_regions;
  bfc.fragmentation_fraction = options.bfc_fragmentation_fraction;
  bfc.memory_limit_bytes = options.bfc_memory_limit_bytes;
  bfc.keep_annotations = options.bfc_keep_annotations;
  bfc.placement = Choose("bfc_placement", options.bfc_placement, "compat",
                         BfcPlacement::kCompat, "fast", BfcPlacement::kFast);
  bfc.backpedal = Choose("bfc_backpedal", options.bfc_backpedal, "always",
                         BfcBackpedal::kAlways, "once", BfcBackpedal::kOnce);
  if (!(bfc.fragmentation_fraction >= 0 && bfc.fragmentation_fraction <= 1)) {
    throw std::invalid_argument(
        "bfc_fragmentation_fraction: must be from 0 to 1");
  }
  if (options.bfc_timestamps) {
    if (bfc.placement == BfcPlacement::kFast) {
      throw std::invalid_argument(
          "bfc_timestamps contradicts bfc_placement=fast: that index does not "
          "search by the time of the free");
    }
    bfc.counter = std::make_shared<SharedCounter>();
  }
  return bfc;
}

}  // namespace strata
