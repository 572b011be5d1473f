// The pool below cuda_malloc_async: its settings on every device, and its
// owner.

#include "strata/strategy/cuda_malloc_async/driver_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"
#include "strata/tests/testing/devices/toy_platform.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr auto kThreshold = PoolAttribute::kReleaseThreshold;

class DriverPoolTest : public CudaMallocAsyncFixture {
 protected:
  MemPool DefaultPool() {
    MemPool pool;
    EXPECT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
    return pool;
  }
  std::uint64_t Get(MemPool pool, PoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(device().PoolGetAttribute(pool, attribute, &value),
              Status::kSuccess);
    return value;
  }
  // The pool that the logged calls allocated from.
  MemPool LoggedPool() const {
    const auto calls = CallsOf(DeviceCall::kMallocFromPoolAsync);
    if (calls.empty()) return MemPool{};
    return MemPool{reinterpret_cast<void*>(calls[0].value)};
  }
  // The pool of a place after its first allocation.
  MemPool UsedPool() {
    Build();
    chain_ = NewChain();
    StartLog();
    chain_->Allocate(1000).reset();
    return LoggedPool();
  }

  ~DriverPoolTest() override { chain_ = Chain(); }

  Chain chain_;
};

// P6: the default keeps everything.
TEST_F(DriverPoolTest, KeepsItsMemoryByDefault) {
  EXPECT_EQ(Get(UsedPool(), kThreshold), UINT64_MAX);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
}

TEST_F(DriverPoolTest, TheThresholdIsAnOption) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_memory_async_pool_release_threshold = 0;
  EXPECT_EQ(Get(UsedPool(), kThreshold), 0U);
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// paddle.md §5-B11: not once per process, which serves the first device only.
TEST_F(DriverPoolTest, TheThresholdIsSetOnEveryDevice) {
  setting_.devices = 3;
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_memory_async_pool_release_threshold = 12345;
  Build();
  for (int i = 0; i < 3; ++i) {
    std::vector<CallRecord> sets;
    SimDevice& on = platform_->sim_device(i);
    on.SetCallObserver([&sets](const CallRecord& call) {
      if (call.call == DeviceCall::kPoolSetAttribute) sets.push_back(call);
    });
    const std::shared_ptr<ChunkPool> place = NewPlace(i);
    NewChain(place, on, NewStream(i))->Allocate(1000).reset();
    on.SetCallObserver(nullptr);
    ASSERT_EQ(sets.size(), 1U) << i;
    EXPECT_EQ(sets[0].value, static_cast<std::uint64_t>(kThreshold));
    EXPECT_EQ(sets[0].bytes, 12345U);
  }
}

TEST_F(DriverPoolTest, LeavesTheDefaultPoolAlone) {
  const MemPool used = UsedPool();
  EXPECT_NE(used, DefaultPool());
  EXPECT_EQ(Get(DefaultPool(), kThreshold), 0U);
  EXPECT_EQ(Get(DefaultPool(), PoolAttribute::kReservedHigh), 0U);
}

TEST_F(DriverPoolTest, UsesTheDefaultPoolIfAsked) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_pool = "default";
  const MemPool used = UsedPool();
  EXPECT_EQ(used, DefaultPool());
  EXPECT_EQ(Count(DeviceCall::kPoolCreate), 0U);
  EXPECT_EQ(Get(DefaultPool(), kThreshold), UINT64_MAX);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
  // Its idle memory is released too.
  chain_ = Chain();
  EXPECT_EQ(Get(DefaultPool(), PoolAttribute::kReservedCurrent), 0U);
}

// P4, P5; TensorFlow's TF_DETERMINISTIC_ALLOCATOR.
TEST_F(DriverPoolTest, DeterministicReuseFollowsEventsOnly) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  const MemPool pool = UsedPool();
  EXPECT_EQ(Get(pool, PoolAttribute::kReuseFollowEventDependencies), 1U);
  EXPECT_EQ(Get(pool, PoolAttribute::kReuseAllowOpportunistic), 0U);
  EXPECT_EQ(Get(pool, PoolAttribute::kReuseAllowInternalDependencies), 0U);
}

