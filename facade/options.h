#ifndef STRATA_FACADE_OPTIONS_H_
#define STRATA_FACADE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/allocation/decorator_options.h"
#include "strata/facade/host_strategy.h"
#include "strata/platform/platform_options.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// All a facade is built from. The meaning and default of every field are those
// of its option in options.def.
struct Options {
  std::string allocator_strategy = "auto_growth";
  std::string ipc = "posix";  // or "legacy"
  bool use_system_allocator = false;
  bool use_cuda_malloc_async_allocator = false;
  bool use_cuda_managed_memory = false;
  bool enable_gpu_memory_usage_log = false;
  bool enable_gpu_memory_usage_log_mb = true;
  PlatformOptions platform;
  DecoratorOptions decorators;
  StrategyOptions strategy;
  HostOptions host;
  std::uint64_t gpu_memory_limit_mb = 0;
  bool sync_after_alloc = false;
  std::int64_t alloc_fill_value = -1;
  bool init_allocated_mem = false;
  bool check_streams = false;
  bool share_idle = true;

  // Reads "allocator_strategy=auto_growth,strata_sim_memory=8GiB": option names
  // and values, separated by commas, semicolons or spaces. A Bool may stand
  // without value. A value that holds a separator is written in single quotes,
  // in which two quotes in a row stand for one.
  //
  // Errors: std::invalid_argument naming the unknown option (and those known),
  //   or the option and the value it cannot take; also what Validate throws.
  static Options Parse(std::string_view text);

  // Sets one option by name. A name of RemovedOptions() sets nothing, whatever
  // its value, and is warned of once in a process. Errors as Parse, without
  // Validate.
  void Set(std::string_view name, std::string_view value);

  // Errors: std::invalid_argument naming the option, or both options if two
  //   contradict each other. `strategy_was_set` says that allocator_strategy
  //   was chosen, not left at its default; `strategy_is_known` that the caller
  //   has it, whether or not this build does.
  void Validate(bool strategy_was_set, bool strategy_is_known = false) const;

  // The strategy in force, aliases resolved; "auto" if each device gets its own
  // (auto_strategy.h).
  std::string Strategy() const;
  // What allocations are filled with, if anything.
  std::optional<unsigned char> FillByte() const;
};

// One row of options.def, for documentation.
struct OptionInfo {
  const char* name;
  const char* type;
  std::string default_value;
  const char* help;
};

std::vector<OptionInfo> OptionTable();

// One row of removed_options.def: an option that has no effect any more.
struct RemovedOption {
  const char* name;
  const char* type;
  const char* why;
};

std::vector<RemovedOption> RemovedOptions();

// The values in force, as Parse reads them, in the order of options.def.
std::string ToString(const Options& options);

}  // namespace strata

#endif  // STRATA_FACADE_OPTIONS_H_
