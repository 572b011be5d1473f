// The stand-in driver in its process: start, devices, contexts, forks.

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/simdriver/driver_library.h"

namespace strata {
namespace {

int CountDevices(const DriverLibrary& driver) {
  int count = -1;
  STRATA_DRIVER_FUNCTION(driver, cuDeviceGetCount, 2000)(&count);
  return count;
}

// The last byte of the UUID: the number of the device in our own numbering.
int NumberOf(const DriverLibrary& driver, CUdevice device) {
  CUuuid uuid = {};
  EXPECT_EQ(
      STRATA_DRIVER_FUNCTION(driver, cuDeviceGetUuid, 9020)(&uuid, device),
      CUDA_SUCCESS);
  return uuid.bytes[15];
}

TEST(SimDriverProcessTest, NothingWorksBeforeInit) {
  WithDriver([](const DriverLibrary& driver) {
    int count = -1;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuDeviceGetCount, 2000)(&count),
              CUDA_ERROR_NOT_INITIALIZED);
    CUcontext context = nullptr;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuCtxGetCurrent, 4000)(&context),
              CUDA_ERROR_NOT_INITIALIZED);
    int version = 0;
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuDriverGetVersion, 2020)(&version),
        CUDA_SUCCESS);
    EXPECT_EQ(version, CUDA_VERSION);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuInit, 2000)(1),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.Init(), CUDA_SUCCESS);
    EXPECT_EQ(CountDevices(driver), 2);
  });
}

TEST(SimDriverProcessTest, OptionsShapeTheDevices) {
  WithDriver(
      "devices=3 memory=64MiB compute=8.6", nullptr,
      [](const DriverLibrary& driver) {
        ASSERT_EQ(driver.Init(), CUDA_SUCCESS);
        EXPECT_EQ(CountDevices(driver), 3);
        std::size_t bytes = 0;
        EXPECT_EQ(
            STRATA_DRIVER_FUNCTION(driver, cuDeviceTotalMem, 3020)(&bytes, 2),
            CUDA_SUCCESS);
        EXPECT_EQ(bytes, 64 * kMebibyte);
        int minor = 0;
        EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuDeviceGetAttribute, 2000)(
                      &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
                  CUDA_SUCCESS);
        EXPECT_EQ(minor, 6);
      });
}

TEST(SimDriverProcessTest, AWrongOptionFailsTheStart) {
  for (const char* const options :
       {"devices=none", "memory", "colour=red", "compute=9", "progress=never",
        "kernel_time=10", "kernel_time=us", "report=yes"}) {
    WithDriver(options, nullptr, [&](const DriverLibrary& driver) {
      EXPECT_EQ(driver.Init(), CUDA_ERROR_INVALID_VALUE) << options;
    });
  }
}

TEST(SimDriverProcessTest, TheMessageNamesTheVariable) {
  WithDriver("data=full", nullptr, [](const DriverLibrary& driver) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(driver.Init(), CUDA_ERROR_INVALID_VALUE);
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("STRATA_SIM_DRIVER: 'data=full' is not phantom, small, "
                        "backed or poison"),
              std::string::npos)
        << text;
  });
}

TEST(SimDriverProcessTest, VisibleDevicesEndAtTheFirstThatIsNone) {
  struct Case {
    const char* visible;
    std::vector<int> numbers;
  };
  const std::vector<Case> cases = {
      {"2", {2}},
      {"1,0", {1, 0}},
      {"2,9,0", {2}},
      {"1,1", {1}},
      {"GPU-73747261-7461-2073-696d-206770750001,0", {1, 0}},
      {"0,GPU-7374,1", {0}},
  };
  for (const Case& one : cases) {
    WithDriver("devices=3", one.visible, [&](const DriverLibrary& driver) {
      ASSERT_EQ(driver.Init(), CUDA_SUCCESS) << one.visible;
      const int count = CountDevices(driver);
      std::vector<int> numbers;
      for (int i = 0; i < count; ++i) numbers.push_back(NumberOf(driver, i));
      EXPECT_EQ(numbers, one.numbers) << one.visible;
    });
  }
}

TEST(SimDriverProcessTest, NoVisibleDeviceFailsTheStart) {
  for (const char* const visible : {"", "-1", "NoDevFiles", "7"}) {
    WithDriver("devices=2", visible, [&](const DriverLibrary& driver) {
      EXPECT_EQ(driver.Init(), CUDA_ERROR_NO_DEVICE) << visible;
    });
  }
}

TEST(SimDriverProcessTest, AForkedChildIsRefusedEveryCall) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    CUdeviceptr ptr = 0;
    const auto allocate = STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020);
    const auto current = STRATA_DRIVER_FUNCTION(driver, cuCtxGetCurrent, 4000);
    const auto array = STRATA_DRIVER_FUNCTION(driver, cuArrayCreate, 3020);
    const auto version =
        STRATA_DRIVER_FUNCTION(driver, cuDriverGetVersion, 2020);
    const auto synchronize =
        STRATA_DRIVER_FUNCTION(driver, cuStreamSynchronize, 2000);
    const auto init = STRATA_DRIVER_FUNCTION(driver, cuInit, 2000);
    const pid_t child = fork();
    if (child == 0) {
      CUcontext context = nullptr;
      int number = 0;
      void* function = nullptr;
      const bool refused =
          init(0) == CUDA_ERROR_NOT_INITIALIZED &&
          allocate(&ptr, 1) == CUDA_ERROR_NOT_INITIALIZED &&
          current(&context) == CUDA_ERROR_NOT_INITIALIZED &&
          synchronize(nullptr) == CUDA_ERROR_NOT_INITIALIZED &&
          array(nullptr, nullptr) == CUDA_ERROR_NOT_INITIALIZED &&
          version(&number) == CUDA_ERROR_NOT_INITIALIZED &&
          driver.Look("cuInit", &function, 12000, 0, nullptr) ==
              CUDA_ERROR_NOT_INITIALIZED;
      _exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // The parent can use the driver as before.
    EXPECT_EQ(allocate(&ptr, kMebibyte), CUDA_SUCCESS);
  });
}

