#ifndef STRATA_TESTS_TESTING_DEVICES_REFUSING_DEVICE_H_
#define STRATA_TESTS_TESTING_DEVICES_REFUSING_DEVICE_H_

#include "strata/platform/device.h"

namespace strata {

// A device that refuses every call. Base class of devices that implement a few
// calls.
class RefusingDevice : public Device {
 public:
  int ordinal() const override { return 0; }
  const Caps& caps() const override { return caps_; }

  Stream LegacyStream() override { return Stream{this, 0, kLegacyStreamUid}; }
  Stream PerThreadStream() override { return Stream{this, 0, 2}; }

 protected:
  Caps caps_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_REFUSING_DEVICE_H_
