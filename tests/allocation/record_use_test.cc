// RecordUse, and waits on the device: two ways for callers to reuse memory
// sooner.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/tests/allocation/decorators/stream_safe_fixture.h"

namespace strata {
namespace {

class RecordUseTest : public StreamSafeFixture {
 protected:
  RecordUseTest() {
    EXPECT_EQ(device().EventCreate(&event_, kEventDisableTiming),
              Status::kSuccess);
  }
  ~RecordUseTest() override {
    if (event_) {
      EXPECT_EQ(device().EventDestroy(event_), Status::kSuccess);
    }
  }
  // Submits work to `stream`, and records the event behind it.
  void Use(const Stream& stream) {
    Work(stream);
    EXPECT_EQ(device().EventRecord(event_, stream, 0), Status::kSuccess);
  }

  Event event_;
};

// DESIGN §5: the exception for callers.
TEST_F(RecordUseTest, WorkAfterTheEventDoesNotDelayTheMemory) {
  AllocationPtr allocation = Marked({a_});
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
  Work(a_);  // with other memory
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  EXPECT_TRUE(device().Step(a_));
  // The last piece of a_ never ran.
  EXPECT_EQ(place_.frees()->Await(), kBytes);
  EXPECT_EQ(device().PendingCount(), 1U);
}

TEST_F(RecordUseTest, TheMemoryIsNotReusedBeforeTheEvent) {
  AllocationPtr allocation = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

// All uses of a stream share one timeline, so the completion of an earlier use
// proves nothing about a later one.
TEST_F(RecordUseTest, AnEarlierUseThatIsOverSaysNothingOfALaterOne) {
  AllocationPtr first = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(first.get(), a_, event_));
  first.reset();
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);

  AllocationPtr second = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(second.get(), a_, event_));
  second.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

// The completed use ends; the other one waits for its own event.
TEST_F(RecordUseTest, UsesUnderWayTogetherAreToldApart) {
  AllocationPtr first = layer().Allocate(kBytes);
  AllocationPtr second = layer().Allocate(2 * kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(first.get(), a_, event_));
  first.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  Use(b_);
  EXPECT_TRUE(layer().RecordUse(second.get(), b_, event_));
  second.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  EXPECT_TRUE(device().Step(a_));
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), 2 * kBytes);
}

// The fault: all uses shared one timeline, so each use waited for the slowest
// stream.
TEST_F(RecordUseTest, ASlowStreamDelaysNoUseOfAnother) {
  AllocationPtr slow = layer().Allocate(kBytes);
  AllocationPtr fast = layer().Allocate(2 * kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(slow.get(), a_, event_));
  Use(b_);
  EXPECT_TRUE(layer().RecordUse(fast.get(), b_, event_));
  slow.reset();
  fast.reset();
  EXPECT_TRUE(device().Step(b_));
  EXPECT_EQ(place_.frees()->Drain(), 2 * kBytes);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(RecordUseTest, BlocksMayBeFreedInAnotherOrderThanTheirUses) {
  AllocationPtr first = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(first.get(), a_, event_));
  AllocationPtr second = layer().Allocate(2 * kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(second.get(), a_, event_));
  second.reset();
  first.reset();
  EXPECT_EQ(place_.frees()->Await(), 3 * kBytes);
}

