#ifndef STRATA_STRATEGY_STRATEGY_OPTIONS_H_
#define STRATA_STRATEGY_STRATEGY_OPTIONS_H_

#include <cstdint>
#include <memory>

#include "strata/base/require_cxx20.h"
#include "strata/strategy/auto_growth/options.h"
#include "strata/strategy/bfc/bfc_flags.h"
#include "strata/strategy/blocks/front_cache_options.h"
#include "strata/strategy/buddy/options.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/strategy/pool/options.h"
#include "strata/strategy/virtual_memory/options.h"

namespace strata {

class PeerAccess;

// The options of all strategies. Each strategy has a struct of its own, made
// from the options.def of its folder.
struct StrategyOptions : FrontCacheOptions,
                         AutoGrowthOptions,
                         VirtualMemoryOptions,
                         CudaMallocAsyncOptions,
                         BfcFlags,
                         BuddyOptions,
                         PoolOptions {
  // The members below are no options. The place sets them.

  // The devices that may access mapped memory; null: only the device itself.
  std::shared_ptr<PeerAccess> peers;
  // Whether chunks are managed memory, which has no pages to map.
  bool is_managed = false;
  // Copied from DecoratorOptions.
  bool cross_stream_wait = false;
  bool biased_lock = false;
};

// Errors: std::invalid_argument that names the invalid option, or two options
//   that contradict each other.
void CheckStrategyOptions(const StrategyOptions& options);

// The checks of strategies.def, in the folder of each strategy.
//
// Errors: std::invalid_argument if an option takes more memory at once than the
//   limit in MiB allows.
void CheckAutoGrowthLimit(const StrategyOptions& options,
                          std::uint64_t limit_mb);
void CheckCudaMallocAsyncLimit(const StrategyOptions& options,
                               std::uint64_t limit_mb);
void CheckBuddyLimit(const StrategyOptions& options, std::uint64_t limit_mb);

// The options at a place of the host: those that are about devices have their
// defaults.
StrategyOptions OnHost(const StrategyOptions& options);

}  // namespace strata

#endif  // STRATA_STRATEGY_STRATEGY_OPTIONS_H_
