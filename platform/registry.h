#ifndef STRATA_PLATFORM_REGISTRY_H_
#define STRATA_PLATFORM_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"

namespace strata {

// The platforms of this build, in the order `auto` tries them: the lines of
// devices.def whose build option is on.
std::vector<std::string> PlatformNames();

// Builds the platform `options.platform` names; `auto` takes the first of
// PlatformNames() that has a device.
//
// Errors: std::invalid_argument naming the known platforms, or the option that
//   is wrong; std::runtime_error if the platform has no usable device, with the
//   platform's reason.
std::shared_ptr<Platform> MakePlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_PLATFORM_REGISTRY_H_
