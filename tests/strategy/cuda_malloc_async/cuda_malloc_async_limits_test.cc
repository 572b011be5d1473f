// Memory that cuda_malloc_async holds and releases: the limit, the statistics,
// Release and exhaustion.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

class CudaMallocAsyncLimitsTest : public CudaMallocAsyncFixture {
 protected:
  static bool Fails(const Chain& chain, std::size_t bytes, Failure& failure) {
    return chain->AllocateOrNull(Request{bytes}, failure) == nullptr;
  }
};

// The reported bytes are those that the driver reserves, here in pieces of 32
// MiB.
TEST_F(CudaMallocAsyncLimitsTest, ReservedIsWhatTheDriverHolds) {
  Build();
  const Chain chain = NewChain();
  const AllocationPtr block = chain->Allocate(1000);
  EXPECT_EQ(pool_->stats().reserved_bytes, Mebibytes(32));
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
  AllocationPtr large = chain->Allocate(Mebibytes(32));
  EXPECT_EQ(pool_->stats().reserved_bytes, Mebibytes(64));
  large.reset();
  EXPECT_EQ(chain->Release(), Mebibytes(32));
  EXPECT_EQ(pool_->stats().reserved_bytes, Mebibytes(32));
  EXPECT_EQ(pool_->stats().peak_reserved_bytes, Mebibytes(64));
  chain->ResetPeak();
  EXPECT_EQ(pool_->stats().peak_reserved_bytes, Mebibytes(32));
}

TEST_F(CudaMallocAsyncLimitsTest, CountsWhatItsCallersHold) {
  Build();
  const Chain chain = NewChain();
  AllocationPtr first = chain->Allocate(1000);
  AllocationPtr second = chain->Allocate(3000);
  first.reset();
  const Stats stats = chain->stats();
  EXPECT_EQ(stats.in_use_bytes, 3072U);
  EXPECT_EQ(stats.requested_bytes, 3000U);
  EXPECT_EQ(stats.peak_in_use_bytes, 4096U);
  EXPECT_EQ(stats.live_allocations(), 1U);
  chain->ResetPeak();
  EXPECT_EQ(chain->stats().peak_in_use_bytes, 3072U);
}

// A failed query leaves the last value.
TEST_F(CudaMallocAsyncLimitsTest, KeepsTheLastNumberThatTheDriverTold) {
  Build();
  const Chain chain = NewChain();
  const AllocationPtr block = chain->Allocate(1000);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
  FaultRule fault;
  fault.call = DeviceCall::kPoolGetAttribute;
  device().AddFault(fault);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(32));
}

TEST_F(CudaMallocAsyncLimitsTest, MemoryInUseIsReservedBeforeTheDriverAnswers) {
  Build();
  FaultRule fault;
  fault.call = DeviceCall::kPoolGetAttribute;
  device().AddFault(fault);
  const Chain chain = NewChain();
  const AllocationPtr block = chain->Allocate(Mebibytes(3));
  const Stats stats = pool_->stats();
  EXPECT_GE(stats.reserved_bytes, Mebibytes(3));
  EXPECT_GE(stats.peak_reserved_bytes, Mebibytes(3));
}

TEST_F(CudaMallocAsyncLimitsTest, TheLimitIsOnWhatIsReserved) {
  // No multiple of the driver's step: it must not round up.
  setting_.limit_bytes = Mebibytes(37);
  Build();
  const Chain chain = NewChain();
  const Chain other = NewChain();
  std::vector<AllocationPtr> live;
  Failure failure;
  while (AllocationPtr block =
             (live.size() % 2 == 0 ? chain : other)
                 ->AllocateOrNull(Request{Mebibytes(3)}, failure)) {
    live.push_back(std::move(block));
    ASSERT_LE(pool_->reserved_bytes(), setting_.limit_bytes);
  }
  // 10 in the first piece of 32 MiB, one in the rest.
  EXPECT_EQ(live.size(), 11U);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(failure.limit_bytes, setting_.limit_bytes);
  EXPECT_EQ(failure.in_use_bytes, Mebibytes(33));
  EXPECT_EQ(failure.reserved_bytes, Mebibytes(36));
}

// Refused before a driver call.
TEST_F(CudaMallocAsyncLimitsTest, WhatIsInUseIsClaimedFirst) {
  setting_.limit_bytes = Mebibytes(36);
  Build();
  const Chain chain = NewChain();
  const AllocationPtr block = chain->Allocate(Mebibytes(20));
  const std::uint64_t asked = Count(DeviceCall::kMallocFromPoolAsync);
  Failure failure;
  EXPECT_TRUE(Fails(chain, Mebibytes(17), failure));
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(Count(DeviceCall::kMallocFromPoolAsync), asked);
  EXPECT_EQ(Count(DeviceCall::kPoolTrimTo), 0U);  // no idle memory would help
}

