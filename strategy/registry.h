#ifndef STRATA_STRATEGY_REGISTRY_H_
#define STRATA_STRATEGY_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// The strategies of this build (strategies.def).
std::vector<std::string> StrategyNames();

// Builds the strategy `name` over `pool`, for the work of `stream`.
//
// Errors: std::invalid_argument naming the known strategies, or the option that
//   is wrong.
std::shared_ptr<Allocator> MakeStrategy(const std::string& name,
                                        std::shared_ptr<ChunkPool> pool,
                                        std::shared_ptr<ChainStream> stream,
                                        const StrategyOptions& options);

// The factories, one per line of strategies.def.
#define STRATA_STRATEGY(name, Class)                                          \
  std::shared_ptr<Allocator> Make##Class(std::shared_ptr<ChunkPool> pool,     \
                                         std::shared_ptr<ChainStream> stream, \
                                         const StrategyOptions& options);
#include "strata/strategy/strategies.def"
#undef STRATA_STRATEGY

}  // namespace strata

#endif  // STRATA_STRATEGY_REGISTRY_H_
