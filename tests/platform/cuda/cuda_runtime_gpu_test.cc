// The CUDA device beside the CUDA runtime of a program, on a GPU.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/registry.h"

namespace strata::cuda {
namespace {

class CudaRuntimeGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    PlatformOptions options;
    options.platform = "cuda";
    try {
      platform_ = MakePlatform(options);
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << error.what();
    }
    if (device().caps().simulated) {
      GTEST_SKIP() << "the static CUDA runtime does not start over the "
                      "stand-in driver: it asks for undocumented tables";
    }
  }
  Device& device(int ordinal = 0) { return platform_->device(ordinal); }

  std::shared_ptr<Platform> platform_;
};

TEST_F(CudaRuntimeGpuTest, KeepsTheCurrentDevice) {
  const int last = platform_->device_count() - 1;
  ASSERT_EQ(cudaSetDevice(last), cudaSuccess);
  DevicePtr ptr = 0;
  ASSERT_EQ(device(0).MemAlloc(&ptr, 4096), Status::kSuccess);
  EXPECT_EQ(device(0).MemFree(ptr), Status::kSuccess);
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, last);
}

TEST_F(CudaRuntimeGpuTest, LeavesAFreshThreadWithoutContext) {
  DevicePtr ptr = 0;
  Status status = Status::kUnknown;
  int current = -1;
  std::thread([&] {
    status = device(platform_->device_count() - 1).MemAlloc(&ptr, 4096);
    cudaGetDevice(&current);
  }).join();
  ASSERT_EQ(status, Status::kSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
}

TEST_F(CudaRuntimeGpuTest, FailureLeavesNoLastError) {
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, std::size_t{1} << 50),
            Status::kMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaRuntimeGpuTest, FailureKeepsAnEarlierLastError) {
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t earlier = cudaPeekAtLastError();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, std::size_t{1} << 50),
            Status::kMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), earlier);
}

TEST_F(CudaRuntimeGpuTest, LookingForADriverKeepsAnEarlierLastError) {
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t earlier = cudaPeekAtLastError();
  PlatformOptions options;
  options.platform = "cuda";
  MakePlatform(options);
  EXPECT_EQ(cudaGetLastError(), earlier);
}

TEST_F(CudaRuntimeGpuTest, WrapsAStreamOfTheRuntime) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaStream_t handle = nullptr;
  ASSERT_EQ(cudaStreamCreate(&handle), cudaSuccess);
  Stream stream;
  ASSERT_EQ(device().WrapStream(handle, &stream), Status::kSuccess);
  EXPECT_EQ(stream.handle, handle);
  EXPECT_EQ(stream.device, 0);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess);
}

TEST_F(CudaRuntimeGpuTest, TellsTheFlagsOfAStreamOfTheRuntime) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  CallRecord seen;
  device().SetCallObserver([&](const CallRecord& call) { seen = call; });
  for (const unsigned flags : {0U, 1U}) {  // 1: cudaStreamNonBlocking
    cudaStream_t handle = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&handle, flags), cudaSuccess);
    Stream stream;
    EXPECT_EQ(device().WrapStream(handle, &stream), Status::kSuccess);
    EXPECT_EQ(seen.call, DeviceCall::kWrapStream);
    EXPECT_EQ(seen.value, flags);
    EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess);
  }
  device().SetCallObserver(nullptr);
}

TEST_F(CudaRuntimeGpuTest, CapsAreThoseOfTheDriver) {
  int pools = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0),
            cudaSuccess);
  EXPECT_EQ(device().caps().mem_pools, pools != 0);
  EXPECT_FALSE(device().caps().simulated);
  RecordProperty("pin_map_granularity_bytes",
                 std::to_string(device().caps().map_granularity_bytes));
  RecordProperty("pin_share_fabric", device().caps().share_fabric ? 1 : 0);
}

TEST_F(CudaRuntimeGpuTest, AnAnswerOfNotReadyLeavesNoLastError) {
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  DeviceWork* work = platform_->work(0);
  ASSERT_NE(work, nullptr);
  ASSERT_EQ(work->Enqueue(stream, nullptr, 0, 50'000'000, 0), Status::kSuccess);
  device().StreamQuery(stream);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata::cuda