TEST(SimDriverProcessTest, AChildForkedBeforeTheStartMayStart) {
  WithDriver([](const DriverLibrary& driver) {
    const pid_t child = fork();
    if (child == 0) _exit(driver.Start() == CUDA_SUCCESS ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

TEST(SimDriverProcessTest, WithoutAContextCallsAreRefused) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Init(), CUDA_SUCCESS);
    CUdeviceptr ptr = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 1),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuStreamSynchronize, 2000)(nullptr),
        CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuCtxSynchronize, 2000)(),
              CUDA_ERROR_INVALID_CONTEXT);
    CUcontext context = nullptr;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuCtxPopCurrent, 4000)(&context),
              CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST(SimDriverProcessTest, AnEndedContextRefusesCalls) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto release =
        STRATA_DRIVER_FUNCTION(driver, cuDevicePrimaryCtxRelease, 11000);
    EXPECT_EQ(release(0), CUDA_SUCCESS);
    CUdeviceptr ptr = 0;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuMemAlloc, 3020)(&ptr, 1),
              CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(release(0), CUDA_ERROR_INVALID_CONTEXT);
    unsigned flags = 0;
    int active = -1;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuDevicePrimaryCtxGetState, 7000)(
                  0, &flags, &active),
              CUDA_SUCCESS);
    EXPECT_EQ(active, 0);
  });
}

TEST(SimDriverProcessTest, ContextsStackUpPerThread) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(0), CUDA_SUCCESS);
    CUcontext second = nullptr;
    ASSERT_EQ(STRATA_DRIVER_FUNCTION(driver, cuDevicePrimaryCtxRetain, 7000)(
                  &second, 1),
              CUDA_SUCCESS);
    const auto device = STRATA_DRIVER_FUNCTION(driver, cuCtxGetDevice, 2000);
    const auto push = STRATA_DRIVER_FUNCTION(driver, cuCtxPushCurrent, 4000);
    CUdevice current = -1;
    EXPECT_EQ(push(second), CUDA_SUCCESS);
    EXPECT_EQ(device(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, 1);
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuCtxPopCurrent, 4000)(nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(device(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, 0);
    EXPECT_EQ(push(reinterpret_cast<CUcontext>(&second)),
              CUDA_ERROR_INVALID_CONTEXT);
  });
}

// Calls the driver when its thread ends.
struct AtThreadEnd {
  ~AtThreadEnd() {
    if (synchronize != nullptr) *result = synchronize();
  }
  PFN_cuCtxSynchronize_v2000 synchronize = nullptr;
  CUresult* result = nullptr;
};

TEST(SimDriverProcessTest, AThreadThatEndsMayCallIt) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Init(), CUDA_SUCCESS);
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
      // Made before the driver's own thread-locals, so destroyed after them.
      thread_local AtThreadEnd at_end;
      at_end.result = &result;
      EXPECT_EQ(driver.Start(1), CUDA_SUCCESS);
      at_end.synchronize =
          STRATA_DRIVER_FUNCTION(driver, cuCtxSynchronize, 2000);
    }).join();
    EXPECT_EQ(result, CUDA_SUCCESS);
  });
}

TEST(SimDriverProcessTest, ContextsStackUpSixteenDeep) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    CUcontext context = nullptr;
    STRATA_DRIVER_FUNCTION(driver, cuCtxGetCurrent, 4000)(&context);
    const auto push = STRATA_DRIVER_FUNCTION(driver, cuCtxPushCurrent, 4000);
    for (int i = 1; i < 16; ++i) EXPECT_EQ(push(context), CUDA_SUCCESS) << i;
    EXPECT_EQ(push(context), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

// This program contains Strata, too.
TEST(SimDriverProcessTest, KnowsNothingOfStrataInTheProgram) {
  WithDriver([](const DriverLibrary& driver) {
    PlatformOptions options;
    options.platform = "sim";
    options.sim_memory_bytes = 64 * kMebibyte;
    SimPlatform own(options);
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    DevicePtr mine = 0;
    ASSERT_EQ(own.device(0).MemAlloc(&mine, kMebibyte), Status::kSuccess);
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    EXPECT_EQ(
        STRATA_DRIVER_FUNCTION(driver, cuMemGetInfo, 3020)(&free_bytes, &total),
        CUDA_SUCCESS);
    EXPECT_EQ(free_bytes, total);
    CUstream stream = nullptr;
    EXPECT_EQ(STRATA_DRIVER_FUNCTION(driver, cuStreamCreate, 2000)(&stream, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(own.LeakReport(), "sim:0: 1 device allocation (1048576 bytes)\n");
    EXPECT_EQ(own.device(0).MemFree(mine), Status::kSuccess);
  });
}

}  // namespace
}  // namespace strata
