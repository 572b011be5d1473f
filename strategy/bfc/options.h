#ifndef STRATA_STRATEGY_BFC_OPTIONS_H_
#define STRATA_STRATEGY_BFC_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "strata/platform/device.h"
#include "strata/strategy/bfc/arena.h"
#include "strata/strategy/bfc/bfc_index.h"
#include "strata/strategy/bfc/growth_plan.h"
#include "strata/strategy/bfc/limits.h"
#include "strata/strategy/bfc/snapshot.h"
#include "strata/strategy/bfc/timestamps.h"
#include "strata/strategy/front_cache_policy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// What a BfcAllocator is built with. The flags that set these are the lines of
// facade/options.def that begin with bfc_; rules are those of tf_bfc.md.
struct BfcOptions {
  // Otherwise one region takes the whole limit, at the first allocation.
  bool allow_growth = true;
  bool garbage_collection = true;  // R31
  bool coalesce_regions = false;   // R24
  double fragmentation_fraction = 0;
  BfcPlacement placement = BfcPlacement::kCompat;
  // With kFast and one end only: the others promise their addresses.
  std::optional<FrontCachePolicy> front_cache;
  BfcBackpedal backpedal = BfcBackpedal::kAlways;
  // Most bytes to hold; 0: what the place has.
  std::size_t memory_limit_bytes = 0;
  // The flag that sets the limit, for failures; "": the pool has it.
  const char* limit_flag = "";
  // With memory_limit_bytes 0: the limit, by what the device says it has free
  // and in all. Asked once, at the first growth, with no lock held. Null: all.
  std::function<BfcMemoryLimit(std::size_t free_bytes, std::size_t total_bytes)>
      limit_of;
  // Stamps frees; shared with whoever else stamps. Null: no stamps.
  std::shared_ptr<SharedCounter> counter;
  // All work that uses memory is in the streams of the place, so that who has
  // waited for them needs no frontier.
  bool streams_are_all = false;
  // Keeps what the program was doing at each allocation, and the bytes in use
  // after each of the last 4096 actions.
  bool keep_annotations = false;
  // Requests with kUpperEnd are served from the upper end of the one region; it
  // does not grow (R63).
  bool has_two_ends = false;
  BfcEndPolicy lower;  // also without two ends (R66)
  BfcEndPolicy upper;
  // Called with the state when nothing that could be done at once met a
  // request, before it waits for others to free memory; once until a request as
  // large is met again. No lock is held. Null: nobody.
  std::function<void(const BfcSnapshot&)> memory_map_sink;
};

// The options that start with bfc_, but for those that a device decides on.
//
// Errors: std::invalid_argument naming the option that is wrong, or both
//   options if two contradict each other.
BfcOptions ReadBfcOptions(const StrategyOptions& options);

// All of them, for memory of `device` (null: of the host), which is managed or
// not. No device call.
//
// Errors: also those of CheckBfcLimits for the device.
BfcOptions ReadBfcOptions(const StrategyOptions& options, const Device* device,
                          bool is_managed);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_OPTIONS_H_
