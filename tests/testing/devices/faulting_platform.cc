#include "strata/tests/testing/devices/faulting_platform.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "strata/platform/sim/faults/fault_injector.h"
#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata {
namespace {

// No entry point returns this status itself.
constexpr Status kInjected = Status::kUnknown;

// Each call of a simulated device is one step.
class SimFaultSource final : public FaultSource {
 public:
  SimFaultSource(SimDevice* sim, FaultedState* state)
      : sim_(*sim), state_(*state) {}

  // The device itself may refuse all calls.
  bool MayFail() override {
    if (sim::HostFunctionScope::Active()) return false;
    CaptureMode mode = CaptureMode::kRelaxed;
    if (sim_.ThreadExchangeCaptureMode(&mode) != Status::kSuccess) return false;
    EXPECT_EQ(sim_.ThreadExchangeCaptureMode(&mode), Status::kSuccess);
    return true;
  }

  std::string Snapshot() override { return state_.Snapshot(); }

  bool Arm(DeviceCall call, std::uint64_t nth) override {
    if (nth > 1) return false;
    FaultRule rule;
    rule.call = call;
    rule.nth = 1;
    rule.status = kInjected;
    sim_.AddFault(rule);
    calls_before_ = sim_.CallCount(call);
    return true;
  }

  bool Disarm(DeviceCall call, Status status) override {
    sim_.ClearFaults();
    const bool counted = sim_.CallCount(call) != calls_before_;
    // An entry point that the device lacks is not counted and cannot fail.
    if (counted || status != Status::kNotSupported) {
      EXPECT_EQ(status, kInjected) << DeviceCallName(call);
    }
    return true;
  }

 private:
  SimDevice& sim_;
  FaultedState& state_;
  std::uint64_t calls_before_ = 0;
};

}  // namespace

std::shared_ptr<Platform> (*g_make_faulting_cuda)() = nullptr;

FaultingPlatform::FaultingPlatform(const PlatformOptions& options,
                                   Faults faults)
    : sim_(options), state_(&sim_) {
  for (int i = 0; i < sim_.device_count(); ++i) {
    SimDevice* const device = &sim_.sim_device(i);
    sources_.push_back(faults == Faults::kEveryCall
                           ? std::make_unique<SimFaultSource>(device, &state_)
                           : nullptr);
    devices_.push_back(std::make_unique<FaultingDevice>(device, &state_,
                                                        sources_.back().get()));
  }
}

FaultingPlatform::~FaultingPlatform() = default;

Device& FaultingPlatform::device(int ordinal) {
  return *devices_[static_cast<std::size_t>(ordinal)];
}

}  // namespace strata
