// paddle.md §3.7 rule 3: waits for memory freed aside, which counts once
// (§5-B2), and no waits during a capture of the stream.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

using testing::IsEmpty;

// One chain with 16 of 64 MiB in use, and 16 MiB freed aside. Work runs only
// when the host waits for it.
class CudaMallocAsyncThrottleTest : public CudaMallocAsyncFixture {
 protected:
  void BuildWith(double ratio) {
    options_.Edit<CudaMallocAsyncOptions>()
        .cuda_malloc_async_pool_memory_throttle_ratio = ratio;
    setting_.progress = "manual";
    Build();
    chain_ = NewChain();
    live_ = chain_->Allocate(Mebibytes(16));
    FreeMarked(chain_->Allocate(Mebibytes(16)), NewStream());
    StartLog();
  }
  // True if an allocation made `chain` wait for another stream.
  bool Waits(const Chain& chain) {
    log_.clear();
    const AllocationPtr block = chain->Allocate(1000);
    const auto waits = CallsOf(DeviceCall::kStreamWaitEvent);
    for (const CallRecord& call : waits) {
      EXPECT_EQ(call.stream_uid, chain.stream().uid);
    }
    return !waits.empty();
  }

  ~CudaMallocAsyncThrottleTest() override {
    live_.reset();
    chain_ = Chain();
  }

  Chain chain_;
  AllocationPtr live_;
};

TEST_F(CudaMallocAsyncThrottleTest, WaitsAboveTheRatio) {
  BuildWith(0.49);
  EXPECT_TRUE(Waits(chain_));
}

TEST_F(CudaMallocAsyncThrottleTest, DoesNotWaitAtTheRatio) {
  BuildWith(0.5);
  EXPECT_FALSE(Waits(chain_));
}

// paddle.md §5 B2: pending memory counted twice would make 48 MiB of 32 MiB.
TEST_F(CudaMallocAsyncThrottleTest, CountsPendingMemoryOnce) {
  BuildWith(0.7);
  EXPECT_FALSE(Waits(chain_));
}

TEST_F(CudaMallocAsyncThrottleTest, AWaitEndsWhatIsPending) {
  BuildWith(0.1);
  EXPECT_TRUE(Waits(chain_));
  EXPECT_FALSE(Waits(chain_));
  FreeMarked(chain_->Allocate(1000), NewStream());
  EXPECT_TRUE(Waits(chain_));
}

// A free stream may wait for the stream that forbids waits.
TEST_F(CudaMallocAsyncThrottleTest, NeverWaitsWhileAStreamForbidsIt) {
  setting_.knows_captures = true;
  BuildWith(0.1);
  const Stream forbidding = NewStream();
  timelines_->ForbidWaits(forbidding);
  EXPECT_FALSE(Waits(chain_));
  timelines_->StreamDestroyed(forbidding);
  EXPECT_TRUE(Waits(chain_));
}

TEST_F(CudaMallocAsyncThrottleTest, NothingPendingIsNothingToWaitFor) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0;
  Build();
  chain_ = NewChain();
  live_ = chain_->Allocate(Mebibytes(60));
  StartLog();
  chain_->Allocate(1000).reset();
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kMemGetInfo).size(), 0U);
}

TEST_F(CudaMallocAsyncThrottleTest, DoesNotWaitForWhatIsDone) {
  BuildWith(0.1);
  device().StepAll();
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kStreamQuery).size(), 1U);
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kStreamQuery).size(), 0U);
}

// Otherwise addresses would depend on completion times.
TEST_F(CudaMallocAsyncThrottleTest, WaitsForWhatIsDoneIfDeterministic) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  BuildWith(0.1);
  device().StepAll();
  EXPECT_TRUE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kStreamQuery).size(), 0U);
}

// The free stream with the most bytes comes first.
TEST_F(CudaMallocAsyncThrottleTest, WaitsForNoMoreThanItNeeds) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.45;
  setting_.progress = "manual";
  Build();
  chain_ = NewChain();
  live_ = chain_->Allocate(Mebibytes(16));
  AllocationPtr large = chain_->Allocate(Mebibytes(16));
  AllocationPtr small = chain_->Allocate(Mebibytes(8));
  FreeMarked(std::move(small), NewStream());
  FreeMarked(std::move(large), NewStream());
  StartLog();
  const AllocationPtr block = chain_->Allocate(1000);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamWaitEvent).size(), 1U);
}

// The free streams belong to the place, so each stream waits by itself, and the
// memory of all streams counts.
TEST_F(CudaMallocAsyncThrottleTest, EachStreamWaitsForItself) {
  BuildWith(0.49);
  const Chain other = NewChain();
  EXPECT_TRUE(Waits(chain_));
  EXPECT_TRUE(Waits(other));
  EXPECT_FALSE(Waits(other));
}

TEST_F(CudaMallocAsyncThrottleTest, TheRatioIsOfALowerLimit) {
  setting_.limit_bytes = Mebibytes(40);
  BuildWith(0.7);
  EXPECT_TRUE(Waits(chain_));
}

// 3.7-4: queried once, at the first comparison.
TEST_F(CudaMallocAsyncThrottleTest, TheTotalIsAskedForOnce) {
  BuildWith(0.9);
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kMemGetInfo).size(), 1U);
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kMemGetInfo).size(), 0U);
}

TEST_F(CudaMallocAsyncThrottleTest, ATotalThatIsNotToldIsAskedForAgain) {
  BuildWith(0.1);
  FaultRule fault;
  fault.call = DeviceCall::kMemGetInfo;
  fault.nth = 1;
  device().AddFault(fault);
  EXPECT_FALSE(Waits(chain_));
  EXPECT_TRUE(Waits(chain_));
}

// 3.7-3 (never during a capture) and 3.7-6 (Release then frees nothing).
TEST_F(CudaMallocAsyncThrottleTest, ACaptureIsLeftAlone) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.1;
  setting_.progress = "manual";
  Build();
  const Stream stream = NewStream();
  chain_ = NewChain(pool_, device(), stream);
  live_ = chain_->Allocate(Mebibytes(16));
  FreeMarked(chain_->Allocate(Mebibytes(16)), NewStream());
  ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
            Status::kSuccess);
  StartLog();
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(chain_->Release(), 0U);
  EXPECT_THAT(CallsOf(DeviceCall::kPoolTrimTo), IsEmpty());
  Graph graph;
  // Any wait would have ended it.
  ASSERT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  EXPECT_TRUE(Waits(chain_));
  live_.reset();
  EXPECT_GT(chain_->Release(), 0U);
  chain_ = Chain();
}

}  // namespace
}  // namespace strata
