#include "strata/strategy/shared/stream_view.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/strategy/registry.h"
#include "strata/tests/strategy/shared/stream_view_fixture.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {
namespace {

TEST_F(StreamViewTest, AStreamGetsItsOwnBlockBackWithoutWaiting) {
  AllocationPtr block = a_->Allocate(4096);
  const void* data = block->data();
  block.reset();
  block = a_->Allocate(4096);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(Waits(), 0U);
}

// Blocks that a stream freed while it was alone are not deferred. The second
// stream waits for them, once.
TEST_F(StreamViewTest, ASecondStreamWaitsForWhatTheFirstFreedAlone) {
  AllocationPtr block = a_->Allocate(4096);
  const void* data = block->data();
  block.reset();
  EXPECT_FALSE(place_.frees()->any());
  block = b_->Allocate(4096);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(Waits(), 1U);
  const AllocationPtr more = b_->Allocate(4096);
  EXPECT_EQ(Waits(), 1U);
}

// DESIGN §4: a block freed on stream A stays in A's list.
TEST_F(StreamViewTest, AStreamReusesItsDeferredBlockAtOnce) {
  UseBoth();
  AllocationPtr block = a_->Allocate(4096);
  const void* const data = block->data();
  Work(*a_);
  block.reset();
  const std::uint64_t calls = place_.DeviceCalls();
  block = a_->Allocate(4000);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(block->requested_bytes(), 4000U);
  EXPECT_EQ(place_.DeviceCalls(), calls);
}

// So blocks freed earlier become available to others sooner.
TEST_F(StreamViewTest, AmongEqualSizesTheNewestDeferredBlockIsTaken) {
  UseBoth();
  std::array<AllocationPtr, 3> blocks;
  std::array<const void*, 3> addresses{};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = a_->Allocate(4096);
    addresses[i] = blocks[i]->data();
  }
  Work(*a_);
  for (const std::size_t i : {2U, 0U, 1U}) blocks[i].reset();
  for (const std::size_t i : {1U, 0U, 2U}) {
    blocks[i] = a_->Allocate(4096);
    EXPECT_EQ(blocks[i]->data(), addresses[i]);
  }
}

// For a strategy that aligns blocks itself.
TEST(StreamViewOfBfcTest, AnAlignedRequestGetsTheAlignedDeferredBlock) {
  PoolPlaceOptions options;
  options.progress = "manual";
  PoolPlace place(options);
  StrategySource source("bfc", place.pool(), StrategyOptions(), place.frees());
  const std::shared_ptr<ChainStream> stream = place.NewChainStream();
  const std::shared_ptr<Allocator> a = source.For(stream);
  const std::shared_ptr<Allocator> b = source.For(place.NewChainStream());
  a->Allocate(256).reset();
  b->Allocate(256).reset();
  DevicePtr scratch = 0;
  ASSERT_EQ(place.device().MemAlloc(&scratch, 64), Status::kSuccess);

  constexpr std::size_t kBytes = 8192;
  AllocationPtr aligned = a->Allocate(Request{kBytes, kBytes});
  const AllocationPtr filler = a->Allocate(kBytes + 256);
  AllocationPtr plain = a->Allocate(kBytes);
  const void* const data = aligned->data();
  ASSERT_NE(reinterpret_cast<std::uintptr_t>(plain->data()) % kBytes, 0U);
  ASSERT_EQ(place.device().MemsetAsync(scratch, 1, 64, stream->stream()),
            Status::kSuccess);
  aligned.reset();
  plain.reset();
  aligned = a->Allocate(Request{kBytes, kBytes});
  EXPECT_EQ(aligned->data(), data);
  aligned.reset();
  place.frees()->Close();
}

// DESIGN §4: it reaches the shared strategy when A's event is complete.
TEST_F(StreamViewTest, AnotherStreamGetsADeferredBlockOnceTheWorkIsDone) {
  UseBoth();
  const std::uint64_t waits = Waits();
  AllocationPtr block = a_->Allocate(Mebibytes(20));
  const void* const data = block->data();
  Work(*a_);
  block.reset();
  AllocationPtr other = b_->Allocate(Mebibytes(20));
  EXPECT_NE(other->data(), data);
  device().StepAll();
  AllocationPtr again = b_->Allocate(Mebibytes(20));
  EXPECT_EQ(again->data(), data);
  EXPECT_EQ(Waits(), waits);
}

