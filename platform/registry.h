#ifndef STRATA_PLATFORM_REGISTRY_H_
#define STRATA_PLATFORM_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"

namespace strata {

// The platforms of this build, in the order in which `auto` tries them: the
// lines of devices.def whose build option is on.
std::vector<std::string> PlatformNames();

// Builds the platform that `options.platform` names. `auto` selects the first
// platform of PlatformNames() that has a device.
//
// Errors: std::invalid_argument that names the known platforms or the wrong
//   option. std::runtime_error with the platform's reason if the platform has
//   no usable device.
std::shared_ptr<Platform> MakePlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_PLATFORM_REGISTRY_H_
