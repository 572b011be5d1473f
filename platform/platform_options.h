#ifndef STRATA_PLATFORM_PLATFORM_OPTIONS_H_
#define STRATA_PLATFORM_PLATFORM_OPTIONS_H_

#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// The options of a Platform. A platform reads the fields that start with its
// name.
struct PlatformOptions {
  std::string platform = "auto";  // "auto" or a name in devices.def
  // Path of the file that records every call of every device (call_trace.h).
  // Empty: none.
  std::string device_trace_path;

  int sim_devices = 1;
  std::uint64_t sim_memory_bytes = std::uint64_t{80} << 30;  // of each device
  // Calls to fail, as in fault_injector.h: "mem_alloc:nth=3,status=2;…".
  std::string sim_faults;
  // The data that a simulated device stores: "phantom" (none), "small" (writes
  // of at most 4 KiB), "backed" (every byte written) or "poison" (also marks
  // fresh and freed memory).
  std::string sim_data = "phantom";
  bool sim_fabric = false;  // true if fabric handles may share memory
  bool sim_rdma = false;    // true if memory may be created for network cards
  std::uint64_t sim_seed = 1;  // seed of everything random
  // The time at which work in streams runs: "inline", "lazy", "seeded", "timed"
  // or "manual" (progress_policy.h).
  std::string sim_progress = "inline";
  // Whether calls that free memory at once wait for work: "sync", "nosync" or
  // "seeded" (progress_policy.h).
  std::string sim_free = "sync";
  // Whether calls are checked for hazards: "off", "report" or "abort"
  // (hazard_monitor.h).
  std::string sim_check_hazards = "off";
  // Memory that another process allocates and frees, as in capacity_steps.h:
  // "mem_alloc:nth=100,take=10GiB;…".
  std::string sim_capacity_steps;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_PLATFORM_OPTIONS_H_
