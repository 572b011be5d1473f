#ifndef STRATA_TESTS_TESTING_DEVICES_TOY_PLATFORM_H_
#define STRATA_TESTS_TESTING_DEVICES_TOY_PLATFORM_H_

#include <memory>

#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"

namespace strata {

// The smallest possible platform: one device whose memory is the host's heap,
// and whose work is complete when its call returns. It implements exactly the
// required part of Device. It shows that a device is one folder and one line
// (tests/install/new_device.sh adds it).
std::shared_ptr<Platform> MakeToyPlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_TOY_PLATFORM_H_
