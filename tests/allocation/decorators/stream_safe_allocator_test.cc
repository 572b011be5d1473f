#include "strata/allocation/decorators/stream_safe_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/tests/allocation/decorators/stream_safe_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

class StreamSafeAllocatorTest : public StreamSafeFixture {};

// paddle.md §3.6 rule 1.
TEST_F(StreamSafeAllocatorTest, WithoutMarksNothingIsAskedOfTheDevice) {
  layer().Allocate(1000).reset();
  const std::uint64_t calls = place_.DeviceCalls();
  layer().Allocate(1000).reset();
  EXPECT_EQ(place_.DeviceCalls(), calls);
  EXPECT_FALSE(place_.frees()->any());
}

// paddle.md §3.6 rule 2.
TEST_F(StreamSafeAllocatorTest, ItsOwnStreamNeedsNoMark) {
  AllocationPtr allocation = layer().Allocate(1000);
  EXPECT_FALSE(layer().RecordStream(allocation.get(), own()));
  EXPECT_FALSE(layer().RecordStream(allocation.get(), Stream()));
  layer().Free(std::move(allocation), own());
  EXPECT_FALSE(place_.frees()->any());
}

TEST_F(StreamSafeAllocatorTest, AMarkIsNoDeviceCall) {
  AllocationPtr allocation = layer().Allocate(1000);
  const std::uint64_t calls = place_.DeviceCalls();
  EXPECT_TRUE(layer().RecordStream(allocation.get(), a_));
  EXPECT_TRUE(layer().RecordStream(allocation.get(), a_));
  EXPECT_EQ(place_.DeviceCalls(), calls);
}

// paddle.md §3.6 rule 11.
TEST_F(StreamSafeAllocatorTest, FreeingAMarkedBlockIsNoDeviceCall) {
  AllocationPtr allocation = Marked({a_, b_});
  const std::uint64_t calls = place_.DeviceCalls();
  allocation.reset();
  EXPECT_EQ(place_.DeviceCalls(), calls);
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
}

TEST_F(StreamSafeAllocatorTest, IsNotReusedBeforeTheWorkOfAMarkedStream) {
  AllocationPtr allocation = Marked({a_});
  const void* const data = allocation->data();
  Work(a_);
  allocation.reset();
  AllocationPtr other = layer().Allocate(kBytes);
  EXPECT_NE(other->data(), data);
  device().Step(a_);
  AllocationPtr again = layer().Allocate(kBytes);
  EXPECT_EQ(again->data(), data);
}

TEST_F(StreamSafeAllocatorTest, WaitsForEveryStreamThatMarked) {
  AllocationPtr allocation = Marked({a_, b_});
  Work(a_);
  Work(b_);
  allocation.reset();
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().Step(b_);
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
  EXPECT_FALSE(place_.frees()->any());
}

// cuda_semantics.md §5.2: "event recorded at record_stream time instead of free
// time" misses the work in between.
TEST_F(StreamSafeAllocatorTest, WhatIsSubmittedBetweenMarkAndFreeCounts) {
  AllocationPtr allocation = Marked({a_});
  device().StepAll();
  Work(a_);
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

// pytorch.md §8 "record_stream": work after the batch delays nothing.
TEST_F(StreamSafeAllocatorTest, WhatIsSubmittedAfterTheBatchDoesNotCount) {
  AllocationPtr allocation = Marked({a_});
  Work(a_);
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);  // closes the batch
  Work(a_);
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(StreamSafeAllocatorTest, FreeingOnAnotherStreamIsAMark) {
  AllocationPtr allocation = layer().Allocate(kBytes);
  Work(a_);
  layer().Free(std::move(allocation), a_);
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

// paddle.md §5 A3: each erased mark leaked an event.
TEST_F(StreamSafeAllocatorTest, ErasedMarksCostNothing) {
  for (int i = 0; i < 100; ++i) {
    AllocationPtr allocation = Marked({a_, b_});
    layer().EraseStream(allocation.get(), a_);
    layer().EraseStream(allocation.get(), a_);
    layer().EraseStream(allocation.get(), own());
    layer().EraseStream(allocation.get(), b_);
    EXPECT_EQ(allocation->block()->flags & kBlockMarked, 0);
    allocation.reset();
    EXPECT_FALSE(place_.frees()->any());
  }
  EXPECT_EQ(Count(DeviceCall::kEventCreate), 0U);
}

TEST_F(StreamSafeAllocatorTest, OnlyTheErasedStreamIsForgotten) {
  AllocationPtr allocation = Marked({a_, b_});
  Work(a_);
  Work(b_);
  layer().EraseStream(allocation.get(), a_);
  allocation.reset();
  device().Step(b_);
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(StreamSafeAllocatorTest, ARecycledRecordHasNoMarks) {
  Marked({a_}).reset();
  device().StepAll();
  place_.frees()->Await();
  layer().Allocate(kBytes).reset();
  EXPECT_FALSE(place_.frees()->any());
}

// DESIGN §5: one event per stream and batch of 64.
TEST_F(StreamSafeAllocatorTest, RecordsOneEventIn64Frees) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 256; ++i) held.push_back(Marked({a_}));
  Work(a_);
  const std::uint64_t before = Count(DeviceCall::kEventRecord);
  held.clear();
  EXPECT_EQ(Count(DeviceCall::kEventRecord) - before, 256U / 64);
  EXPECT_EQ(place_.frees()->Await(), 256 * kBytes);
  EXPECT_EQ(Count(DeviceCall::kEventRecord) - before, 256U / 64);
}

// Without misses, frees do the drain.
TEST_F(StreamSafeAllocatorTest, FreesWhatIsDoneNowAndThenWithoutAMiss) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 256; ++i) held.push_back(Marked({a_}));
  held.clear();
  EXPECT_LT(place_.frees()->deferred().blocks, 64U);
}

