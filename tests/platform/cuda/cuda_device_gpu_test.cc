// The promises of the CUDA device that only a GPU can verify.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/registry.h"

namespace strata::cuda {
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
  // Two seconds: longer than any pause of a host thread between two calls.
  ASSERT_EQ(work->Enqueue(stream, nullptr, 0, 2'000'000'000, 0),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata::cuda
