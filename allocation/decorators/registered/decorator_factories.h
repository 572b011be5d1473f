#ifndef STRATA_ALLOCATION_DECORATORS_REGISTERED_DECORATOR_FACTORIES_H_
#define STRATA_ALLOCATION_DECORATORS_REGISTERED_DECORATOR_FACTORIES_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/allocation/option_values.h"

namespace strata {

// Position of a registered decorator: next to a layer of decorators.def,
// whether the options select that layer or not, or above the strategy.
struct DecoratorPosition {
  std::string layer;
  bool is_above = true;

  bool operator==(const DecoratorPosition& other) const {
    return layer == other.layer && is_above == other.is_above;
  }
};

inline DecoratorPosition Above(std::string layer) {
  return {std::move(layer), true};
}
inline DecoratorPosition Below(std::string layer) {
  return {std::move(layer), false};
}
// "above retry".
std::string ToString(const DecoratorPosition& position);

// An option of a registered decorator, and the values of all of them.
using DecoratorOption = RegisteredOption;
using DecoratorSettings = OptionValues;

// A decorator from outside the tree.
struct DecoratorFactory {
  // Returns the new layer over `underlying`. State that the chains of a place
  // share comes from ChainContext::Shared.
  using Make = std::shared_ptr<Allocator> (*)(
      std::shared_ptr<Allocator> underlying, const DecoratorSettings& settings,
      const ChainContext& context);

  std::string name;  // of the layer
  DecoratorPosition position;
  Make make = nullptr;
  std::vector<DecoratorOption> options;
  const char* file = "";  // place of the registration in the source
  int line = 0;
};

// A registered decorator that the options of a facade select.
struct SelectedDecorator {
  DecoratorFactory factory;
  DecoratorSettings settings;
};

// The registered decorators by name.
//
// Errors: Register throws std::invalid_argument, and nothing has changed: a
//   name that is empty or not unique, a layer that does not exist, a missing
//   function, an error of CheckOptions. The message names the place in the
//   source.
// Threads: any thread.
class DecoratorFactories {
 public:
  // `layers` are the layers of decorators.def.
  explicit DecoratorFactories(std::vector<std::string> layers)
      : layers_(std::move(layers)) {}
  DecoratorFactories(const DecoratorFactories&) = delete;
  DecoratorFactories& operator=(const DecoratorFactories&) = delete;

  // The factories of the process.
  static DecoratorFactories& Instance();

  void Register(const DecoratorFactory& factory);
  // Layers that the factory made stay valid.
  void Unregister(std::string_view name) noexcept;
  // In the order of their names: of two at one position, the first is outside.
  std::vector<DecoratorFactory> All() const;
  bool Has(std::string_view name) const;
  // Parses a value of --strata_decorators: names, separated by commas, each
  // with its options: "quota:most_live=10:warn,other". `texts` are the options
  // that flags set; `text` has precedence. In the order of All().
  //
  // Errors: std::invalid_argument naming the decorator and the option.
  std::vector<SelectedDecorator> Select(std::string_view text,
                                        const OptionTexts& texts = {}) const;

 private:
  const std::vector<std::string> layers_;
  mutable std::mutex mutex_;
  std::vector<DecoratorFactory> factories_;  // by name; guarded by mutex_
};

// Registers a decorator for the macro below. If Register throws, the process
// ends, because nothing catches exceptions before main.
// Lifetime: unloading the library removes its decorators. No facade that uses
//   one of them may exist then.
class DecoratorRegistrar {
 public:
  explicit DecoratorRegistrar(const DecoratorFactory& factory) noexcept;
  DecoratorRegistrar(const DecoratorRegistrar&) = delete;
  DecoratorRegistrar& operator=(const DecoratorRegistrar&) = delete;
  ~DecoratorRegistrar();

 private:
  const std::string name_;
};

}  // namespace strata

// Registers a decorator, which --strata_decorators=NAME adds to the chains. Use
// it at namespace scope, in any source file of a program:
//
//   STRATA_REGISTER_DECORATOR("quota", strata::Below("stat"), &MakeQuota,
//                             {"most_live", "Uint64", "100", "Most blocks."});
//
// `factory` is a DecoratorFactory::Make; the last arguments are its options,
// each also a flag: --quota_most_live. The linker may omit a source file of a
// static library, and its decorators.
#define STRATA_REGISTER_DECORATOR(name, position, ...) \
  STRATA_REGISTER_DECORATOR_(__COUNTER__, name, position, __VA_ARGS__)
#define STRATA_REGISTER_DECORATOR_(counter, name, position, ...) \
  STRATA_REGISTER_DECORATOR_AS_(counter, name, position, __VA_ARGS__)
#define STRATA_REGISTER_DECORATOR_AS_(counter, name, position, factory, ...) \
  [[maybe_unused]] static const ::strata::DecoratorRegistrar                 \
      strata_decorator_registrar_##counter(::strata::DecoratorFactory{       \
          name, position, factory, {__VA_ARGS__}, __FILE__, __LINE__})

#endif  // STRATA_ALLOCATION_DECORATORS_REGISTERED_DECORATOR_FACTORIES_H_