// paddle.md §5 B3: every allocation queried every block.
TEST_F(StreamSafeAllocatorTest, AMissAsksOncePerStreamWhateverIsDeferred) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 50; ++i) held.push_back(Marked({a_, b_}));
  Work(a_);
  Work(b_);
  held.clear();
  const std::uint64_t queries = Count(DeviceCall::kEventQuery);
  const AllocationPtr miss = layer().Allocate(Mebibytes(40));
  EXPECT_EQ(Count(DeviceCall::kEventQuery) - queries, 2U);
}

TEST_F(StreamSafeAllocatorTest, AHitAsksNothing) {
  AllocationPtr marked = Marked({a_});
  layer().Allocate(512).reset();
  marked.reset();
  const std::uint64_t calls = place_.DeviceCalls();
  layer().Allocate(512).reset();
  EXPECT_EQ(place_.DeviceCalls(), calls);
}

// paddle.md §5 B3: only the next allocation on the same stream drained.
TEST_F(StreamSafeAllocatorTest, AMissOnAnotherStreamDrainsAllChains) {
  Chain second = NewChain();
  AllocationPtr of_first = Marked({a_});
  AllocationPtr of_second = second.layer->Allocate(kBytes);
  EXPECT_TRUE(second.layer->RecordStream(of_second.get(), b_));
  of_first.reset();
  of_second.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 2U);
  Chain third = NewChain();
  const AllocationPtr miss = third.layer->Allocate(kBytes);
  EXPECT_EQ(place_.frees()->deferred().blocks, 0U);
}

// paddle.md §5 A2: "streams may die before allocations".
TEST_F(StreamSafeAllocatorTest, AMarkOutlivesItsStream) {
  AllocationPtr freed_before = Marked({a_});
  AllocationPtr freed_after = Marked({a_});
  Work(a_);
  freed_before.reset();
  const std::uint64_t waits = Waits();
  layer().StreamDestroyed(a_);
  EXPECT_EQ(Waits(), waits);
  EXPECT_EQ(device().StreamDestroy(a_), Status::kSuccess);
  freed_after.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), 2 * kBytes);
}