TEST_F(CudaMallocAsyncLimitsTest, ALimitBelowTheDriversStepServesNothing) {
  setting_.limit_bytes = Mebibytes(1);
  Build();
  const Chain chain = NewChain();
  Failure failure;
  EXPECT_TRUE(Fails(chain, 1000, failure));
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// §5-B11: no gap between the check and the count.
TEST_F(CudaMallocAsyncLimitsTest, TheLimitHoldsBetweenThreads) {
  setting_.limit_bytes = Mebibytes(34);
  Build();
  const std::vector<Chain> chains = {NewChain(), NewChain()};
  std::atomic<std::size_t> held{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        Failure failure;
        Request request{Mebibytes(8)};
        request.flags = kNoRetry;
        AllocationPtr block = chains[t % 2]->AllocateOrNull(request, failure);
        if (block == nullptr) continue;
        if ((held += block->size()) > setting_.limit_bytes) exceeded = true;
        held -= block->size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_LE(pool_->stats().peak_reserved_bytes, setting_.limit_bytes);
}

// After the last free, the whole claim is returned.
TEST_F(CudaMallocAsyncLimitsTest, ClaimsGoBackHoweverMemoryIsFreed) {
  setting_.limit_bytes = Mebibytes(32);
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  for (int i = 0; i < 5; ++i) {
    AllocationPtr block = chain->Allocate(Mebibytes(32));
    if (i % 2 == 0) {
      FreeMarked(std::move(block), user);
    }
  }
  Failure failure;
  EXPECT_TRUE(Fails(chain, Mebibytes(33), failure));
}

// A failed driver call claims nothing either.
TEST_F(CudaMallocAsyncLimitsTest, ARefusalClaimsNothing) {
  setting_.limit_bytes = Mebibytes(40);
  Build();
  const Chain chain = NewChain();
  FaultRule fault;
  fault.call = DeviceCall::kMallocFromPoolAsync;
  device().AddFault(fault);
  Failure failure;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Fails(chain, Mebibytes(30), failure));
    EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  }
  device().ClearFaults();
  EXPECT_FALSE(Fails(chain, Mebibytes(40), failure));
}

// Trim needs a wait: freed memory of a stream is idle only after it.
TEST_F(CudaMallocAsyncLimitsTest, ReleaseWaitsForItsStreamAndTrims) {
  setting_.progress = "lazy";
  Build();
  const Chain chain = NewChain();
  const Stream user = NewStream();
  AllocationPtr plain = chain->Allocate(Mebibytes(32));
  AllocationPtr marked = chain->Allocate(Mebibytes(32));
  plain.reset();
  FreeMarked(std::move(marked), user);
  EXPECT_EQ(chain->Release(), Mebibytes(64));
  EXPECT_EQ(chain->Release(), 0U);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// Memory that another stream freed, behind pending work, becomes available: on
// the free stream without a wait of the host, on other streams with one.
// Without the ladder, the driver would not reuse it, because reuse may not
// depend on luck.
TEST_F(CudaMallocAsyncLimitsTest, ExhaustionReachesWhatWasFreedAside) {
  setting_.progress = "lazy";
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 2;  // never
  Build();
  const Chain chain = NewChain();
  FreeMarked(chain->Allocate(Mebibytes(40)), NewStream());
  StartLog();
  EXPECT_NE(chain->Allocate(Mebibytes(40)), nullptr);
  EXPECT_EQ(CallsOf(DeviceCall::kMallocFromPoolAsync).size(), 2U);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamSynchronize).size(), 0U);
}

TEST_F(CudaMallocAsyncLimitsTest, ExhaustionReachesWhatOtherStreamsFreed) {
  setting_.progress = "lazy";
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  Build();
  const Chain chain = NewChain();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(40)).reset();
  StartLog();
  EXPECT_NE(chain->Allocate(Mebibytes(40)), nullptr);
  EXPECT_EQ(CallsOf(DeviceCall::kMallocFromPoolAsync).size(), 2U);
  EXPECT_GE(CallsOf(DeviceCall::kPoolTrimTo).size(), 1U);
}

// Memory that the pool can allocate without a wait is allocated without one.
TEST_F(CudaMallocAsyncLimitsTest, ExhaustionWaitsOnlyIfItMust) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_deterministic =
      true;
  Build();
  const Chain chain = NewChain();
  const Chain other = NewChain();
  other->Allocate(Mebibytes(40)).reset();
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  // A chunk of one stream may serve another one only after its release.
  StartLog();
  EXPECT_NE(chain->Allocate(Mebibytes(40)), nullptr);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamSynchronize).size(), 0U);
}

TEST_F(CudaMallocAsyncLimitsTest, AnImpossibleRequestCostsNobodyHisMemory) {
  Build();
  const Chain chain = NewChain();
  chain->Allocate(Mebibytes(40)).reset();
  Failure failure;
  EXPECT_TRUE(Fails(chain, Mebibytes(100), failure));
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.device_total_bytes, Mebibytes(64));
  EXPECT_EQ(Count(DeviceCall::kPoolTrimTo), 0U);
  EXPECT_EQ(pool_->reserved_bytes(), Mebibytes(40));
}

}  // namespace
}  // namespace strata
