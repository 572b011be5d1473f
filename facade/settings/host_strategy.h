#ifndef STRATA_FACADE_SETTINGS_HOST_STRATEGY_H_
#define STRATA_FACADE_SETTINGS_HOST_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// Options of host memory. options.def describes each field.
struct HostOptions {
  std::string strategy = "auto";
  std::string pinned_strategy = "auto";
  bool use_auto_growth_pinned_allocator = false;
  std::uint64_t limit_bytes = 0;
  std::uint64_t pinned_limit_bytes = 0;
  bool numa = false;
  bool lock_pages = true;
  double warn_large_fraction = 0.1;
  double warn_total_fraction = 0.5;
  bool tf_environment = false;

  // Errors: std::invalid_argument naming the option that is out of range.
  //   Options::Validate checks for contradictions.
  void Validate() const;
};

// The strategy of one place of the host.
struct HostStrategy {
  std::string name;             // of a strategy; "direct": no pool
  std::size_t limit_bytes = 0;  // limit on bytes held from the system; 0: none
  const char* limit_flag = "";  // name of the flag or environment variable

  friend bool operator==(const HostStrategy& a, const HostStrategy& b) {
    return a.name == b.name && a.limit_bytes == b.limit_bytes;
  }
};

// Looks up an environment variable; null if it is not set. An empty one counts
// as not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// The strategy of pageable host memory. Unless the options name one: bfc if the
// environment of TensorFlow says so and strata_tf_environment is on; else pool
// for a NUMA node or where chunks are visited, because there each piece of the
// system's memory costs more than a malloc; else direct.
//
// Errors: std::invalid_argument naming an environment variable and its invalid
//   value.
// Source: tf_bfc.md §2 (ProcessState::GetCPUAllocator), §1j.
HostStrategy StrategyOfHost(const HostOptions& options, bool is_numa_node,
                            bool has_visitors,
                            const EnvironmentLookup& environment);

// The strategy of pinned memory. Unless the options name one: auto_growth,
// because the driver pins memory slowly; direct if `is_stream_safe` is false,
// because then no layer waits for the work that uses a freed block.
//
// Errors: as StrategyOfHost.
HostStrategy StrategyOfPinned(const HostOptions& options, bool is_stream_safe,
                              const EnvironmentLookup& environment);

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_HOST_STRATEGY_H_
