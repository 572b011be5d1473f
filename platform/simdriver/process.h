#ifndef STRATA_PLATFORM_SIMDRIVER_PROCESS_H_
#define STRATA_PLATFORM_SIMDRIVER_PROCESS_H_

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/simdriver/driver_options.h"
#include "strata/platform/status.h"

namespace strata::simdriver {

// The state of the driver in this process. cuInit makes it; nothing destroys
// it, as a driver's functions may be called until the process ends.
//
// Threads: any thread.
struct Process {
  DriverOptions options;
  SimPlatform platform;

  // The pool of cuMemAllocAsync for each device; null: its default pool.
  std::vector<std::atomic<CUmemoryPool>> current_pools;

  explicit Process(const DriverOptions& given)
      : options(given),
        platform(given.platform),
        current_pools(static_cast<std::size_t>(platform.device_count())) {}
};

// Makes the state unless it exists. Writes to stderr if an option is wrong.
CUresult StartProcess();

// Null before cuInit succeeded.
Process* FindProcess();

// CUDA_SUCCESS, or CUDA_ERROR_NOT_INITIALIZED before cuInit and in a child that
// was forked after it.
CUresult Ready();
// Whether the process was forked from one that had called cuInit.
bool IsForkedChild();

// A Status has the number of the CUresult with the same meaning.
inline CUresult ToResult(Status status) {
  return static_cast<CUresult>(status);
}

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_PROCESS_H_
