#ifndef STRATA_STRATEGY_REGISTRY_H_
#define STRATA_STRATEGY_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/shared/shared_order.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// The strategies of this build (strategies.def), then those that the program
// registered (factory_registry.h).
std::vector<std::string> StrategyNames();

// The StrategyTraits of a strategy; none if there is no such strategy.
unsigned TraitsOf(const std::string& name);

// Checks the options of all strategies of this build.
//
// Errors: std::invalid_argument that names the invalid option, or two options
//   that contradict each other.
void CheckStrategyOptions(const StrategyOptions& options);

// Checks the options of the strategy `name`, also of one from outside the tree.
//
// Errors: std::invalid_argument if an option is invalid, or takes more memory
//   at once than the limit in MiB allows; 0: no limit.
void CheckSelectedStrategy(const std::string& name,
                           const StrategyOptions& options,
                           std::uint64_t limit_mb);

// The strategy of graph pools at a place with the strategy `name`: `name`
// itself if it serves graphs, else auto_growth.
//
// Errors: std::invalid_argument if there is no such strategy.
std::string GraphPoolStrategy(const std::string& name);

// Creates the strategy `name` for the chains of one place.
//
// Model: a strategy that streams do not share is created for each chain. A
//   shared one is created with the first chain, and each chain gets a
//   StreamView of it. Memory without streams has one chain, which uses the
//   strategy itself.
// Threads: any thread.
class StrategySource {
 public:
  // `frees` are the deferred frees of the place. Null: streams that share the
  // strategy wait for each other instead.
  //
  // Errors: std::invalid_argument that names the known strategies.
  StrategySource(const std::string& name, std::shared_ptr<ChunkPool> pool,
                 const StrategyOptions& options,
                 std::shared_ptr<DeferredFrees> frees = nullptr);

  // The strategy for the work of `stream`. No device call.
  //
  // Errors: std::invalid_argument that names the invalid option.
  std::shared_ptr<Allocator> For(std::shared_ptr<ChainStream> stream);

  // Forgets streams that have ended, where streams share a strategy. May query
  // the device. Call it before For.
  void ForgetOver() noexcept;

  // The shared instance; null before the first chain, or if streams do not
  // share the strategy.
  std::shared_ptr<Allocator> shared() const;

 private:
  const std::shared_ptr<ChunkPool> pool_;
  StrategyOptions options_;
  const std::shared_ptr<DeferredFrees> frees_;
  StrategyFactory::Make make_ = nullptr;
  bool is_shared_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<SharedOrder> order_;  // guarded by mutex_
  std::shared_ptr<Allocator> shared_;   // guarded by mutex_
};

// The factories, one per line of strategies.def, and the checks of their
// options (StrategyFactory::check). For a shared strategy, `stream` stands for
// all streams and has no uid.
#define STRATA_STRATEGY(name, Class, shared_by, traits)                       \
  std::shared_ptr<Allocator> Make##Class(std::shared_ptr<ChunkPool> pool,     \
                                         std::shared_ptr<ChainStream> stream, \
                                         const StrategyOptions& options);     \
  void Check##Class(const StrategyOptions& options, std::uint64_t limit_mb);
#include "strata/strategy/strategies.def"

}  // namespace strata

#endif  // STRATA_STRATEGY_REGISTRY_H_
