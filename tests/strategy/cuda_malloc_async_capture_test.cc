// What other threads free to the driver's pool where a capture begins.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "strata/tests/strategy/cuda_malloc_async_cache_fixture.h"

namespace strata {
namespace {

class CudaMallocAsyncCaptureTest : public CudaMallocAsyncCacheFixture {
 protected:
  ~CudaMallocAsyncCaptureTest() override {
    if (announcer_.joinable()) announcer_.join();
  }

  // At the first call of this kind another thread announces a capture, which is
  // given time.
  void AnnounceDuring(DeviceCall kind) {
    device().SetCallObserver([this, kind](const CallRecord& call) {
      if (call.call != kind || announcer_.joinable()) return;
      announcer_ = std::thread([this] {
        gate().Announce();
        is_announced_ = true;
      });
      for (int i = 0; i < 1000 && !is_announced_; ++i) {
        std::this_thread::yield();
      }
      EXPECT_FALSE(is_announced_);
    });
  }
  void EndAnnouncement() {
    ASSERT_TRUE(announcer_.joinable()) << "the call was not made";
    announcer_.join();
    EXPECT_TRUE(is_announced_);
    gate().Withdraw();
  }

  std::thread announcer_;
  std::atomic<bool> is_announced_{false};
};

// Else the free stream would join the capture with an event, or the free be
// refused.
TEST_F(CudaMallocAsyncCaptureTest, NoneBeginsDuringAFree) {
  for (const DeviceCall call :
       {DeviceCall::kEventRecord, DeviceCall::kFreeAsync}) {
    const Chain chain = Start();
    is_announced_ = false;
    AllocationPtr block = chain->Allocate(4096);
    if (call == DeviceCall::kEventRecord) {
      EXPECT_TRUE(chain->RecordStream(block.get(), marker_));
    }
    AnnounceDuring(call);
    block.reset();
    EndAnnouncement();
    EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  }
}

// Which of the streams will capture, nobody knows before it does.
TEST_F(CudaMallocAsyncCaptureTest, MarkedMemoryWaitsForAnAnnouncedOne) {
  const Chain chain = Start();
  AllocationPtr block = chain->Allocate(4096);
  EXPECT_TRUE(chain->RecordStream(block.get(), marker_));
  gate().Announce();
  StartLog();
  block.reset();
  EXPECT_TRUE(LoggedWork().empty());
  AllocationPtr other = chain->Allocate(512);
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 0U);
  gate().Withdraw();
  other = chain->Allocate(512);
  EXPECT_EQ(CallsOf(DeviceCall::kEventRecord).size(), 2U) << "of its streams";
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 2U) << "and of the other";
}

// Between what the layer above has seen of the stream and the driver's call.
TEST_F(CudaMallocAsyncCaptureTest, WhatTheStreamRefusesIsFreedAfterIt) {
  const Chain chain = Start();
  AllocationPtr block = chain->Allocate(4096);
  BeginCapture(chain);
  StartLog();
  block.reset();
  EXPECT_EQ(CallsOf(DeviceCall::kEventRecord).size(), 0U);
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  EndCapture(chain);
  block = chain->Allocate(512);
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
}

// Nobody else would free it.
TEST_F(CudaMallocAsyncCaptureTest, AChainThatEndsFreesWhatWaits) {
  Chain chain = Start();
  AllocationPtr block = chain->Allocate(4096);
  EXPECT_TRUE(chain->RecordStream(block.get(), marker_));
  gate().Announce();
  block.reset();
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  chain = Chain();
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  gate().Withdraw();
}

}  // namespace
}  // namespace strata
