#ifndef STRATA_TESTS_TESTING_FAULTING_PLATFORM_H_
#define STRATA_TESTS_TESTING_FAULTING_PLATFORM_H_

#include <memory>
#include <vector>

#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tests/testing/faulted_state.h"
#include "strata/tests/testing/faulting_device.h"

namespace strata {

// Simulated devices on which every call fails once before it is made, or which
// do what they are asked though their caller's heap fails, as a driver does.
//
// Model: with Faults::kEveryCall a call is first made with an injected failure.
// A test failure is
//   reported unless it returns what was injected, leaves its out-parameters
//   alone and leaves everything that FaultedState can see as it was. Then the
//   call is made as asked, and only that counts for the caller. Calls made by
//   host functions, and calls on a device with a sticky error, are made as
//   asked: the device has its own reasons to refuse them.
// Threads: one.
// Lifetime: owns the simulated platform.
class FaultingPlatform final : public Platform {
 public:
  // Errors: as SimPlatform.
  explicit FaultingPlatform(const PlatformOptions& options,
                            Faults faults = Faults::kEveryCall);
  ~FaultingPlatform() override;

  const char* name() const override { return sim_.name(); }
  int device_count() const override { return sim_.device_count(); }
  Device& device(int ordinal) override;
  DeviceWork* work(int ordinal) override { return sim_.work(ordinal); }

  SimPlatform& sim() { return sim_; }

 private:
  SimPlatform sim_;
  FaultedState state_;
  std::vector<std::unique_ptr<FaultingDevice>> devices_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_FAULTING_PLATFORM_H_
