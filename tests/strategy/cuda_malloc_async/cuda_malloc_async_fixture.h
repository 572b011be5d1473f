#ifndef STRATA_TESTS_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/allocation/system/device_allocator.h"
#include "strata/base/size.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/strategy/registry.h"

namespace strata {

// The place of a simulated device of 64 MiB, and chains that consist of the
// strategy alone. At the end of a test, everything must have been released.
class CudaMallocAsyncFixture : public ::testing::Test {
 protected:
  struct Chain {
    std::shared_ptr<ChainStream> chain_stream;
    std::shared_ptr<Allocator> strategy;

    Allocator* operator->() const { return strategy.get(); }
    Stream stream() const { return chain_stream->stream(); }
  };

  // Settings of the place besides options_. Set them before Build.
  struct Setting {
    int devices = 1;
    int ordinal = 0;
    std::size_t limit_bytes = 0;
    std::string progress = "inline";
    bool knows_captures = false;  // lets chains cache freed blocks
  };

  ~CudaMallocAsyncFixture() override { Finish(); }

  // Ends the objects of Build. The chains must be destroyed.
  void Finish() {
    if (platform_ == nullptr) return;
    pool_.reset();
    timelines_.reset();
    for (int i = 0; i < platform_->device_count(); ++i) {
      platform_->sim_device(i).SetCallObserver(nullptr);
      platform_->sim_device(i).ClearFaults();
      EXPECT_EQ(platform_->sim_device(i).Synchronize(), Status::kSuccess);
    }
    for (const Stream& stream : streams_) {
      EXPECT_EQ(platform_->sim_device(stream.device).StreamDestroy(stream),
                Status::kSuccess);
    }
    streams_.clear();
    if (expects_no_leak_) {
      EXPECT_EQ(platform_->LeakReport(), "");
    }
    expects_no_leak_ = true;
    platform_.reset();
  }

  void Build() {
    Finish();
    PlatformOptions sim;
    sim.platform = "sim";
    sim.sim_devices = setting_.devices;
    sim.sim_memory_bytes = Mebibytes(64);
    sim.sim_progress = setting_.progress;
    platform_ = std::make_shared<SimPlatform>(sim);
    if (setting_.knows_captures) {
      timelines_ = std::make_shared<TimelineTable>(platform_);
    }
    pool_ = NewPlace(setting_.ordinal);
  }
  std::shared_ptr<ChunkPool> NewPlace(int ordinal) {
    return std::make_shared<ChunkPool>(
        std::make_shared<DeviceAllocator>(platform_, ordinal),
        setting_.limit_bytes, std::make_shared<Reclaimer>());
  }

  SimDevice& device() { return platform_->sim_device(setting_.ordinal); }
  Stream NewStream(int ordinal) {
    Stream stream;
    EXPECT_EQ(platform_->sim_device(ordinal).StreamCreate(&stream,
                                                          kStreamNonBlocking),
              Status::kSuccess);
    streams_.push_back(stream);
    return stream;
  }
  Stream NewStream() { return NewStream(setting_.ordinal); }
  void Destroy(Stream stream) {
    std::erase(streams_, stream);
    EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  }

  Chain NewChain() { return NewChain(pool_, device(), NewStream()); }
  Chain NewChain(const std::shared_ptr<ChunkPool>& pool, Device& on,
                 Stream stream) {
    Chain chain;
    chain.chain_stream = std::make_shared<ChainStream>(
        on, stream, timelines_ != nullptr ? timelines_->Of(stream) : nullptr);
    chain.strategy =
        MakeCudaMallocAsyncAllocator(pool, chain.chain_stream, options_);
    return chain;
  }

  // Frees on the free stream, which no other block uses.
  static void FreeMarked(AllocationPtr allocation, Stream user) {
    Allocator* owner = allocation->owner();
    EXPECT_TRUE(owner->RecordStream(allocation.get(), user));
    allocation.reset();
  }

  // Records the calls that reach the device from now on.
  void StartLog() {
    log_.clear();
    device().SetCallObserver([this](const CallRecord& call) {
      if (!IsEntryPoint(call.call)) return;
      const std::lock_guard<std::mutex> guard(log_mutex_);
      log_.push_back(call);
    });
  }
  std::vector<CallRecord> CallsOf(DeviceCall kind) const {
    std::vector<CallRecord> result;
    for (const CallRecord& call : log_) {
      if (call.call == kind) result.push_back(call);
    }
    return result;
  }
  // The recorded calls in order, without queries.
  std::vector<std::pair<DeviceCall, std::uint64_t>> LoggedWork() const {
    std::vector<std::pair<DeviceCall, std::uint64_t>> result;
    for (const CallRecord& call : log_) {
      if (call.call == DeviceCall::kEventCreate ||
          call.call == DeviceCall::kEventDestroy ||
          call.call == DeviceCall::kPoolGetAttribute ||
          call.call == DeviceCall::kMemGetInfo) {
        continue;
      }
      result.emplace_back(call.call, call.stream_uid);
    }
    return result;
  }

  std::uint64_t Count(DeviceCall call) { return device().CallCount(call); }
  std::uint64_t CountAll() {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
      count += Count(static_cast<DeviceCall>(i));
    }
    return count;
  }

  StrategyOptions options_;
  Setting setting_;
  bool expects_no_leak_ = true;
  std::shared_ptr<SimPlatform> platform_;
  std::shared_ptr<TimelineTable> timelines_;  // null: none
  std::shared_ptr<ChunkPool> pool_;
  std::vector<CallRecord> log_;

 private:
  std::mutex log_mutex_;
  std::vector<Stream> streams_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_FIXTURE_H_
