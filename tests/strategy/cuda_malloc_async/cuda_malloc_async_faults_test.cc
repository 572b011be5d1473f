// Failing device calls of cuda_malloc_async: nothing leaks, and no memory is
// reused too early.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_fixture.h"

namespace strata {
namespace {

class CudaMallocAsyncFaultsTest : public CudaMallocAsyncFixture {
 protected:
  void Fail(DeviceCall call, std::uint64_t nth = 0) {
    FaultRule fault;
    fault.call = call;
    fault.nth = nth;
    device().AddFault(fault);
  }

  // Frees in all ways, throttles, exhausts and releases.
  void Run() {
    const Chain chain = NewChain();
    Chain dying = NewChain();
    const Stream user = NewStream();
    const Stream gone = NewStream();
    Failure failure;
    const auto allocate = [&failure](const Chain& on, std::size_t bytes) {
      return on->AllocateOrNull(Request{bytes}, failure);
    };
    AllocationPtr plain = allocate(chain, Mebibytes(10));
    AllocationPtr marked = allocate(chain, Mebibytes(10));
    AllocationPtr orphan = allocate(dying, Mebibytes(1));
    AllocationPtr last = allocate(dying, Mebibytes(1));
    if (marked != nullptr) {
      chain->RecordStream(marked.get(), user);
      chain->RecordStream(marked.get(), gone);
    }
    chain->StreamDestroyed(gone);
    Destroy(gone);
    marked.reset();
    plain.reset();
    AllocationPtr throttled = allocate(chain, Mebibytes(20));
    throttled.reset();
    AllocationPtr impossible = allocate(chain, Mebibytes(100));
    EXPECT_EQ(impossible, nullptr);
    chain->Release();
    dying->StreamDestroyed(dying.stream());
    dying.chain_stream->Synchronize();
    dying.chain_stream->Retire();
    orphan.reset();
    last.reset();
    device().ClearFaults();
    chain->Release();
    dying->Release();
    EXPECT_EQ(pool_->reserved_bytes(), 0U);
    EXPECT_EQ(chain->stats().in_use_bytes, 0U);
    EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  }
};

TEST_F(CudaMallocAsyncFaultsTest, EveryCallMayFailOnce) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.01;
  const std::size_t records = RecordSlab::Instance().taken();
  int runs = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    if (call == DeviceCall::kStreamDestroy)
      continue;  // only the test itself makes this call
    for (std::uint64_t nth = 1;; ++nth) {
      Build();
      // The test's own streams are created first, three in a row.
      const bool is_stream = call == DeviceCall::kStreamCreate;
      const std::uint64_t calls = Count(call);
      Fail(call, is_stream ? nth + 4 : nth);
      Run();
      EXPECT_EQ(RecordSlab::Instance().taken(), records)
          << DeviceCallName(call) << " " << nth;
      ++runs;
      if (Count(call) - calls < (is_stream ? nth + 4 : nth)) break;
      // The device keeps the objects that it failed to destroy.
      expects_no_leak_ = call != DeviceCall::kEventDestroy;
    }
  }
  EXPECT_GT(runs, 60);
}

// Memory that the driver fails to free is kept and counted, and freed later.
TEST_F(CudaMallocAsyncFaultsTest, WhatCannotBeFreedIsKeptForLater) {
  setting_.limit_bytes = Mebibytes(40);
  Build();
  const Chain chain = NewChain();
  AllocationPtr block = chain->Allocate(Mebibytes(30));
  Fail(DeviceCall::kFreeAsync);
  block.reset();
  EXPECT_EQ(chain->stats().in_use_bytes, 0U);
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  Failure failure;
  Request request{Mebibytes(30)};
  request.flags = kNoRetry;
  EXPECT_EQ(chain->AllocateOrNull(request, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  // The ladder releases memory for a request only if it counts.
  EXPECT_GE(pool_->ReclaimableBytes(/*of_limit=*/true), Mebibytes(30));
  // It is freed after a wait for the device, without the failing call.
  EXPECT_EQ(chain->Release(), Mebibytes(32));
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  EXPECT_LT(pool_->ReclaimableBytes(/*of_limit=*/true), Mebibytes(30));
  EXPECT_NE(chain->AllocateOrNull(request, failure), nullptr);
  device().ClearFaults();
}

// Neither the free stream nor an event is available: the host waits instead.
TEST_F(CudaMallocAsyncFaultsTest, WithoutEventsTheHostWaits) {
  setting_.progress = "lazy";
  for (const DeviceCall call :
       {DeviceCall::kEventCreate, DeviceCall::kEventRecord,
        DeviceCall::kStreamWaitEvent, DeviceCall::kStreamCreate}) {
    Build();
    const Chain chain = NewChain();
    const Stream user = NewStream();
    bool used = false;
    AllocationPtr block = chain->Allocate(1000);
    device().LaunchHostFunc(
        user, [](void* flag) { *static_cast<bool*>(flag) = true; }, &used);
    Fail(call);
    FreeMarked(std::move(block), user);
    EXPECT_TRUE(used) << DeviceCallName(call);
    EXPECT_EQ(device().Leaks().pool_blocks, 0U) << DeviceCallName(call);
  }
}

// Ordering and waits failed: the memory is not released before the device
//   answers.
TEST_F(CudaMallocAsyncFaultsTest, WithoutAnyWaitMemoryStaysInUse) {
  Build();
  const Chain chain = NewChain();
  AllocationPtr block = chain->Allocate(1000);
  for (const DeviceCall call :
       {DeviceCall::kEventRecord, DeviceCall::kStreamSynchronize,
        DeviceCall::kSynchronize}) {
    Fail(call);
  }
  FreeMarked(std::move(block), NewStream());
  chain->Release();
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  EXPECT_GT(pool_->reserved_bytes(), 0U);
  device().ClearFaults();
  chain->Release();
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// The driver keeps the objects that it fails to destroy. The chain ends anyway.
TEST_F(CudaMallocAsyncFaultsTest, EndsThoughTheDriverRefusesToEndAnything) {
  Build();
  {
    const Chain chain = NewChain();
    FreeMarked(chain->Allocate(1000), NewStream());
    Fail(DeviceCall::kStreamDestroy);
    Fail(DeviceCall::kPoolDestroy);
  }
  EXPECT_EQ(device().Leaks().pools, 1U);
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  expects_no_leak_ = false;
}

}  // namespace
}  // namespace strata
