#ifndef STRATA_STRATEGY_FACTORY_REGISTRY_H_
#define STRATA_STRATEGY_FACTORY_REGISTRY_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// How to make a strategy, and where that was written down.
struct StrategyFactory {
  using Make = std::shared_ptr<Allocator> (*)(std::shared_ptr<ChunkPool>,
                                              std::shared_ptr<ChainStream>,
                                              const StrategyOptions&);

  std::string name;  // the value of --allocator_strategy
  int priority = 0;
  // As for the factories of registry.h.
  Make make = nullptr;
  // All streams of a place share one instance; else each has its own.
  bool is_shared = false;
  const char* file = "";
  int line = 0;
  // Graph pools of a place with this strategy use it too.
  bool serves_graphs = false;
};

// The priority of the strategies of strategies.def.
inline constexpr int kBuiltInStrategyPriority = 100;

// The strategies that a name may stand for.
//
// Model: of the factories of one name, that of the highest priority is used. No
//   two have both in common, so there is no tie.
// Errors: Register throws, and nothing has changed: std::invalid_argument for
//   an empty name, a negative priority, no function, or a name and priority
//   that are taken, naming both places in the source; std::logic_error once a
//   strategy was looked up, because what a name stands for does not change.
// Threads: any thread.
// Source: tf_bfc.md §2 (AllocatorFactoryRegistry).
class StrategyFactories {
 public:
  StrategyFactories() = default;
  StrategyFactories(const StrategyFactories&) = delete;
  StrategyFactories& operator=(const StrategyFactories&) = delete;

  // Those of the process: the strategies of this build first.
  static StrategyFactories& Instance();

  void Register(const StrategyFactory& factory);
  // Forgets what was registered at that place in the source; what it has made
  // stays. Its name then stands for the next one's, or for nothing.
  void Unregister(const char* file, int line) noexcept;
  // Without duplicates, in the order in which they first appeared.
  std::vector<std::string> Names() const;
  // Nothing if the name is unknown.
  std::optional<StrategyFactory> Find(std::string_view name);

 private:
  mutable std::mutex mutex_;
  std::vector<StrategyFactory> factories_;  // guarded by mutex_
  bool was_used_ = false;                   // guarded by mutex_
};

// What the macros below make. Ends the process if Register throws: before main
// there is nobody to catch it. In a library that is loaded when a strategy was
// used already, an error is logged, and the name stays unknown.
// Lifetime: a library that is closed takes its strategies with it. No facade
//   that uses one may be left then.
class StrategyRegistrar {
 public:
  explicit StrategyRegistrar(const StrategyFactory& factory) noexcept;
  StrategyRegistrar(const StrategyRegistrar&) = delete;
  StrategyRegistrar& operator=(const StrategyRegistrar&) = delete;
  ~StrategyRegistrar();

 private:
  const char* file_ = nullptr;  // null: it is not registered
  const int line_;
};

}  // namespace strata

// Makes `--allocator_strategy=<name>` known in a program: at namespace scope,
// in any of its source files. `factory` is a StrategyFactory::Make; `name`, a
// string. A built-in strategy is replaced by a priority above 100.
//
// In a source file of a static library, the linker may leave it out.
#define STRATA_REGISTER_STRATEGY(name, priority, factory) \
  STRATA_REGISTER_STRATEGY_(__COUNTER__, name, priority, factory, false)
// The same for a strategy of which all streams of a place share one instance.
#define STRATA_REGISTER_SHARED_STRATEGY(name, priority, factory) \
  STRATA_REGISTER_STRATEGY_(__COUNTER__, name, priority, factory, true)

#define STRATA_REGISTER_STRATEGY_(counter, name, priority, factory, is_shared) \
  STRATA_REGISTER_STRATEGY_AS_(counter, name, priority, factory, is_shared)
#define STRATA_REGISTER_STRATEGY_AS_(counter, name, priority, factory, \
                                     is_shared)                        \
  [[maybe_unused]] static const ::strata::StrategyRegistrar            \
      strata_strategy_registrar_##counter(::strata::StrategyFactory{   \
          name, priority, factory, is_shared, __FILE__, __LINE__})

#endif  // STRATA_STRATEGY_FACTORY_REGISTRY_H_
