// The CUDA platform over the stand-in driver, of which each call fails first.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/cuda/cuda_platform.h"
#include "strata/tests/testing/devices/cuda/driver_faults.h"
#include "strata/tests/testing/devices/faulting_device.h"
#include "strata/tests/testing/devices/faulting_platform.h"

namespace strata {
namespace {

using ContextCall = DriverFaults::ContextCall;

// Each call of the driver is a step.
//
// Model: the calls around each step, about contexts, fail by turns.
class CudaFaultSource final : public FaultSource {
 public:
  // The driver refuses all calls in host functions, and after sticky errors.
  bool MayFail() override {
    return StateOfSimDriver().find("mode") != std::string::npos;
  }
  std::string Snapshot() override { return StateOfSimDriver(); }

  bool Arm(DeviceCall, std::uint64_t nth) override {
    constexpr ContextCall kTurns[] = {
        ContextCall::kNone, ContextCall::kGetCurrent, ContextCall::kPopCurrent};
    DriverFaults::Arm(nth, kTurns[turn_++ % std::size(kTurns)]);
    return true;
  }

  bool Disarm(DeviceCall call, Status status) override {
    const bool has_failed = DriverFaults::Disarm();
    DriverFaults::Forget();  // the caller calls again
    DriverFaults::MakeUpThread();
    if (has_failed) {
      EXPECT_TRUE(status == Status::kUnknown ||
                  status == Status::kMemoryAllocation)
          << DeviceCallName(call) << ": " << ToString(status) << " although "
          << DriverFaults::failed() << " failed";
    }
    return has_failed;
  }

 private:
  std::size_t turn_ = 0;
};

class FaultingCudaPlatform final : public Platform {
 public:
  explicit FaultingCudaPlatform(const cuda::CudaDriver& driver)
      : cuda_(driver), state_(nullptr) {
    for (int i = 0; i < cuda_.device_count(); ++i) {
      devices_.push_back(std::make_unique<FaultingDevice>(&cuda_.cuda_device(i),
                                                          &state_, &source_));
    }
  }

  const char* name() const override { return cuda_.name(); }
  int device_count() const override { return cuda_.device_count(); }
  Device& device(int ordinal) override {
    return *devices_[static_cast<std::size_t>(ordinal)];
  }
  DeviceWork* work(int ordinal) override { return cuda_.work(ordinal); }

 private:
  cuda::CudaPlatform cuda_;
  FaultedState state_;
  CudaFaultSource source_;
  std::vector<std::unique_ptr<FaultingDevice>> devices_;
};

std::shared_ptr<Platform> MakeFaultingCudaPlatform() {
  const cuda::CudaDriver driver = FaultyCudaDriver();
  if (driver.simulated == nullptr) {
    throw std::runtime_error("the driver is not simulated");
  }
  return std::make_shared<FaultingCudaPlatform>(driver);
}

bool SetFaultingCuda() {
  g_make_faulting_cuda = &MakeFaultingCudaPlatform;
  return true;
}

[[maybe_unused]] const bool kFaultingCudaIsSet = SetFaultingCuda();

}  // namespace
}  // namespace strata