TEST_F(RecordUseTest, TheEventMayBeUsedAgainAtOnce) {
  AllocationPtr allocation = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
  EXPECT_EQ(device().EventRecord(event_, b_, 0), Status::kSuccess);
  EXPECT_EQ(device().EventDestroy(std::exchange(event_, Event())),
            Status::kSuccess);
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(RecordUseTest, ALaterMarkCountsAgain) {
  AllocationPtr allocation = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
  device().StepAll();
  Work(a_);
  EXPECT_TRUE(layer().RecordStream(allocation.get(), a_));
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(RecordUseTest, OtherStreamsKeepTheirMarks) {
  AllocationPtr allocation = Marked({b_});
  Use(a_);
  Work(b_);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
  allocation.reset();
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(RecordUseTest, AUseCanBeErased) {
  AllocationPtr allocation = layer().Allocate(kBytes);
  Use(a_);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
  layer().EraseStream(allocation.get(), a_);
  allocation.reset();
  EXPECT_FALSE(place_.frees()->any());
}

TEST_F(RecordUseTest, AUseOfItsOwnStreamIsNone) {
  AllocationPtr allocation = layer().Allocate(kBytes);
  EXPECT_FALSE(layer().RecordUse(allocation.get(), own(), event_));
}

// After any device failure, the use is recorded as a mark.
TEST_F(RecordUseTest, IsAMarkIfTheDeviceRefuses) {
  for (const DeviceCall call :
       {DeviceCall::kStreamCreate, DeviceCall::kStreamWaitEvent}) {
    AllocationPtr allocation = layer().Allocate(kBytes);
    Use(a_);
    FailAlways(call);
    EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event_));
    device().ClearFaults();
    Work(a_);
    allocation.reset();
    EXPECT_TRUE(device().Step(a_));
    EXPECT_EQ(place_.frees()->Drain(), 0U) << DeviceCallName(call);
    device().StepAll();
    EXPECT_EQ(place_.frees()->Drain(), kBytes) << DeviceCallName(call);
  }
}

class CrossStreamWaitTest : public StreamSafeFixture {
 protected:
  CrossStreamWaitTest() : StreamSafeFixture(/*cross_stream_wait=*/true) {}
};

// cuda_semantics.md §5.2 M3.
TEST_F(CrossStreamWaitTest, ANeedyStreamWaitsOnTheDeviceAndHasItsMemoryBack) {
  AllocationPtr allocation = Marked({a_, b_});
  const void* const data = allocation->data();
  Work(a_);
  Work(b_);
  allocation.reset();
  const std::uint64_t waits = Waits();
  AllocationPtr again = layer().Allocate(kBytes);
  EXPECT_EQ(again->data(), data);
  EXPECT_EQ(Waits(), waits);
  Work(own());
  EXPECT_FALSE(device().Step(own())) << "its user has to wait for both";
  device().Step(a_);
  EXPECT_FALSE(device().Step(own()));
  device().Step(b_);
  EXPECT_TRUE(device().Step(own()));
}

TEST_F(CrossStreamWaitTest, AnotherStreamsMemoryIsNotWaitedFor) {
  Chain second = NewChain();
  Marked({a_}).reset();
  Work(a_);
  place_.frees()->Drain();
  const std::uint64_t waits = Count(DeviceCall::kStreamWaitEvent);
  const AllocationPtr other = second.layer->Allocate(kBytes);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), waits);
}

// Only the stream that waited may reuse the memory.
TEST_F(CrossStreamWaitTest, WhatGoesToAnotherStreamStaysDeferred) {
  Chain second = NewChain();
  AllocationPtr others = Marked({a_});
  AllocationPtr own = second.layer->Allocate(kBytes);
  const void* const data = own->data();
  EXPECT_TRUE(second.layer->RecordStream(own.get(), a_));
  Work(a_);
  others.reset();
  own.reset();
  const AllocationPtr again = second.layer->Allocate(kBytes);
  EXPECT_EQ(again->data(), data);
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
}

TEST_F(CrossStreamWaitTest, OneWaitPerStreamServesAllItsBlocks) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 10; ++i) held.push_back(Marked({a_}));
  Work(a_);
  held.clear();
  const AllocationPtr first = layer().Allocate(kBytes);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), 1U);
  EXPECT_FALSE(place_.frees()->any());
}

TEST_F(CrossStreamWaitTest, AWaitThatFailsHandsNothingOut) {
  AllocationPtr allocation = Marked({a_});
  const void* const data = allocation->data();
  Work(a_);
  allocation.reset();
  FailAlways(DeviceCall::kStreamWaitEvent);
  const AllocationPtr other = layer().Allocate(kBytes);
  EXPECT_NE(other->data(), data);
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
}

}  // namespace
}  // namespace strata
