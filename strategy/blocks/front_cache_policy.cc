#include "strata/strategy/blocks/front_cache_policy.h"

#include <string>

#include "strata/strategy/auto_growth/options.h"

namespace strata {
namespace {

// Largest blocks in a front cache by default: hotpath.md §6;
// docs/rules/auto_growth.md lists the cost of other sizes.
constexpr std::size_t kMemoryFirstMaxBlock = Kibibytes(64);
constexpr std::size_t kSpeedFirstMaxBlock = Mebibytes(8);

std::size_t MaxCachedBlock(const FrontCacheOptions& options,
                           bool frees_idle_chunks) {
  const std::string& mode = options.front_cache;
  ChoiceOf("strata_front_cache", "mode", mode, {"off", "memory", "speed"});
  // A cached block prevents its chunk from becoming idle.
  if (mode == "off" || frees_idle_chunks) return 0;
  if (options.front_cache_max_block_bytes != 0) {
    return options.front_cache_max_block_bytes;
  }
  return mode == "speed" ? kSpeedFirstMaxBlock : kMemoryFirstMaxBlock;
}

}  // namespace

FrontCachePolicy::FrontCachePolicy(const StrategyOptions& options)
    : max_block_bytes_(MaxCachedBlock(options.Get<FrontCacheOptions>(),
                                      FreesIdleChunks(options))),
      fits_all_(options.Get<FrontCacheOptions>().front_cache == "speed") {}

}  // namespace strata
