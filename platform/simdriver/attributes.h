#ifndef STRATA_PLATFORM_SIMDRIVER_ATTRIBUTES_H_
#define STRATA_PLATFORM_SIMDRIVER_ATTRIBUTES_H_

#include <cuda.h>

#include "strata/platform/device.h"
#include "strata/platform/simdriver/driver_options.h"

namespace strata::simdriver {

// Figures of the simulated GPU, which are those of an H100 (SXM). So a program
// that selects its algorithms by such figures acts as on an H100.
//
// Source: CUDA programming guide, tables of compute capability 9.0.
inline constexpr int kMultiprocessors = 132;
inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kMaxThreadsPerMultiprocessor = 2048;
inline constexpr int kMaxBlocksPerMultiprocessor = 32;

// The value of `attribute` of device `ordinal`: 0 if the device lacks the
// feature.
int DeviceAttribute(CUdevice_attribute attribute, int ordinal, const Caps& caps,
                    const DriverOptions& options);

// The value of `attribute` of any kernel.
int FunctionAttribute(CUfunction_attribute attribute,
                      const DriverOptions& options);

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_ATTRIBUTES_H_
