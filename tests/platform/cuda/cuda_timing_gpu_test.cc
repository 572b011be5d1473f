// The duration of calls on the GPU of this machine: recorded, but not checked.
// The report of tools/gpu_check shows the figures, which are the source of the
// simulated device's cost table.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/registry.h"

namespace strata::cuda {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr int kRounds = 101;

class CudaTimingGpuTest : public testing::Test {
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
  Device& device() { return platform_->device(0); }

  // Calls that are timed in every round. A failed round ends the test.
  struct Step {
    const char* name;
    std::function<Status()> call;
  };
  void Record(const std::string& what, const std::vector<Step>& steps) {
    std::vector<std::vector<std::int64_t>> times(steps.size());
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        const Status status = steps[i].call();
        const auto time = std::chrono::steady_clock::now() - start;
        ASSERT_EQ(status, Status::kSuccess) << steps[i].name;
        times[i].push_back(std::chrono::nanoseconds(time).count());
      }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::sort(times[i].begin(), times[i].end());
      std::string name = "time_ns_";
      name.append(steps[i].name).append(what);
      RecordProperty(name, std::to_string(times[i][kRounds / 2]));
    }
  }

  std::shared_ptr<Platform> platform_;
};

TEST_F(CudaTimingGpuTest, ImmediateMemory) {
  DevicePtr ptr = 0;
  for (const std::size_t mebibytes : {1U, 2U, 64U, 1024U}) {
    std::string size("_");
    size.append(std::to_string(mebibytes)).append("_mib");
    Record(size,
           {{"mem_alloc",
             [&] { return device().MemAlloc(&ptr, mebibytes * kMebibyte); }},
            {"mem_free", [&] { return device().MemFree(ptr); }}});
  }
}

TEST_F(CudaTimingGpuTest, PooledMemory) {
  if (!device().caps().mem_pools) GTEST_SKIP() << "the device has no pools";
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  const Stream stream = device().PerThreadStream();
  DevicePtr ptr = 0;
  Record("_2_mib",
         {{"malloc_from_pool_async",
           [&] {
             return device().MallocFromPoolAsync(&ptr, 2 * kMebibyte, pool,
                                                 stream);
           }},
          {"free_async", [&] { return device().FreeAsync(ptr, stream); }},
          {"stream_synchronize",
           [&] { return device().StreamSynchronize(stream); }}});
}

TEST_F(CudaTimingGpuTest, VirtualMemory) {
  if (!device().caps().virtual_memory) {
    GTEST_SKIP() << "the device has no virtual memory management";
  }
  const std::size_t bytes = device().caps().map_granularity_bytes;
  MemProperties properties;
  AccessDescriptor access;
  DevicePtr range = 0;
  MemHandle handle;
  Record("",
         {{"reserve_range",
           [&] { return device().ReserveRange(&range, bytes, 0, 0); }},
          {"create_memory",
           [&] { return device().CreateMemory(&handle, bytes, properties); }},
          {"map_range",
           [&] { return device().MapRange(range, bytes, 0, handle); }},
          {"set_access",
           [&] { return device().SetAccess(range, bytes, &access, 1); }},
          {"unmap_range", [&] { return device().UnmapRange(range, bytes); }},
          {"release_memory", [&] { return device().ReleaseMemory(handle); }},
          {"free_range", [&] { return device().FreeRange(range, bytes); }}});
}

TEST_F(CudaTimingGpuTest, StreamsAndEvents) {
  Stream stream;
  Event event;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  Record(
      "",
      {{"stream_create",
        [&] { return device().StreamCreate(&stream, kStreamNonBlocking); }},
       {"event_create",
        [&] { return device().EventCreate(&event, kEventDisableTiming); }},
       {"event_record", [&] { return device().EventRecord(event, stream, 0); }},
       {"stream_wait_event",
        [&] { return device().StreamWaitEvent(stream, event, 0); }},
       {"event_synchronize", [&] { return device().EventSynchronize(event); }},
       {"event_query", [&] { return device().EventQuery(event); }},
       {"mem_get_info",
        [&] { return device().MemGetInfo(&free_bytes, &total_bytes); }},
       {"event_destroy", [&] { return device().EventDestroy(event); }},
       {"stream_destroy", [&] { return device().StreamDestroy(stream); }}});
}

}  // namespace
}  // namespace strata::cuda