// Also by a request that must not grow, because the layer above tries that
// first.
TEST_F(StreamViewTest, ADeferredBlockServesARequestWithoutGrowth) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(20));
  const void* const data = block->data();
  Work(*a_);
  block.reset();
  block = a_->Allocate(Request{Mebibytes(20), 0, kNoGrowth});
  EXPECT_EQ(block->data(), data);
}

TEST_F(StreamViewTest, ADeferredBlockIsNotWastedOnASmallRequest) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(1));
  const void* const data = block->data();
  Work(*a_);
  block.reset();
  EXPECT_NE(a_->Allocate(Mebibytes(1) / 2)->data(), data);
  EXPECT_EQ(a_->Allocate(Mebibytes(1) - 1000)->data(), data);
}

// The strategy gets the block, and orders the next stream on the device.
TEST_F(StreamViewTest, ARequestWaitsOnTheDeviceInsteadOfFailing) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(200));
  Work(*a_);
  block.reset();
  const std::uint64_t waits = Waits();
  block = b_->Allocate(Mebibytes(200));
  EXPECT_EQ(Waits(), waits + 1);
  EXPECT_FALSE(place_.frees()->any());
  Work(*b_);
  EXPECT_FALSE(device().Step(b_->stream()));  // the work of A comes first
  block.reset();
  // A knows of the free by B, and waits for it in turn.
  const Request at_once{Mebibytes(200), 0, kNoRetry};
  Failure failure;
  Allocation* const again = a_->TryAllocate(at_once, failure);
  ASSERT_NE(again, nullptr) << failure.ToString();
  EXPECT_EQ(Waits(), waits + 2);
  a_->DoFree(again);
}

// A wait that the device refuses would hand out memory that is in use.
TEST_F(StreamViewTest, WithoutAnEventTheHostWaitsInsteadOfTheDevice) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(200));
  Work(*a_);
  block.reset();
  device().AddFault(FailAll(DeviceCall::kEventRecord));
  Failure failure;
  const Request at_once{Mebibytes(200), 0, kNoRetry};
  EXPECT_EQ(b_->TryAllocate(at_once, failure), nullptr);
  EXPECT_TRUE(failure.IsExhaustion());
  EXPECT_EQ(place_.frees()->deferred().bytes, Mebibytes(200));
  device().ClearFaults();
  const std::uint64_t waits = Waits();
  EXPECT_NE(b_->TryAllocate(at_once, failure), nullptr);
  EXPECT_EQ(Waits(), waits + 1);
}

// A capture forbids the wait on the device. No request would wait for the block
// that could be split.
TEST_F(StreamViewTest, BesideACaptureABlockIsWastedInsteadOfFailing) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(250));
  const void* const data = block->data();
  const AllocationPtr rest = a_->Allocate(Mebibytes(4));
  Work(*a_);
  block.reset();
  Failure failure;
  const Request small{Mebibytes(6)};
  place_.timelines()->gate().Announce();
  EXPECT_EQ(b_->TryAllocate(small, failure), nullptr);  // it belongs to A
  Allocation* const taken = a_->TryAllocate(small, failure);
  place_.timelines()->gate().Withdraw();
  ASSERT_NE(taken, nullptr) << failure.ToString();
  EXPECT_EQ(taken->data(), data);
  EXPECT_EQ(taken->requested_bytes(), small.bytes);
  a_->DoFree(taken);
  EXPECT_NE(device().PendingCount(), 0U);
  const AllocationPtr half = a_->Allocate(Mebibytes(120));
  EXPECT_LT(half->size(), Mebibytes(121));
  EXPECT_NO_THROW(a_->Allocate(Mebibytes(120)));
}

// The free of another stream is too small.
TEST_F(StreamViewTest, ARequestThatIsNotRetriedWastesItsBlockAtLast) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(250));
  const void* const data = block->data();
  const AllocationPtr rest = a_->Allocate(Mebibytes(4));
  AllocationPtr small = b_->Allocate(1000);
  place_.timelines()->Of(a_->stream())->ForbidWaits();
  Work(*a_);
  Work(*b_);
  block.reset();
  small.reset();
  block = a_->Allocate(Request{Mebibytes(6), 0, kNoRetry});
  EXPECT_EQ(block->data(), data);
}

