#ifndef STRATA_TESTS_TESTING_DEVICES_FAULTING_PLATFORM_H_
#define STRATA_TESTS_TESTING_DEVICES_FAULTING_PLATFORM_H_

#include <memory>
#include <vector>

#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/devices/faulted_state.h"
#include "strata/tests/testing/devices/faulting_device.h"

namespace strata {

// Cause of the failures of a FaultingPlatform's calls.
enum class Faults {
  kEveryCall,   // each call fails once, before it is made
  kCallersHeap  // none, even during a HeapFailure of the caller
};

// Simulated devices in one of two modes. With Faults::kEveryCall, every call
// fails once before it is made. With Faults::kCallersHeap, every call works
// although the caller's heap fails, as in a driver.
//
// Model: with Faults::kEveryCall, each call is first made with an injected
//   failure. It must return the injected status, and must leave its
//   out-parameters and everything that FaultedState can see unchanged;
//   otherwise the test fails. Then the call is made as requested, and only this
//   one counts for the caller. Calls of host functions, and calls on a device
//   with a sticky error, are made only as requested: the device itself may
//   refuse them.
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
  std::vector<std::unique_ptr<FaultSource>> sources_;
  std::vector<std::unique_ptr<FaultingDevice>> devices_;
};

// Makes the CUDA platform over the stand-in driver, of which every call of the
// driver fails once before it is made (devices/cuda/faulting_cuda.cc). Null if
// the build has no CUDA platform.
//
// Errors: std::runtime_error if the driver is absent or not simulated.
extern std::shared_ptr<Platform> (*g_make_faulting_cuda)();

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_FAULTING_PLATFORM_H_
