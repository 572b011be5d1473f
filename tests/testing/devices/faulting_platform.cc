#include "strata/tests/testing/devices/faulting_platform.h"

#include <cstddef>

namespace strata {

FaultingPlatform::FaultingPlatform(const PlatformOptions& options,
                                   Faults faults)
    : sim_(options), state_(&sim_) {
  for (int i = 0; i < sim_.device_count(); ++i) {
    devices_.push_back(
        std::make_unique<FaultingDevice>(&sim_.sim_device(i), &state_, faults));
  }
}

FaultingPlatform::~FaultingPlatform() = default;

Device& FaultingPlatform::device(int ordinal) {
  return *devices_[static_cast<std::size_t>(ordinal)];
}

}  // namespace strata
