// Blocks that other threads free to the driver pool when a capture begins.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_cache_fixture.h"

namespace strata {
namespace {

class CudaMallocAsyncCaptureTest : public CudaMallocAsyncCacheFixture {
 protected:
  ~CudaMallocAsyncCaptureTest() override {
    if (announcer_.joinable()) announcer_.join();
  }

  // At the first call of this kind, another thread announces a capture, and
  // gets time to do so.
  void AnnounceDuring(DeviceCall kind) {
    device().SetCallObserver([this, kind](const CallRecord& call) {
      if (call.call != kind || announcer_.joinable()) return;
      announcer_ = std::thread([this] {
        gate().Announce();
        is_announced_ = true;
      });
      while (!gate().any()) std::this_thread::yield();
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

  // At the first call of this kind, another thread begins the announced capture
  // of the chain's stream.
  void BeginDuring(DeviceCall kind, const Chain& chain) {
    gate().Announce();
    has_begun_ = false;
    device().SetCallObserver([this, kind, &chain](const CallRecord& call) {
      if (call.call != kind || has_begun_) return;
      has_begun_ = true;
      std::thread([&] {
        EXPECT_EQ(
            device().StreamBeginCapture(chain.stream(), CaptureMode::kRelaxed),
            Status::kSuccess);
      }).join();
    });
  }
  // The block was not freed, and the capture continues. The block is freed
  // after it.
  void ExpectWaiting(const Chain& chain, const Chain& capturing) {
    device().SetCallObserver(nullptr);
    EXPECT_EQ(device().Leaks().pool_blocks, 1U);
    EndCapture(capturing);
    const AllocationPtr next = chain->Allocate(512);
    EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  }

  bool has_begun_ = false;
  std::thread announcer_;
  std::atomic<bool> is_announced_{false};
};

// Otherwise an event would make the free stream join the capture, or the free
// would be refused.
TEST_F(CudaMallocAsyncCaptureTest, NoneBeginsDuringACallOfTheDriver) {
  for (const DeviceCall call :
       {DeviceCall::kMallocFromPoolAsync, DeviceCall::kEventRecord,
        DeviceCall::kFreeAsync}) {
    const Chain chain = Start();
    is_announced_ = false;
    if (call == DeviceCall::kMallocFromPoolAsync) AnnounceDuring(call);
    AllocationPtr block = chain->Allocate(4096);
    if (call == DeviceCall::kEventRecord) {
      EXPECT_TRUE(chain->RecordStream(block.get(), marker_));
    }
    if (call != DeviceCall::kMallocFromPoolAsync) AnnounceDuring(call);
    block.reset();
    EndAnnouncement();
    EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  }
}

// Captures of other streams have no effect.
TEST_F(CudaMallocAsyncCaptureTest, StreamsThatDoNotCaptureGoOn) {
  const Chain chain = Start();
  const Chain other = NewChain();
  AllocationPtr marked = chain->Allocate(4096);
  EXPECT_TRUE(chain->RecordStream(marked.get(), marker_));
  AllocationPtr unmarked = chain->Allocate(512);
  BeginCapture(other, CaptureMode::kGlobal);
  // The thread has not been set to relaxed mode by the front.
  std::thread([&] {
    marked.reset();
    unmarked.reset();
  }).join();
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  EndCapture(other);
}

// Freed with the next driver call, or when memory is short.
TEST_F(CudaMallocAsyncCaptureTest, WhatACapturingStreamUsedWaits) {
  for (const bool is_own : {true, false}) {
    const Chain chain = Start();
    const Chain other = NewChain();
    AllocationPtr marked = chain->Allocate(4096);
    EXPECT_TRUE(chain->RecordStream(marked.get(), other.stream()));
    AllocationPtr unmarked = chain->Allocate(512);
    BeginCapture(is_own ? chain : other);
    StartLog();
    marked.reset();
    if (is_own) unmarked.reset();
    EXPECT_TRUE(CallsOf(DeviceCall::kEventRecord).empty());
    EXPECT_TRUE(CallsOf(DeviceCall::kFreeAsync).empty());
    chain->Release();
    EXPECT_EQ(device().Leaks().pool_blocks, 2U);
    EndCapture(is_own ? chain : other);
    AllocationPtr next = chain->Allocate(256);
    EXPECT_EQ(device().Leaks().pool_blocks, is_own ? 1U : 2U);
  }
}

// A use of the stream would end captures of blocking streams.
TEST_F(CudaMallocAsyncCaptureTest, TheDefaultStreamWaitsForAnyCapture) {
  Build();
  const Chain chain = NewChain(pool_, device(), device().LegacyStream());
  const Chain other = NewChain();
  AllocationPtr block = chain->Allocate(4096);
  BeginCapture(other);
  block.reset();
  ExpectWaiting(chain, other);
}

// The capture begins after the query for captures.
TEST_F(CudaMallocAsyncCaptureTest, NobodyWaitsForAStreamThatHasJustBegun) {
  for (const bool is_own : {true, false}) {
    const Chain chain = Start();
    const Chain other = NewChain();
    const Chain& capturing = is_own ? chain : other;
    AllocationPtr block = chain->Allocate(4096);
    EXPECT_TRUE(chain->RecordStream(block.get(), other.stream()));
    BeginDuring(DeviceCall::kEventCreate, capturing);
    block.reset();
    EXPECT_TRUE(has_begun_);
    ExpectWaiting(chain, capturing);
  }
}

// Likewise, for a free in its own stream.
TEST_F(CudaMallocAsyncCaptureTest, WhatAStreamThatHasBegunRefusesWaits) {
  const Chain chain = Start();
  AllocationPtr block = chain->Allocate(4096);
  BeginDuring(DeviceCall::kStreamIsCapturing, chain);
  block.reset();
  EXPECT_TRUE(has_begun_);
  ExpectWaiting(chain, chain);
}

// Each block is tried once, whichever streams block others.
TEST_F(CudaMallocAsyncCaptureTest, AChainThatEndsFreesWhatItMay) {
  Chain chain = Start();
  const Chain first = NewChain();
  const Chain second = NewChain();
  AllocationPtr blocks[] = {chain->Allocate(512), chain->Allocate(512)};
  EXPECT_TRUE(chain->RecordStream(blocks[0].get(), first.stream()));
  EXPECT_TRUE(chain->RecordStream(blocks[1].get(), second.stream()));
  BeginCapture(first);
  BeginCapture(second);
  for (AllocationPtr& block : blocks) block.reset();
  EXPECT_EQ(device().Leaks().pool_blocks, 2U);
  EndCapture(first);
  chain = Chain();
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  EndCapture(second);
  expects_no_leak_ = false;
}

// Another stream may soon have its handle.
TEST_F(CudaMallocAsyncCaptureTest, WhatWaitsForgetsAStreamThatEnds) {
  const Chain chain = Start();
  const Chain other = NewChain();
  AllocationPtr block = chain->Allocate(4096);
  EXPECT_TRUE(chain->RecordStream(block.get(), marker_));
  EXPECT_TRUE(chain->RecordStream(block.get(), other.stream()));
  BeginCapture(other);
  block.reset();
  chain->StreamDestroyed(marker_);
  Destroy(marker_);
  ExpectWaiting(chain, other);
}

}  // namespace
}  // namespace strata
