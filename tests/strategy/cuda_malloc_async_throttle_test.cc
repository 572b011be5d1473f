// paddle.md §3.7 rule 3: waiting for what is freed aside, counted once
// (§5-B2), and what is left alone while the stream is capturing.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "strata/tests/strategy/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

// A simulated device whose streams are capturing when a test says so: it has
// the calls that the strategy makes.
class CapturingDevice final : public Device {
 public:
  explicit CapturingDevice(SimDevice& sim) : sim_(sim), caps_(sim.caps()) {
    caps_.capture = true;
  }

  bool is_capturing = false;

  int ordinal() const override { return sim_.ordinal(); }
  const Caps& caps() const override { return caps_; }
  Status StreamIsCapturing(Stream /*stream*/, CaptureStatus* status) override {
    *status = is_capturing ? CaptureStatus::kActive : CaptureStatus::kNone;
    return Status::kSuccess;
  }

  Status MemGetInfo(std::size_t* free_bytes,
                    std::size_t* total_bytes) override {
    return sim_.MemGetInfo(free_bytes, total_bytes);
  }
  Status Synchronize() override { return sim_.Synchronize(); }
  Status StreamCreate(Stream* stream, unsigned flags) override {
    return sim_.StreamCreate(stream, flags);
  }
  Status StreamDestroy(Stream stream) override {
    return sim_.StreamDestroy(stream);
  }
  Stream LegacyStream() override { return sim_.LegacyStream(); }
  Stream PerThreadStream() override { return sim_.PerThreadStream(); }
  Status WrapStream(void* handle, Stream* stream) override {
    return sim_.WrapStream(handle, stream);
  }
  Status StreamSynchronize(Stream stream) override {
    return sim_.StreamSynchronize(stream);
  }
  Status StreamQuery(Stream stream) override {
    return sim_.StreamQuery(stream);
  }
  Status StreamWaitEvent(Stream stream, Event event, unsigned flags) override {
    return sim_.StreamWaitEvent(stream, event, flags);
  }
  Status EventCreate(Event* event, unsigned flags) override {
    return sim_.EventCreate(event, flags);
  }
  Status EventDestroy(Event event) override { return sim_.EventDestroy(event); }
  Status EventRecord(Event event, Stream stream, unsigned flags) override {
    return sim_.EventRecord(event, stream, flags);
  }
  Status EventQuery(Event event) override { return sim_.EventQuery(event); }
  Status EventSynchronize(Event event) override {
    return sim_.EventSynchronize(event);
  }
  Status MemAlloc(DevicePtr* ptr, std::size_t bytes) override {
    return sim_.MemAlloc(ptr, bytes);
  }
  Status MemFree(DevicePtr ptr) override { return sim_.MemFree(ptr); }
  Status MemcpyAsync(DevicePtr target, DevicePtr source, std::size_t bytes,
                     Stream stream) override {
    return sim_.MemcpyAsync(target, source, bytes, stream);
  }
  Status MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                     Stream stream) override {
    return sim_.MemsetAsync(ptr, value, bytes, stream);
  }
  Status PoolCreate(MemPool* pool, const MemProperties& properties,
                    std::size_t max_bytes) override {
    return sim_.PoolCreate(pool, properties, max_bytes);
  }
  Status PoolDestroy(MemPool pool) override { return sim_.PoolDestroy(pool); }
  Status PoolTrimTo(MemPool pool, std::size_t keep_bytes) override {
    return sim_.PoolTrimTo(pool, keep_bytes);
  }
  Status PoolSetAttribute(MemPool pool, PoolAttribute attribute,
                          std::uint64_t value) override {
    return sim_.PoolSetAttribute(pool, attribute, value);
  }
  Status PoolGetAttribute(MemPool pool, PoolAttribute attribute,
                          std::uint64_t* value) override {
    return sim_.PoolGetAttribute(pool, attribute, value);
  }
  Status MallocFromPoolAsync(DevicePtr* ptr, std::size_t bytes, MemPool pool,
                             Stream stream) override {
    return sim_.MallocFromPoolAsync(ptr, bytes, pool, stream);
  }
  Status FreeAsync(DevicePtr ptr, Stream stream) override {
    return sim_.FreeAsync(ptr, stream);
  }

 private:
  SimDevice& sim_;
  Caps caps_;
};

// One chain with 16 MiB of 64 in use, and 16 MiB freed aside.
class CudaMallocAsyncThrottleTest : public CudaMallocAsyncFixture {
 protected:
  void BuildWith(double ratio) {
    options_.cuda_malloc_async_pool_memory_throttle_ratio = ratio;
    Build();
    chain_ = NewChain();
    live_ = chain_->Allocate(Mebibytes(16));
    FreeMarked(chain_->Allocate(Mebibytes(16)), NewStream());
    StartLog();
  }
  // Whether an allocation made `chain` wait for another stream.
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

// paddle.md §5 B2: counted twice, what is pending would make 48 MiB of what is
// 32.
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

TEST_F(CudaMallocAsyncThrottleTest, NothingPendingIsNothingToWaitFor) {
  options_.cuda_malloc_async_pool_memory_throttle_ratio = 0;
  Build();
  chain_ = NewChain();
  live_ = chain_->Allocate(Mebibytes(60));
  StartLog();
  chain_->Allocate(1000).reset();
  EXPECT_FALSE(Waits(chain_));
  EXPECT_EQ(CallsOf(DeviceCall::kMemGetInfo).size(), 0U);
}

// The free stream is the place's, so each stream waits for it by itself, and
// what all streams use counts.
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

// 3.7-4: asked for once, when there is something to compare.
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

// 3.7-3 (never while capturing) and 3.7-6 (Release gives nothing then).
TEST_F(CudaMallocAsyncThrottleTest, ACaptureIsLeftAlone) {
  options_.cuda_malloc_async_pool_memory_throttle_ratio = 0.1;
  Build();
  CapturingDevice capturing(device());
  chain_ = NewChain(pool_, capturing, NewStream());
  live_ = chain_->Allocate(Mebibytes(16));
  FreeMarked(chain_->Allocate(Mebibytes(16)), NewStream());
  capturing.is_capturing = true;
  StartLog();
  EXPECT_FALSE(Waits(chain_));
  log_.clear();
  EXPECT_EQ(chain_->Release(), 0U);
  EXPECT_TRUE(log_.empty());
  capturing.is_capturing = false;
  EXPECT_TRUE(Waits(chain_));
  live_.reset();
  EXPECT_GT(chain_->Release(), 0U);
  chain_ = Chain();
}

}  // namespace
}  // namespace strata