TEST_F(StreamSafeAllocatorTest, AStreamThatMarkedButFreedNothingIsStillOwed) {
  AllocationPtr allocation = Marked({a_});
  Work(a_);
  layer().StreamDestroyed(a_);
  EXPECT_EQ(device().StreamDestroy(a_), Status::kSuccess);
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(StreamSafeAllocatorTest, AStreamGoneWithoutNoticeIsWaitedForByDevice) {
  AllocationPtr allocation = Marked({a_});
  Work(a_);
  EXPECT_EQ(device().StreamDestroy(a_), Status::kSuccess);
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  EXPECT_EQ(place_.frees()->Await(), kBytes);
  EXPECT_EQ(device().PendingCount(), 0U);
}

// pytorch.md §8 "retry path" (#189504): memory freed by a wait was not
// searched.
TEST_F(StreamSafeAllocatorTest, ExhaustionWaitsForDeferredFreesThenSearches) {
  AllocationPtr big = layer().Allocate(Mebibytes(800));
  EXPECT_TRUE(layer().RecordStream(big.get(), a_));
  Work(a_);
  big.reset();
  // The blocks do not fit side by side, and neither leaves a whole chunk.
  AllocationPtr part = layer().Allocate(Mebibytes(600));
  EXPECT_EQ(device().PendingCount(), 0U);
  EXPECT_FALSE(place_.frees()->any());
}

TEST_F(StreamSafeAllocatorTest, AnImpossibleRequestFailsWithAllFreesDrained) {
  AllocationPtr big = layer().Allocate(Mebibytes(800));
  EXPECT_TRUE(layer().RecordStream(big.get(), a_));
  Work(a_);
  big.reset();
  Failure failure;
  EXPECT_EQ(layer().AllocateOrNull(Request{Gibibytes(4)}, failure), nullptr);
  EXPECT_TRUE(failure.IsExhaustion());
  EXPECT_NE(layer().AllocateOrNull(Request{Mebibytes(800)}, failure), nullptr);
}

TEST_F(StreamSafeAllocatorTest, ReleaseWaitsForDeferredFrees) {
  Marked({a_}).reset();
  Work(a_);
  EXPECT_GT(layer().Release(), 0U);
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

// paddle.md §5 B3: late frees into a destroyed chain leaked forever.
TEST_F(StreamSafeAllocatorTest, ADeferredFreeOutlivesItsLayer) {
  Chain chain = NewChain();
  AllocationPtr allocation = chain.layer->Allocate(kBytes);
  EXPECT_TRUE(chain.layer->RecordStream(allocation.get(), a_));
  Work(a_);
  allocation.reset();
  const std::weak_ptr<Allocator> strategy = chain.strategy;
  chain = Chain();
  EXPECT_FALSE(strategy.expired());
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
  EXPECT_TRUE(strategy.expired());
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

TEST_F(StreamSafeAllocatorTest, TheEndOfThePlaceWaitsForWhatIsDeferred) {
  Marked({a_}).reset();
  Work(a_);
  place_.frees()->Close();
  EXPECT_EQ(device().PendingCount(), 0U);
  EXPECT_FALSE(place_.frees()->any());
}

TEST_F(StreamSafeAllocatorTest, OnceClosedEveryFreeDrains) {
  place_.frees()->Close();
  AllocationPtr first = Marked({a_});
  AllocationPtr second = Marked({a_});
  Work(a_);
  first.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  device().StepAll();
  second.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 0U);
}

TEST_F(StreamSafeAllocatorTest, FreeingADeferredBlockAgainIsFatal) {
  AllocationPtr allocation = Marked({a_});
  Allocation* const raw = allocation.get();
  allocation.reset();
  EXPECT_DEATH(AllocationDeleter()(raw), "double free");
}

TEST_F(StreamSafeAllocatorTest, FreeingAllocatesNothing) {
  // The event and its slot belong to the device, and are created when the batch
  // is full.
  AllocationPtr allocation = Marked({a_, b_});
  const std::size_t taken = RecordSlab::Instance().taken();
  allocation.reset();
  EXPECT_EQ(RecordSlab::Instance().taken(), taken);
}

// A strategy that orders other streams itself, only on the device.
class MarkKeeper final : public Decorator {
 public:
  using Decorator::Decorator;
  bool RecordStream(Allocation* /*allocation*/,
                    Stream stream) noexcept override {
    if (declines) return false;
    marks.push_back(stream);
    return true;
  }
  void EraseStream(Allocation* /*allocation*/,
                   Stream stream) noexcept override {
    erased.push_back(stream);
  }
  const char* name() const override { return "mark_keeper"; }

  bool declines = false;
  std::vector<Stream> marks;
  std::vector<Stream> erased;
};

TEST_F(StreamSafeAllocatorTest, DefersNothingForMarksThatAreKeptBelow) {
  const auto keeper = std::make_shared<MarkKeeper>(chain_.strategy);
  StreamSafeAllocator layer(keeper, place_.frees(), chain_.stream);
  AllocationPtr allocation = layer.Allocate(kBytes);
  EXPECT_TRUE(layer.RecordStream(allocation.get(), a_));
  EXPECT_FALSE(layer.RecordStream(allocation.get(), own()));
  layer.EraseStream(allocation.get(), a_);
  EXPECT_THAT(keeper->marks, ElementsAre(a_));
  EXPECT_THAT(keeper->erased, ElementsAre(a_));
  allocation.reset();
  EXPECT_FALSE(place_.frees()->any());
  keeper->declines = true;
  allocation = layer.Allocate(kBytes);
  EXPECT_TRUE(layer.RecordStream(allocation.get(), b_));
  allocation.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  place_.frees()->Await();
}

}  // namespace
}  // namespace strata
