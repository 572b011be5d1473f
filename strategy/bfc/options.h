#ifndef STRATA_STRATEGY_BFC_OPTIONS_H_
#define STRATA_STRATEGY_BFC_OPTIONS_H_

#include <cstddef>
#include <functional>

#include "strata/platform/device.h"
#include "strata/strategy/bfc/arena/arena.h"
#include "strata/strategy/bfc/growth_plan.h"
#include "strata/strategy/bfc/limits.h"
#include "strata/strategy/bfc/reports/snapshot.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Options of a BfcAllocator. The flags of options.def set them (BfcFlags). The
// numbers name rules of tf_bfc.md.
struct BfcOptions : BfcArenaRules {
  // False: one region takes the whole limit, at the first allocation.
  bool allow_growth = true;
  bool garbage_collection = true;  // R31
  double fragmentation_fraction = 0;
  BfcBackpedal backpedal = BfcBackpedal::kAlways;
  // Most bytes to hold; 0: the memory of the place.
  std::size_t memory_limit_bytes = 0;
  // The flag that sets the limit, for failures; "": the flag of the pool.
  const char* limit_flag = "";
  // Computes the limit from the free and total bytes of the device, if
  // memory_limit_bytes is 0. Called once, at the first growth, with no lock
  // held. Null: all memory.
  std::function<BfcMemoryLimit(std::size_t free_bytes, std::size_t total_bytes)>
      limit_of;
  // All work that uses memory is in the streams of the place. Then a wait for
  // these streams replaces the frontier.
  bool streams_are_all = false;
  // Called with the state when a request fails, before it waits for other
  // threads to free memory. Called again only after a request as large has been
  // met. No lock is held. Null: no call.
  std::function<void(const BfcSnapshot&)> memory_map_sink;
};

// Reads the options that start with bfc_, except those that depend on a device.
//
// Errors: std::invalid_argument that names the invalid option, or two options
//   that contradict each other.
BfcOptions ReadBfcOptions(const StrategyOptions& all);

// Reads all options, for memory of `device` (null: of the host), managed or
// not. No device call.
//
// Errors: also those of CheckBfcLimits for the device.
BfcOptions ReadBfcOptions(const StrategyOptions& all, const Device* device,
                          bool is_managed);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_OPTIONS_H_
