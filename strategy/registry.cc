#include "strata/strategy/registry.h"

#include <stdexcept>
#include <utility>

#include "strata/base/fork_lock.h"
#include "strata/strategy/shared/stream_view.h"

namespace strata {
namespace {

// As in the table. NOLINTNEXTLINE(readability-identifier-naming)
enum class SharedBy { stream, stream_and_graphs, place };

StrategyFactory Named(const std::string& name) {
  StrategyFactories& factories = StrategyFactories::Instance();
  if (auto found = factories.Find(name)) return *found;
  std::string known;
  for (const std::string& other : factories.Names()) {
    known += (known.empty() ? "" : ", ") + other;
  }
  throw std::invalid_argument("allocator_strategy: unknown strategy '" + name +
                              "' (known: " + known + ")");
}

// `options` as `factory` receives them.
StrategyOptions OptionsFor(const StrategyFactory& factory,
                           StrategyOptions options) {
  options.registered = OptionValues(
      WithFlagTexts(factory.options, factory.name, options.registered_texts),
      "");
  return options;
}

}  // namespace

StrategyFactories& StrategyFactories::Instance() {
  // Never destroyed. Created on first use, which may be in a registrar before
  // main.
  static StrategyFactories* const instance = [] {
    auto* factories = new StrategyFactories;
#define STRATA_STRATEGY(name, Class, shared_by, traits)           \
  factories->Register(StrategyFactory{                            \
      #name, kBuiltInStrategyPriority, &Make##Class,              \
      SharedBy::shared_by == SharedBy::place, __FILE__, __LINE__, \
      SharedBy::shared_by == SharedBy::stream_and_graphs, traits, \
      &Check##Class});
#include "strata/strategy/strategies.def"
    static const ForkLock fork_lock(factories->mutex_);
    return factories;
  }();
  return *instance;
}

std::vector<std::string> StrategyNames() {
  return StrategyFactories::Instance().Names();
}

unsigned TraitsOf(const std::string& name) {
  const auto factory = StrategyFactories::Instance().Peek(name);
  return factory ? factory->traits : unsigned{kPlainStrategy};
}

void CheckSelectedStrategy(const std::string& name,
                           const StrategyOptions& options,
                           std::uint64_t limit_mb) {
  const auto factory = StrategyFactories::Instance().Peek(name);
  if (!factory || factory->check == nullptr) return;
  factory->check(OptionsFor(*factory, options), limit_mb);
}

void CheckStrategyOptions(const StrategyOptions& options) {
#define STRATA_STRATEGY(name, Class, shared_by, traits) \
  Check##Class(options, /*limit_mb=*/0);
#include "strata/strategy/strategies.def"
}

std::string GraphPoolStrategy(const std::string& name) {
  return Named(name).serves_graphs ? name : "auto_growth";
}

StrategySource::StrategySource(const std::string& name,
                               std::shared_ptr<ChunkPool> pool,
                               const StrategyOptions& options,
                               std::shared_ptr<DeferredFrees> frees)
    : pool_(std::move(pool)), frees_(std::move(frees)) {
  const StrategyFactory factory = Named(name);
  make_ = factory.make;
  is_shared_ = factory.is_shared;
  options_ = OptionsFor(factory, options);
}

std::shared_ptr<Allocator> StrategySource::For(
    std::shared_ptr<ChainStream> stream) {
  if (!is_shared_) return make_(pool_, std::move(stream), options_);
  const std::lock_guard<std::mutex> guard(mutex_);
  if (stream->device() == nullptr) {
    // Memory without streams has one chain, so the strategy gets its state.
    if (shared_ == nullptr) shared_ = make_(pool_, stream, options_);
    return shared_;
  }
  if (shared_ == nullptr) {
    auto order = std::make_shared<SharedOrder>(*stream->device());
    shared_ = make_(pool_, order, options_);
    order_ = std::move(order);
  }
  return std::make_shared<StreamView>(shared_, order_, std::move(stream),
                                      frees_);
}

void StrategySource::ForgetOver() noexcept {
  std::shared_ptr<SharedOrder> order;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    order = order_;
  }
  if (order != nullptr) order->ForgetOver();
}

std::shared_ptr<Allocator> StrategySource::shared() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return shared_;
}

}  // namespace strata
