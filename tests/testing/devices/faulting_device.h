#ifndef STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_
#define STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_

#include <cstdint>
#include <string>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/device.h"
#include "strata/tests/testing/devices/faulted_state.h"

namespace strata {

// The failures of the calls of one FaultingDevice.
class FaultSource {
 public:
  virtual ~FaultSource() = default;

  // False if the next call must be made as requested only.
  virtual bool MayFail() = 0;
  // The state that a failed call must not change, as text.
  virtual std::string Snapshot() = 0;
  // Makes the next call, which is `call`, fail at its `nth` step. Returns false
  // if calls have fewer steps; then none fails.
  virtual bool Arm(DeviceCall call, std::uint64_t nth) = 0;
  // After that call: no later call fails. Returns false if the call was made as
  // requested. Fails the test if a failed call may not return `status`.
  virtual bool Disarm(DeviceCall call, Status status) = 0;
};

// A device of FaultingPlatform; see there.
class FaultingDevice final : public Device {
 public:
  // A null source: the calls work even during a HeapFailure of the caller.
  FaultingDevice(Device* device, FaultedState* state, FaultSource* source)
      : device_(*device), state_(*state), source_(source) {}

  int ordinal() const override { return device_.ordinal(); }
  std::uintptr_t identity() const override { return device_.identity(); }
  const Caps& caps() const override { return device_.caps(); }

  Stream LegacyStream() override { return device_.LegacyStream(); }
  Stream PerThreadStream() override { return device_.PerThreadStream(); }
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status method parameters override;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

 private:
  // Makes the call as the header of FaultingPlatform describes.
  template <class... Parameters, class... Arguments>
  Status Try(DeviceCall call, Status (Device::*method)(Parameters...),
             const Arguments&... arguments);
  // Returns a function that makes the call, by Try, and adds its effect to the
  // state.
  template <DeviceCall kCall, class... Parameters>
  auto Tried(Status (Device::*method)(Parameters...));
  // StreamEndCapture was called; it may end the capture and fail.
  void EndCapture(Stream stream, Graph* graph);

  Device& device_;
  FaultedState& state_;
  FaultSource* const source_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_FAULTING_DEVICE_H_
