#ifndef STRATA_PLATFORM_SIMDRIVER_DRIVER_OPTIONS_H_
#define STRATA_PLATFORM_SIMDRIVER_DRIVER_OPTIONS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/platform/platform_options.h"

namespace strata::simdriver {

// Options of the stand-in driver, from the environment.
//
// Model: STRATA_SIM_DRIVER holds words `name=value` with spaces between them.
//   The names are those of the flags --strata_sim_<name>; `compute=9.0` is the
//   compute capability, `kernel_time=10us` the time that a kernel of the
//   program takes, `report=true` writes ReportText() when the process ends.
//   Device memory stores small writes unless `data` is set.
//   CUDA_VISIBLE_DEVICES selects devices as CUDA does: the list ends at the
//   first entry that names no device.
struct DriverOptions {
  DriverOptions() { platform.sim_data = "small"; }

  PlatformOptions platform;  // sim_devices: visible ones, perhaps 0
  int compute_major = 9;
  int compute_minor = 0;
  std::uint64_t kernel_ns = 10'000;  // an estimate of a small kernel
  bool report = false;
  std::vector<int> visible;  // numbers of the visible devices, by ordinal
};

// Errors: std::invalid_argument naming the variable and the word that is wrong.
DriverOptions ReadDriverOptions();

// Reads the options from texts. If `visible` is null, all devices are visible.
DriverOptions ParseDriverOptions(const char* options, const char* visible);

// The UUID of device `number`, and the UUID as text: "GPU-…".
std::array<char, 16> DeviceUuid(int number);
std::string DeviceUuidText(int number);

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_DRIVER_OPTIONS_H_