// Blocks of one size class, of which only the older one may go.
TEST_F(StreamViewTest, OnlyBlocksFreedBeforeTheDoneWorkGoToTheStrategy) {
  UseBoth();
  device().StepAll();
  place_.frees()->Await();
  AllocationPtr older = a_->Allocate(4096);
  AllocationPtr newer = a_->Allocate(4352);
  Work(*a_);
  older.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);  // records an event
  Work(*a_);
  newer.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 2U);
  while (place_.frees()->Drain() == 0) {
    ASSERT_TRUE(device().Step(a_->stream()));
  }
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  EXPECT_EQ(place_.frees()->deferred().bytes, 4352U);
  EXPECT_NE(device().PendingCount(), 0U);
}

TEST_F(StreamViewTest, ARequestThatIsNotRetriedGetsTheDeferredBlock) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(20));
  const void* const data = block->data();
  Work(*a_);
  block.reset();
  block = a_->Allocate(Request{Mebibytes(20), 0, kNoRetry});
  EXPECT_EQ(block->data(), data);
}

TEST_F(StreamViewTest, RecordsOneEventIn64Frees) {
  UseBoth();
  a_->Allocate(4096).reset();
  const std::uint64_t before = device().CallCount(DeviceCall::kEventRecord);
  for (int i = 0; i < 640; ++i) a_->Allocate(4096).reset();
  EXPECT_LE(device().CallCount(DeviceCall::kEventRecord) - before, 10U);
}

TEST_F(StreamViewTest, ABlockOutlivesItsViewAndItsStream) {
  UseBoth();
  AllocationPtr block = a_->Allocate(Mebibytes(20));
  const void* const data = block->data();
  const Stream stream = a_->stream();
  Work(*a_);
  block.reset();
  place_.timelines()->StreamDestroyed(stream);
  EXPECT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  a_.reset();
  EXPECT_NE(b_->Allocate(Mebibytes(20))->data(), data);
  device().StepAll();
  b_->Allocate(Mebibytes(60)).reset();  // a miss
  EXPECT_EQ(place_.frees()->deferred().blocks, 0U);
}

// Blocks freed earlier do not use the room of blocks still in use.
TEST_F(StreamViewTest, EveryBlockOfSeveralStreamsCanBeDeferred) {
  UseBoth();
  const AllocationPtr other = b_->Allocate(256);
  const std::uint64_t waits = Waits();
  for (const std::size_t bytes : {4096U, 16384U, 65536U}) {
    std::vector<AllocationPtr> held;
    for (int i = 0; i < 40; ++i) held.push_back(a_->Allocate(bytes));
    Work(*a_);
    held.clear();
  }
  EXPECT_EQ(place_.frees()->deferred().blocks, 120U);
  const AllocationPtr more = b_->Allocate(4096);
  EXPECT_EQ(Waits(), waits);
}

TEST_F(StreamViewTest, FreeingADeferredBlockAgainIsFatal) {
  UseBoth();
  AllocationPtr block = a_->Allocate(4096);
  Allocation* const raw = block.get();
  Work(*a_);
  block.reset();
  EXPECT_DEATH(AllocationDeleter()(raw), "double free");
}

// After any failure, memory in use is not allocated again, and nothing leaks.
TEST_F(StreamViewTest, AFailingDeviceLosesNothing) {
  UseBoth();
  for (const DeviceCall call :
       {DeviceCall::kEventCreate, DeviceCall::kEventRecord,
        DeviceCall::kEventQuery, DeviceCall::kStreamWaitEvent}) {
    AllocationPtr block = a_->Allocate(Mebibytes(20));
    const void* const data = block->data();
    Work(*a_);
    device().AddFault(FailAll(call));
    block.reset();
    EXPECT_NE(b_->Allocate(Mebibytes(20))->data(), data)
        << DeviceCallName(call);
    device().ClearFaults();
    device().StepAll();
    place_.frees()->Await();
    EXPECT_FALSE(place_.frees()->any()) << DeviceCallName(call);
  }
}

