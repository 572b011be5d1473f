#ifndef STRATA_PLATFORM_SIMDRIVER_COUNTERS_H_
#define STRATA_PLATFORM_SIMDRIVER_COUNTERS_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/platform/simdriver/entries.h"
#include "strata/platform/simdriver/sim_driver_info.h"

namespace strata::simdriver {

// Counts a kernel that the program launched or captured, and that does nothing.
void CountSkippedKernel();

// The result of `name` (static), a function of the driver API that the stand-in
// lacks: CUDA_ERROR_NOT_SUPPORTED, which is counted, or as Ready() says.
CUresult Unimplemented(const char* name);

// Everything that was counted, in lines: kernels, unimplemented calls, and
// copies of device memory to the host with their places in Python.
std::string ReportText();
// Writes the report to stderr when the process ends.
void ReportAtExit();

// Exported under kSimDriverInfoName, kSimDriverReportName, kSimDriverStateName.
int DescribeSimDriver(SimDriverInfo* info) __asm__("cuStrataSimDriverInfo")
    STRATA_SIM_EXPORT;
int WriteReport(char* text, std::uint64_t bytes) __asm__("cuStrataSimReport")
    STRATA_SIM_EXPORT;
int DescribeSimDriverState(char* text, std::size_t bytes) __asm__(
    "cuStrataSimDriverState") STRATA_SIM_EXPORT;

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_COUNTERS_H_
