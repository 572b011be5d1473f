// When frees of marked blocks record events, and the queries of a miss.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/tests/allocation/decorators/stream_safe_fixture.h"

namespace strata {
namespace {

class StreamSafeEventsTest : public StreamSafeFixture {
 protected:
  static constexpr std::size_t kLarge = StreamTimeline::kBatchBytes;

  AllocationPtr MarkedOf(std::size_t bytes) {
    AllocationPtr allocation = layer().Allocate(bytes);
    EXPECT_TRUE(layer().RecordStream(allocation.get(), a_));
    return allocation;
  }
  // Number of events recorded when `count` marked blocks are freed.
  std::uint64_t EventsOf(std::size_t count, std::size_t bytes) {
    std::vector<AllocationPtr> held;
    for (std::size_t i = 0; i < count; ++i) held.push_back(MarkedOf(bytes));
    Work(a_);
    const std::uint64_t before = Count(DeviceCall::kEventRecord);
    held.clear();
    return Count(DeviceCall::kEventRecord) - before;
  }
};

TEST_F(StreamSafeEventsTest, AMarkRecordsNoEvent) {
  const AllocationPtr allocation = MarkedOf(16 * kLarge);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 0U);
}

TEST_F(StreamSafeEventsTest, ALargeFreeRecordsItsEventAtOnce) {
  EXPECT_EQ(EventsOf(1, kLarge), 1U);
  EXPECT_EQ(EventsOf(10, 3 * kLarge), 10U);
}

TEST_F(StreamSafeEventsTest, SmallFreesRecordOneEventPerMebibyte) {
  EXPECT_EQ(EventsOf(15, kLarge / 16), 0U);
  EXPECT_EQ(EventsOf(16, kLarge / 16), 1U);
  EXPECT_EQ(EventsOf(32, kLarge / 16), 2U);
}

TEST_F(StreamSafeEventsTest, AnEventStartsANewMebibyte) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 31; ++i) {
    held.push_back(MarkedOf(i == 15 ? kLarge : kLarge / 16));
  }
  Work(a_);
  for (AllocationPtr& allocation : held) allocation.reset();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 1U);
}

// The fault: the event was recorded at the miss, behind later work.
TEST_F(StreamSafeEventsTest, WorkAfterALargeFreeDoesNotDelayIt) {
  AllocationPtr allocation = MarkedOf(kLarge);
  Work(a_);
  allocation.reset();
  Work(a_);
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), kLarge);
  EXPECT_EQ(device().PendingCount(), 1U);
}

// Each free in a long queue of work becomes reusable soon after its own work.
TEST_F(StreamSafeEventsTest, ManyLargeFreesDoNotWaitForTheLast) {
  constexpr std::size_t kFrees = 200;
  std::vector<AllocationPtr> held;
  for (std::size_t i = 0; i < kFrees; ++i) held.push_back(MarkedOf(kLarge));
  for (AllocationPtr& allocation : held) {
    Work(a_);
    allocation.reset();
  }
  std::size_t freed = 0;
  for (std::size_t done = 1; done <= kFrees; ++done) {
    device().Step(a_);
    freed += place_.frees()->Drain() / kLarge;
    EXPECT_LE(freed, done);
    EXPECT_GE(freed + kFrees / 8, done);
  }
  EXPECT_EQ(freed, kFrees);
}

// The fault: after a wait for the device, a miss recorded an event in the idle
// stream, and found it still pending.
TEST_F(StreamSafeEventsTest, AMissNeedsNoEventOfAnIdleStream) {
  for (int i = 0; i < 3; ++i) Marked({a_, b_}).reset();
  place_.frees()->Await();
  AllocationPtr allocation = Marked({a_, b_});
  Work(a_);
  allocation.reset();
  device().Synchronize();
  const std::uint64_t records = Count(DeviceCall::kEventRecord);
  const std::uint64_t queries = Count(DeviceCall::kStreamQuery);
  const std::uint64_t event_queries = Count(DeviceCall::kEventQuery);
  const AllocationPtr miss = layer().Allocate(2 * kLarge);
  EXPECT_FALSE(place_.frees()->any());
  EXPECT_EQ(Count(DeviceCall::kEventRecord), records);
  EXPECT_EQ(Count(DeviceCall::kStreamQuery), queries + 2);
  EXPECT_EQ(Count(DeviceCall::kEventQuery), event_queries);
}

TEST_F(StreamSafeEventsTest, AMissRecordsOneEventInABusyStream) {
  AllocationPtr allocation = Marked({a_});
  Work(a_);
  allocation.reset();
  for (int miss = 0; miss < 3; ++miss) {
    EXPECT_EQ(place_.frees()->Drain(), 0U);
    EXPECT_EQ(Count(DeviceCall::kEventRecord), 1U);
    EXPECT_EQ(Count(DeviceCall::kStreamQuery), 1U) << "nothing is open";
  }
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

// The stream might capture next, and a query would end the capture.
TEST_F(StreamSafeEventsTest, NoStreamIsAskedBesideAnAnnouncedCapture) {
  AllocationPtr allocation = Marked({a_});
  Work(a_);
  allocation.reset();
  place_.timelines()->gate().Announce();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  EXPECT_EQ(Count(DeviceCall::kStreamQuery), 0U);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 1U);
  place_.timelines()->gate().Withdraw();
}

// A failed attempt is repeated one batch later, not at every free.
TEST_F(StreamSafeEventsTest, SmallFreesBesideAFailureTryOncePerMebibyte) {
  FailAlways(DeviceCall::kEventRecord);
  EXPECT_EQ(EventsOf(32, kLarge / 16), 2U);
  device().ClearFaults();
}

TEST_F(StreamSafeEventsTest, ALargeFreeAfterANamedUseRecordsItsEvent) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  AllocationPtr first = layer().Allocate(kLarge);
  AllocationPtr second = layer().Allocate(kLarge);
  Work(a_);
  EXPECT_EQ(device().EventRecord(event, a_, 0), Status::kSuccess);
  EXPECT_TRUE(layer().RecordUse(first.get(), a_, event));
  first.reset();
  Work(a_);
  EXPECT_EQ(device().EventRecord(event, a_, 0), Status::kSuccess);
  EXPECT_TRUE(layer().RecordUse(second.get(), a_, event));
  second.reset();
  device().Step(a_);
  EXPECT_EQ(place_.frees()->Drain(), kLarge) << "the second wait came later";
  device().StepAll();
  EXPECT_EQ(place_.frees()->Drain(), kLarge);
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
}

}  // namespace
}  // namespace strata
