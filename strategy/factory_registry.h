#ifndef STRATA_STRATEGY_FACTORY_REGISTRY_H_
#define STRATA_STRATEGY_FACTORY_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Properties of a strategy that its place and the options depend on; bits.
enum StrategyTraits : unsigned {
  kPlainStrategy = 0,
  // Holds no freed memory.
  kHoldsNothing = 1U << 0,
  // Its memory is in a pool of the driver: the place sees no chunks, and no
  // request reaches the system.
  kPoolsInDriver = 1U << 1,
  // cudaIpcGetMemHandle refuses its memory.
  kNoLegacyIpcMemory = 1U << 2,
};

// A strategy's factory, and the place of its registration in the source.
struct StrategyFactory {
  using Make = std::shared_ptr<Allocator> (*)(std::shared_ptr<ChunkPool>,
                                              std::shared_ptr<ChainStream>,
                                              const StrategyOptions&);

  std::string name;  // the value of --allocator_strategy
  int priority = 0;
  // See the factories of registry.h.
  Make make = nullptr;
  // True: all streams of a place share one instance. False: each stream has
  // one.
  bool is_shared = false;
  const char* file = "";
  int line = 0;
  // Graph pools of a place with this strategy use it too.
  bool serves_graphs = false;
  unsigned traits = kPlainStrategy;  // StrategyTraits
  // Throws std::invalid_argument if its options are invalid, or take more
  // memory at once than a limit in MiB allows (0: no limit). Null: no check.
  // Options::Validate calls it for the strategies that a facade selects.
  void (*check)(const StrategyOptions& options,
                std::uint64_t limit_mb) = nullptr;
  // Each becomes the flag --NAME_OPTION. StrategyOptions::registered has the
  // values.
  std::vector<RegisteredOption> options = {};
};

// The priority of the strategies of strategies.def.
inline constexpr int kBuiltInStrategyPriority = 100;

// The registered strategies by name.
//
// Model: the factory of the highest priority serves a name. No two factories
//   share both name and priority, so there is no tie.
// Errors: Register throws, and nothing has changed. std::invalid_argument for
//   an empty name, a negative priority, a missing function, an error of
//   CheckOptions, or a pair of name and priority that is registered already;
//   the last message names both places in the source. std::logic_error after
//   the first look-up of a strategy, because the meaning of a name must not
//   change.
// Threads: any thread.
// Source: tf_bfc.md §2 (AllocatorFactoryRegistry).
class StrategyFactories {
 public:
  StrategyFactories() = default;
  StrategyFactories(const StrategyFactories&) = delete;
  StrategyFactories& operator=(const StrategyFactories&) = delete;

  // The factories of the process: the strategies of this build first.
  static StrategyFactories& Instance();

  void Register(const StrategyFactory& factory);
  // Removes the registration made at that place in the source. Strategies that
  // it created stay valid. The next factory of that name, if any, then serves
  // the name.
  void Unregister(const char* file, int line) noexcept;
  // Names without duplicates, in the order of first registration.
  std::vector<std::string> Names() const;
  // nullopt if the name is unknown.
  std::optional<StrategyFactory> Find(std::string_view name);
  // Like Find(), but strategies may still be registered afterwards.
  std::optional<StrategyFactory> Peek(std::string_view name) const;

 private:
  mutable std::mutex mutex_;
  std::vector<StrategyFactory> factories_;  // guarded by mutex_
  bool was_used_ = false;                   // guarded by mutex_
};

// Registers a strategy for the macros below. If Register throws, the process
// ends, because nothing catches exceptions before main. In a library that is
// loaded after a strategy was used, an error is logged, and the name stays
// unknown.
// Lifetime: unloading the library removes its strategies. No facade that uses
//   one of them may exist then.
class StrategyRegistrar {
 public:
  explicit StrategyRegistrar(const StrategyFactory& factory) noexcept;
  StrategyRegistrar(const StrategyRegistrar&) = delete;
  StrategyRegistrar& operator=(const StrategyRegistrar&) = delete;
  ~StrategyRegistrar();

 private:
  const char* file_ = nullptr;  // Null: not registered.
  const int line_;
};

}  // namespace strata

// Registers `name` as a value of --allocator_strategy. Use it at namespace
// scope, in any source file of a program. `factory` is a StrategyFactory::Make;
// `name` is a string. A priority above 100 replaces a built-in strategy.
// Options may follow, each also a flag (--shelf_most_pieces):
//
//   STRATA_REGISTER_STRATEGY("shelf", 100, &MakeShelf,
//                            {"most_pieces", "Uint64", "64", "Most pieces."});
//
// The linker may omit a source file of a static library, and its strategies.
#define STRATA_REGISTER_STRATEGY(name, priority, ...) \
  STRATA_REGISTER_STRATEGY_(__COUNTER__, false, name, priority, __VA_ARGS__)
// STRATA_REGISTER_STRATEGY for a strategy that all streams of a place share.
#define STRATA_REGISTER_SHARED_STRATEGY(name, priority, ...) \
  STRATA_REGISTER_STRATEGY_(__COUNTER__, true, name, priority, __VA_ARGS__)

#define STRATA_REGISTER_STRATEGY_(counter, shared, name, priority, ...) \
  STRATA_REGISTER_STRATEGY_AS_(counter, shared, name, priority, __VA_ARGS__)
#define STRATA_REGISTER_STRATEGY_AS_(counter, shared, strategy, rank, factory, \
                                     ...)                                      \
  [[maybe_unused]] static const ::strata::StrategyRegistrar                    \
      strata_strategy_registrar_##counter(                                     \
          ::strata::StrategyFactory{.name = strategy,                          \
                                    .priority = rank,                          \
                                    .make = factory,                           \
                                    .is_shared = shared,                       \
                                    .file = __FILE__,                          \
                                    .line = __LINE__,                          \
                                    .options = {__VA_ARGS__}})

#endif  // STRATA_STRATEGY_FACTORY_REGISTRY_H_
