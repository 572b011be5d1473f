// Faults of the driver while the CUDA platform starts and loads its kernel,
// over the stand-in driver.

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "strata/platform/cuda/cuda_platform.h"
#include "strata/tests/testing/devices/cuda/driver_faults.h"

namespace strata::cuda {
namespace {

class CudaDriverFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      driver_ = FaultyCudaDriver();
    } catch (const std::exception& error) {
      GTEST_SKIP() << error.what();
    }
    if (driver_.simulated == nullptr) {
      GTEST_SKIP() << "the driver is not simulated";
    }
  }

  // Runs `body()` once for each of its calls of the driver, which then fails.
  // The state of the driver is the same after it. Returns the number of runs.
  template <class Body>
  std::uint64_t FailEveryCall(Body body) {
    for (std::uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth));
      const std::string before = StateOfSimDriver();
      DriverFaults::Arm(nth);
      body();
      const bool has_failed = DriverFaults::Disarm();
      DriverFaults::MakeUpThread();
      MakeUpReleases();
      EXPECT_EQ(StateOfSimDriver(), before) << DriverFaults::failed();
      if (!has_failed) return nth - 1;
    }
  }

  CudaDriver driver_;

 private:
  // The driver wants a current context.
  void MakeUpReleases() {
    CUcontext context = nullptr;
    EXPECT_EQ(driver_.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.CtxPushCurrent(context), CUDA_SUCCESS);
    DriverFaults::MakeUpReleases();
    EXPECT_EQ(driver_.CtxPopCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(driver_.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }
};

TEST_F(CudaDriverFaultsTest, TheStartFailsOrMakesAPlatform) {
  int refused = 0;
  const std::uint64_t runs = FailEveryCall([&] {
    try {
      const CudaPlatform platform(driver_);
      EXPECT_EQ(platform.device_count(), 2);
    } catch (const std::runtime_error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()), "");
    }
  });
  EXPECT_GT(runs, 10U);
  // The number of devices, and each device.
  EXPECT_EQ(refused, 3);
}

TEST_F(CudaDriverFaultsTest, AKernelThatDoesNotLoadIsAnErrorOfItsWork) {
  CudaPlatform platform(driver_);
  CudaDevice& device = platform.cuda_device(0);
  Stream stream;
  ASSERT_EQ(device.StreamCreate(&stream, kStreamNonBlocking), Status::kSuccess);
  int refused = 0;
  const std::uint64_t runs = FailEveryCall([&] {
    CudaWork work(driver_, device);
    const Status status = work.Enqueue(stream, nullptr, 0, 0, 0);
    refused += status == Status::kSuccess ? 0 : 1;
  });
  EXPECT_EQ(device.StreamSynchronize(stream), Status::kSuccess);
  EXPECT_GE(runs, 15U);
  EXPECT_GE(refused, 8);
  EXPECT_EQ(device.StreamDestroy(stream), Status::kSuccess);
}

// The calls of a device after each failure are served.
TEST_F(CudaDriverFaultsTest, AContextThatFailsOnceIsMadeLater) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    CudaPlatform platform(driver_);
    DriverFaults::Arm(nth);
    DevicePtr ptr = 0;
    const Status status = platform.device(0).MemAlloc(&ptr, 1 << 20);
    DriverFaults::Disarm();
    if (status == Status::kSuccess) {
      // Only the question for the current context may be unanswered.
      EXPECT_EQ(DriverFaults::failed(), "CtxGetCurrent");
    } else {
      EXPECT_EQ(platform.device(0).MemAlloc(&ptr, 1 << 20), Status::kSuccess);
    }
    EXPECT_EQ(platform.device(0).MemFree(ptr), Status::kSuccess);
  }
}

}  // namespace
}  // namespace strata::cuda
