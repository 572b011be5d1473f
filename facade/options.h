#ifndef STRATA_FACADE_OPTIONS_H_
#define STRATA_FACADE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/allocation/decorators/decorator_options.h"
#include "strata/facade/settings/host_strategy.h"
#include "strata/facade/settings/strategy_flags.h"
#include "strata/platform/platform_options.h"

namespace strata {

// All settings of a facade. options.def describes each field and its default.
struct Options {
  std::string allocator_strategy = "auto";
  std::string ipc = "posix";  // or "legacy"
  bool use_system_allocator = false;
  bool use_cuda_malloc_async_allocator = false;
  bool use_cuda_managed_memory = false;
  bool enable_gpu_memory_usage_log = false;
  bool enable_gpu_memory_usage_log_mb = true;
  PlatformOptions platform;
  DecoratorOptions decorators;
  StrategyFlags strategy;
  HostOptions host;
  std::uint64_t gpu_memory_limit_mb = 0;
  bool sync_after_alloc = false;
  std::int64_t alloc_fill_value = -1;
  bool init_allocated_mem = false;
  bool check_streams = false;
  bool share_idle = true;

  // Parses "allocator_strategy=auto_growth,strata_sim_memory=8GiB": option
  // names and values, separated by commas, semicolons or spaces. A Bool needs
  // no value. A value that contains a separator is written in single quotes;
  // two single quotes inside it stand for one.
  //
  // Errors: std::invalid_argument naming the unknown option (and the known
  //   ones), the option that is set twice, or the option and its invalid value;
  //   also the errors of Validate.
  static Options Parse(std::string_view text);

  // Sets one option by name. A name of RemovedOptions() sets nothing, whatever
  // its value; the first use in a process logs a warning. Errors as Parse,
  // without Validate.
  void Set(std::string_view name, std::string_view value);

  // Errors: std::invalid_argument naming the option, or both options if two
  //   contradict each other. `strategy_was_set`: allocator_strategy was chosen,
  //   not left at its default. `strategy_is_known`: the caller implements the
  //   strategy, even if this build does not.
  void Validate(bool strategy_was_set, bool strategy_is_known = false) const;

  // The strategy in force, aliases resolved; "auto" if the strategy is chosen
  // per device (auto_strategy.h).
  std::string Strategy() const;
  // The byte that fills allocations, if any.
  std::optional<unsigned char> FillByte() const;
};

// An option, for documentation: a row of options.def, or an option of a
// strategy or decorator that the program registered.
struct OptionInfo {
  const char* name;
  const char* type;
  std::string default_value;
  const char* help;
  bool is_registered = false;  // by the program
};

// Errors: std::invalid_argument if a registered option has the name of another.
std::vector<OptionInfo> OptionTable();

// One row of removed_options.def: an option without effect.
struct RemovedOption {
  const char* name;
  const char* type;
  const char* default_value;
  const char* why;
};

std::vector<RemovedOption> RemovedOptions();

// The values in force, in the syntax of Parse, in the order of OptionTable().
std::string ToString(const Options& options);

}  // namespace strata

#endif  // STRATA_FACADE_OPTIONS_H_
