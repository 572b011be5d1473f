// The promises of the CUDA device that only a GPU can keep or break.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/registry.h"

namespace strata {
namespace {

class CudaDeviceGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    PlatformOptions options;
    options.platform = "cuda";
    try {
      platform_ = MakePlatform(options);
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  Device& device(int ordinal = 0) { return platform_->device(ordinal); }

  std::shared_ptr<Platform> platform_;
};

TEST_F(CudaDeviceGpuTest, KeepsTheCurrentDevice) {
  const int last = platform_->device_count() - 1;
  ASSERT_EQ(cudaSetDevice(last), cudaSuccess);
  DevicePtr ptr = 0;
  ASSERT_EQ(device(0).MemAlloc(&ptr, 4096), Status::kSuccess);
  EXPECT_EQ(device(0).MemFree(ptr), Status::kSuccess);
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, last);
}

TEST_F(CudaDeviceGpuTest, LeavesAFreshThreadWithoutContext) {
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

TEST_F(CudaDeviceGpuTest, FailureLeavesNoLastError) {
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, std::size_t{1} << 50),
            Status::kMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaDeviceGpuTest, FailureKeepsAnEarlierLastError) {
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t earlier = cudaPeekAtLastError();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, std::size_t{1} << 50),
            Status::kMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), earlier);
}

TEST_F(CudaDeviceGpuTest, LookingForADriverKeepsAnEarlierLastError) {
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t earlier = cudaPeekAtLastError();
  PlatformOptions options;
  options.platform = "cuda";
  MakePlatform(options);
  EXPECT_EQ(cudaGetLastError(), earlier);
}

TEST_F(CudaDeviceGpuTest, WrapsAStreamOfTheRuntime) {
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

TEST_F(CudaDeviceGpuTest, TellsTheFlagsOfAStreamOfTheRuntime) {
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

TEST_F(CudaDeviceGpuTest, UidsAreNeverUsedAgain) {
  std::set<std::uint64_t> uids = {kLegacyStreamUid,
                                  device().PerThreadStream().uid};
  for (int i = 0; i < 100; ++i) {
    Stream stream;
    ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
              Status::kSuccess);
    EXPECT_TRUE(uids.insert(stream.uid).second) << stream.uid;
    ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  }
}

TEST_F(CudaDeviceGpuTest, ThreadsHaveStreamsOfTheirOwn) {
  const Stream own = device().PerThreadStream();
  Stream other;
  Status synchronized = Status::kUnknown;
  std::thread([&] {
    other = device().PerThreadStream();
    synchronized = device().StreamSynchronize(other);
  }).join();
  EXPECT_NE(own, other);
  EXPECT_EQ(synchronized, Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(own), Status::kSuccess);
}

TEST_F(CudaDeviceGpuTest, CapsAreThoseOfTheDriver) {
  int pools = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0),
            cudaSuccess);
  EXPECT_EQ(device().caps().mem_pools, pools != 0);
  EXPECT_FALSE(device().caps().simulated);
  RecordProperty("pin_map_granularity_bytes",
                 std::to_string(device().caps().map_granularity_bytes));
  RecordProperty("pin_share_fabric", device().caps().share_fabric ? 1 : 0);
}

TEST_F(CudaDeviceGpuTest, WorkWritesItsPattern) {
  constexpr std::size_t kWords = 100'000;
  constexpr std::uint64_t kPattern = 0x0123456789abcdef;
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kWords * 8), Status::kSuccess);
  void* host = nullptr;
  ASSERT_EQ(device().MallocHost(&host, kWords * 8, 0), Status::kSuccess);
  DeviceWork* work = platform_->work(0);
  ASSERT_NE(work, nullptr);
  const WorkRange range{ptr, kWords * 8, true};
  const Stream stream = device().LegacyStream();
  ASSERT_EQ(work->Enqueue(stream, &range, 1, 1000, kPattern), Status::kSuccess);
  ASSERT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(host), ptr,
                                 kWords * 8, stream),
            Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  const auto* words = static_cast<const std::uint64_t*>(host);
  EXPECT_EQ(std::vector<std::uint64_t>(words, words + kWords),
            std::vector<std::uint64_t>(kWords, kPattern));
  EXPECT_EQ(device().FreeHost(host), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
}

TEST_F(CudaDeviceGpuTest, BusyWorkIsSeenByAQuery) {
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  DeviceWork* work = platform_->work(0);
  ASSERT_NE(work, nullptr);
  // Two seconds: no host thread is held up that long between two calls.
  ASSERT_EQ(work->Enqueue(stream, nullptr, 0, 2'000'000'000, 0),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata
