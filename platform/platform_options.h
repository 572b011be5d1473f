#ifndef STRATA_PLATFORM_PLATFORM_OPTIONS_H_
#define STRATA_PLATFORM_PLATFORM_OPTIONS_H_

#include <cstdint>
#include <string>

namespace strata {

// How to build a Platform. A platform reads the fields that carry its name.
struct PlatformOptions {
  std::string platform = "auto";  // "auto" or a name in devices.def
  // Where to write every call of every device (call_trace.h); empty: nowhere.
  std::string device_trace_path;

  int sim_devices = 1;
  std::uint64_t sim_memory_bytes = std::uint64_t{80} << 30;  // of each device
  // Calls to fail, as in fault_injector.h: "mem_alloc:nth=3,status=2;…".
  std::string sim_faults;
  std::uint64_t sim_seed = 1;  // of faults with a probability
};

}  // namespace strata

#endif  // STRATA_PLATFORM_PLATFORM_OPTIONS_H_