TEST_F(StreamViewTest, WithoutDeferredFreesAnotherStreamWaitsOnTheDevice) {
  StreamView a(strategy_, order_, place_.NewChainStream());
  StreamView b(strategy_, order_, place_.NewChainStream());
  const AllocationPtr first = b.Allocate(256);
  AllocationPtr block = a.Allocate(4096);
  const void* const data = block->data();
  Work(a);
  block.reset();
  const std::uint64_t waits = Waits();
  block = b.Allocate(4096);
  EXPECT_EQ(block->data(), data);
  EXPECT_GT(Waits(), waits);
  Work(b);
  EXPECT_FALSE(device().Step(b.stream()));
}

// cuda_semantics.md C16: no event can be recorded in a capturing stream.
TEST_F(StreamViewTest, WhatAStreamFreedBeforeItCapturesIsThereForOthers) {
  AllocationPtr block = a_->Allocate(4096);
  const void* const data = block->data();
  Work(*a_);
  block.reset();
  place_.timelines()->Settle();
  place_.timelines()->gate().Announce();
  ASSERT_EQ(device().StreamBeginCapture(a_->stream(), CaptureMode::kRelaxed),
            Status::kSuccess);
  block = b_->Allocate(4096);
  EXPECT_EQ(block->data(), data);
  Work(*b_);
  EXPECT_FALSE(device().Step(b_->stream()));  // waits for the work of A
  EndCapture();
}

TEST_F(StreamViewTest, AFreeAfterTheAnnouncementIsDeferred) {
  place_.timelines()->gate().Announce();
  a_->Allocate(4096).reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  ASSERT_EQ(device().StreamBeginCapture(a_->stream(), CaptureMode::kRelaxed),
            Status::kSuccess);
  EXPECT_NO_THROW(b_->Allocate(4096));
  EndCapture();
}

TEST_F(StreamViewTest, SoIsAFreeOfABlockAllocatedBeforeIt) {
  AllocationPtr block = a_->Allocate(4096);
  place_.timelines()->gate().Announce();
  block.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  place_.timelines()->gate().Withdraw();
}

TEST_F(StreamViewTest, CountsItsOwnStreamOnly) {
  const AllocationPtr first = a_->Allocate(1000);
  const AllocationPtr second = b_->Allocate(5000);
  EXPECT_EQ(a_->stats().requested_bytes, 1000U);
  EXPECT_EQ(a_->stats().allocations, 1U);
  EXPECT_EQ(b_->stats().requested_bytes, 5000U);
  EXPECT_EQ(strategy_->stats().in_use_bytes,
            a_->stats().in_use_bytes + b_->stats().in_use_bytes);
}

TEST_F(StreamViewTest, AnOrderThatFailsHandsNothingOut) {
  a_->Allocate(4096).reset();
  // Freed while the stream was alone.
  place_.device().AddFault(FailAll(DeviceCall::kEventRecord));
  place_.device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  place_.device().AddFault(FailAll(DeviceCall::kSynchronize));
  Failure failure;
  EXPECT_EQ(b_->AllocateOrNull(Request{4096}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
  EXPECT_EQ(b_->stats().live_allocations(), 0U);
  EXPECT_EQ(strategy_->stats().in_use_bytes, 0U);
  // The stream that freed the block is not affected.
  EXPECT_NE(a_->AllocateOrNull(Request{4096}, failure), nullptr);
}

TEST_F(StreamViewTest, ReleaseWaitsForEveryStream) {
  a_->Allocate(4096).reset();
  const std::uint64_t waits =
      place_.device().CallCount(DeviceCall::kStreamSynchronize);
  EXPECT_GT(b_->Release(), 0U);
  EXPECT_EQ(place_.device().CallCount(DeviceCall::kStreamSynchronize),
            waits + 2);
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

TEST_F(StreamViewTest, ViewsServeThreadsTogether) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 300;
  LiveRanges live;
  std::vector<std::unique_ptr<StreamView>> views;
  for (int i = 0; i < kThreads; ++i) views.push_back(NewView());
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto& view : views) {
    threads.emplace_back([&live, &view] {
      for (std::size_t i = 1; i <= kRounds; ++i) {
        AllocationPtr block = view->Allocate(i * 512);
        EXPECT_TRUE(live.Add(*block));
        EXPECT_TRUE(live.Remove(*block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  views.front()->Release();
  EXPECT_EQ(strategy_->stats().in_use_bytes, 0U);
  EXPECT_TRUE(strategy_->IsConsistent());
}

}  // namespace
}  // namespace strata