TEST_F(DriverPoolTest, ReuseIsAsTheDriverLikesByDefault) {
  const MemPool pool = UsedPool();
  EXPECT_EQ(Get(pool, PoolAttribute::kReuseAllowOpportunistic), 1U);
  EXPECT_EQ(Get(pool, PoolAttribute::kReuseAllowInternalDependencies), 1U);
}

// TensorFlow's TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC.
TEST_F(DriverPoolTest, PreallocatesAtTheFirstAllocation) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_preallocate_bytes =
      Mebibytes(48);
  UsedPool();
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(48));
  const std::uint64_t asked = Count(DeviceCall::kMallocFromPoolAsync);
  const AllocationPtr next = chain_->Allocate(Mebibytes(40));
  EXPECT_EQ(Count(DeviceCall::kMallocFromPoolAsync), asked + 1);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(48));
}

TEST_F(DriverPoolTest, APreallocationThatDoesNotFitIsNoFailure) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_preallocate_bytes =
      Mebibytes(100);
  UsedPool();
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
}

// P10: peer access.
TEST_F(DriverPoolTest, PeersReachThePoolIfAsked) {
  setting_.devices = 3;
  setting_.ordinal = 1;
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_peer_access = true;
  UsedPool();
  const auto given = CallsOf(DeviceCall::kPoolSetAccess);
  EXPECT_EQ(given.size(), 2U);
  const AllocationPtr block = chain_->Allocate(1000);
  const Stream peer = NewStream(2);
  EXPECT_EQ(platform_->sim_device(2).MemsetAsync(
                reinterpret_cast<DevicePtr>(block->data()), 1, 1000, peer),
            Status::kSuccess);
}

TEST_F(DriverPoolTest, PeersAreKeptOutByDefault) {
  setting_.devices = 2;
  UsedPool();
  EXPECT_EQ(Count(DeviceCall::kPoolSetAccess), 0U);
  EXPECT_EQ(Count(DeviceCall::kCanAccessPeer), 0U);
}

// After any failure during the setup, the next request creates a new pool.
TEST_F(DriverPoolTest, APoolThatCannotBeSetUpIsNotKept) {
  setting_.devices = 2;
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_peer_access = true;
  for (const DeviceCall call :
       {DeviceCall::kPoolCreate, DeviceCall::kPoolSetAttribute,
        DeviceCall::kCanAccessPeer, DeviceCall::kPoolSetAccess}) {
    for (std::uint64_t nth = 1; nth <= 3; ++nth) {
      Build();
      {
        const Chain chain = NewChain();
        FaultRule fault;
        fault.call = call;
        fault.nth = nth;
        device().AddFault(fault);
        Failure failure;
        const AllocationPtr block =
            chain->AllocateOrNull(Request{1000}, failure);
        if (block == nullptr) {
          EXPECT_EQ(device().Leaks().pools, 0U) << DeviceCallName(call);
        }
        EXPECT_NE(chain->Allocate(1000), nullptr) << DeviceCallName(call);
        EXPECT_EQ(device().Leaks().pools, 1U) << DeviceCallName(call);
      }
      EXPECT_EQ(device().Leaks().pools, 0U) << DeviceCallName(call);
    }
  }
}

// The pool ends with the last chain of the place.
TEST_F(DriverPoolTest, LivesAsLongAsAChain) {
  Build();
  Chain first = NewChain();
  Chain second = NewChain();
  first->Allocate(1000).reset();
  first = Chain();
  EXPECT_EQ(device().Leaks().pools, 1U);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
  second = Chain();
  EXPECT_EQ(device().Leaks().pools, 0U);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// A chain on a device without pools is refused; the error names the device.
TEST(DriverPoolRefusalTest, NamesADeviceWithoutPools) {
  const std::shared_ptr<Platform> toy = MakeToyPlatform(PlatformOptions());
  const auto pool = std::make_shared<ChunkPool>(
      std::make_shared<DeviceAllocator>(toy, 0), 0, nullptr);
  const auto stream = std::make_shared<ChainStream>(
      toy->device(0), toy->device(0).LegacyStream());
  EXPECT_THAT(
      [&] { MakeCudaMallocAsyncAllocator(pool, stream, StrategyOptions()); },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("cuda_malloc_async"), HasSubstr("device:0"))));
}

}  // namespace
}  // namespace strata
