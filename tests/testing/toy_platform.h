#ifndef STRATA_TESTS_TESTING_TOY_PLATFORM_H_
#define STRATA_TESTS_TESTING_TOY_PLATFORM_H_

#include <memory>

#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"

namespace strata {

// The smallest platform there can be: one device whose memory is the host's
// heap and whose work is done when its call returns. It implements what Device
// requires and nothing else, so it shows that a device is one folder and one
// line (tests/install/new_device.sh puts it there).
std::shared_ptr<Platform> MakeToyPlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_TOY_PLATFORM_H_
