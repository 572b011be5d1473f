#include "strata/strategy/bfc/options.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/strategy/bfc/reports/memory_log.h"
#include "strata/strategy/bfc/reports/memory_map.h"

namespace strata {
namespace {

// "ascending", "descending", or one of them with "-exact".
BfcEndPolicy ReadEnd(const char* option, const std::string& text) {
  const std::size_t choice = ChoiceOf(
      option, "value", text,
      {"ascending", "descending", "ascending-exact", "descending-exact"});
  BfcEndPolicy policy;
  policy.splits_exactly = choice >= 2;
  if (choice % 2 == 1) {
    policy.hole_order = OrderedIndex::AddressOrder::kDescending;
  }
  return policy;
}

// The callback for exhausted memory; null if no option asks for one.
std::function<void(const BfcSnapshot&)> MakeSink(const BfcFlags& options) {
  std::vector<std::function<void(const BfcSnapshot&)>> sinks;
  if (!options.bfc_memory_map_prefix.empty()) {
    sinks.push_back(MakeMemoryMapSink(options.bfc_memory_map_prefix));
  }
  if (options.bfc_memory_log_lines != 0) {
    sinks.push_back(MakeMemoryLogSink(options.bfc_memory_log_lines));
  }
  if (sinks.empty()) return nullptr;
  return [sinks = std::move(sinks)](const BfcSnapshot& snapshot) {
    for (const auto& sink : sinks) sink(snapshot);
  };
}

}  // namespace

BfcOptions ReadBfcOptions(const StrategyOptions& all) {
  const auto& options = all.Get<BfcFlags>();
  BfcOptions bfc;
  bfc.allow_growth = options.bfc_allow_growth;
  bfc.garbage_collection = options.bfc_garbage_collection;
  bfc.coalesce_regions = options.bfc_coalesce_regions;
  bfc.fragmentation_fraction = options.bfc_fragmentation_fraction;
  bfc.memory_limit_bytes = options.bfc_memory_limit_bytes;
  if (bfc.memory_limit_bytes != 0) bfc.limit_flag = "--bfc_memory_limit";
  bfc.keep_annotations = options.bfc_keep_annotations;
  bfc.placement = static_cast<BfcPlacement>(ChoiceOf(
      "bfc_placement", "value", options.bfc_placement, {"compat", "fast"}));
  bfc.backpedal = static_cast<BfcBackpedal>(ChoiceOf(
      "bfc_backpedal", "value", options.bfc_backpedal, {"always", "once"}));
  if (!(bfc.fragmentation_fraction >= 0 && bfc.fragmentation_fraction <= 1)) {
    throw std::invalid_argument(
        "bfc_fragmentation_fraction: must be from 0 to 1");
  }
  if (bfc.memory_limit_bytes != 0 && (!options.bfc_memory_fraction.empty() ||
                                      options.bfc_system_memory_in_mb != 0)) {
    throw std::invalid_argument(std::string("bfc_memory_limit contradicts ") +
                                (options.bfc_memory_fraction.empty()
                                     ? "bfc_system_memory_in_mb"
                                     : "bfc_memory_fraction") +
                                ": each sets the memory that bfc may have");
  }
  if (options.bfc_timestamps) {
    if (bfc.placement == BfcPlacement::kFast) {
      throw std::invalid_argument(
          "bfc_timestamps contradicts bfc_placement=fast: that index does not "
          "search by the time of the free");
    }
    bfc.counter = std::make_shared<SharedCounter>();
  }
  bfc.has_two_ends = options.bfc_two_ended;
  if (bfc.has_two_ends) bfc.allow_growth = false;
  const FrontCachePolicy front_cache(all);
  if (bfc.placement == BfcPlacement::kFast && !bfc.has_two_ends) {
    bfc.front_cache = front_cache;
  }
  bfc.lower = ReadEnd("bfc_lower_end", options.bfc_lower_end);
  bfc.upper = ReadEnd("bfc_upper_end", options.bfc_upper_end);
  for (const auto& [option, end] : {std::pair("bfc_lower_end", bfc.lower),
                                    std::pair("bfc_upper_end", bfc.upper)}) {
    if (bfc.placement == BfcPlacement::kFast &&
        end.hole_order == OrderedIndex::AddressOrder::kDescending) {
      throw std::invalid_argument(
          std::string(option) +
          "=descending contradicts bfc_placement=fast: that index does not "
          "order holes by address");
    }
  }
  bfc.memory_map_sink = MakeSink(options);
  return bfc;
}

BfcOptions ReadBfcOptions(const StrategyOptions& all, const Device* device,
                          bool is_managed) {
  const auto& options = all.Get<BfcFlags>();
  BfcOptions bfc = ReadBfcOptions(all);
  if (device == nullptr || (options.bfc_memory_fraction.empty() &&
                            options.bfc_system_memory_in_mb == 0)) {
    return bfc;
  }
  CheckBfcLimits(options, device->caps());
  bfc.limit_flag = options.bfc_memory_fraction.empty()
                       ? "--bfc_system_memory_in_mb"
                       : "--bfc_memory_fraction";
  BfcDeviceMemory memory;
  memory.compute_major = device->caps().compute_major;
  memory.is_managed = is_managed;
  bfc.limit_of = [options, memory](std::size_t free_bytes,
                                   std::size_t total_bytes) {
    BfcDeviceMemory now = memory;
    now.free_bytes = free_bytes;
    now.total_bytes = total_bytes;
    return ResolveBfcLimit(options, now);
  };
  return bfc;
}

}  // namespace strata
