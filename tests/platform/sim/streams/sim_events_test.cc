// Events of pending work (cuda_semantics.md E1-E8, S9).
#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimEventsTest : public SimProgressFixture {
 protected:
  SimEventsTest() { Build("manual"); }
};

TEST_F(SimEventsTest, EventIsCompleteWhenTheWorkBeforeItIs) {  // E1, T2
  const Stream stream = NewStream();
  Mark(stream, 'a');
  const Event event = Record(stream);
  Mark(stream, 'b');
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
  EXPECT_TRUE(device().Step(stream));
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
}

TEST_F(SimEventsTest, RecordingAgainReplacesWhatWasRecorded) {  // E1
  const Stream stream = NewStream();
  Mark(stream, 'a');
  const Event event = Record(stream);
  device().StepAll();
  Mark(stream, 'b');
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
}

TEST_F(SimEventsTest, WaitIsNotAffectedByALaterRecord) {  // E2, T3
  const Stream first = NewStream();
  const Stream second = NewStream();
  Mark(first, 'a');
  const Event event = Record(first);
  WaitFor(second, event);
  Mark(second, 'x');
  Mark(first, 'b');
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  EXPECT_EQ(log_, "ax");
}

TEST_F(SimEventsTest, WaitForAnEventOfAnotherDeviceOrdersWork) {  // E4, T12
  const Stream elsewhere = NewStream(kStreamNonBlocking, 1);
  const Stream here = NewStream();
  Mark(elsewhere, 'a');
  WaitFor(here, Record(elsewhere));
  Mark(here, 'b');
  EXPECT_FALSE(device(0).Step(here));
  ASSERT_EQ(device(0).StreamSynchronize(here), Status::kSuccess);
  EXPECT_EQ(log_, "ab");
}

TEST_F(SimEventsTest, EventOutlivesItsStreamWhoseWorkStillRuns) {  // E6, T7
  const Stream stream = NewStream();
  Mark(stream, 'a');
  const Event event = Record(stream);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(log_, "a");
}

TEST_F(SimEventsTest, RecycledHandleDoesNotInheritTheWork) {  // S7, T9
  const Stream old = NewStream();
  Mark(old, 'a');
  ASSERT_EQ(device().StreamDestroy(old), Status::kSuccess);
  const Stream fresh = NewStream();
  ASSERT_EQ(fresh.handle, old.handle);
  EXPECT_EQ(device().StreamQuery(fresh), Status::kSuccess);
  EXPECT_EQ(device().PendingCount(), 1u);
}

TEST_F(SimEventsTest, WaitOutlivesTheEvent) {  // E6, T8
  const Stream first = NewStream();
  const Stream second = NewStream();
  Mark(first, 'a');
  const Event event = Record(first);
  WaitFor(second, event);
  Mark(second, 'b');
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  EXPECT_EQ(log_, "ab");
}

TEST_F(SimEventsTest, EventOfTheLegacyStreamCoversBlockingStreams) {  // E8
  const Stream blocking = NewStream(kStreamDefault);
  Mark(blocking, 'a');
  const Event event = Record(device().LegacyStream());
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
  device().Step(blocking);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
}

TEST_F(SimEventsTest, LegacyCopySeesWhatABlockingStreamWroteBefore) {  // T5
  std::uint64_t* word = NewWord();
  std::uint64_t* copy = NewWord();
  const Stream blocking = NewStream(kStreamDefault);
  const Stream legacy = device().LegacyStream();
  ASSERT_EQ(device().MemsetAsync(At(word), 1, 8, blocking), Status::kSuccess);
  ASSERT_EQ(device().MemcpyAsync(At(copy), At(word), 8, legacy),
            Status::kSuccess);
  ASSERT_EQ(device().MemsetAsync(At(word), 2, 8, blocking), Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(*copy, 0x0101010101010101u);
  EXPECT_EQ(*word, 0x0202020202020202u);
}

TEST_F(SimEventsTest, PerThreadStreamIsABlockingOne) {  // S2
  Mark(device().PerThreadStream(), 'a');
  Mark(device().LegacyStream(), 'b');
  EXPECT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(log_, "ab");
}

TEST_F(SimEventsTest, LegacyStreamDoesNotWaitForANonBlockingOne) {  // T6
  const Stream stream = NewStream(kStreamNonBlocking);
  Mark(stream, 'a');
  Mark(device().LegacyStream(), 'b');
  EXPECT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(log_, "b");
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
}

// Records an event that keeps its time.
Event RecordTimed(SimDevice& device, const Stream& stream) {
  Event event;
  EXPECT_EQ(device.EventCreate(&event, 0), Status::kSuccess);
  EXPECT_EQ(device.EventRecord(event, stream, 0), Status::kSuccess);
  return event;
}

TEST_F(SimEventsTest, TimeBetweenEventsIsKnownWhenBothAreComplete) {
  const Stream stream = NewStream();
  const Event start = RecordTimed(device(), stream);
  Busy(stream);
  const Event end = RecordTimed(device(), stream);
  std::int64_t ns = 0;
  EXPECT_EQ(device().EventElapsed(start, end, &ns), Status::kNotReady);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().EventElapsed(start, end, &ns), Status::kSuccess);
  EXPECT_GT(ns, 0);
  std::int64_t back = 0;
  EXPECT_EQ(device().EventElapsed(end, start, &back), Status::kSuccess);
  EXPECT_EQ(back, -ns);
}

TEST_F(SimEventsTest, EventsWithoutATimeHaveNoneBetweenThem) {
  const Stream stream = NewStream();
  const Event start = RecordTimed(device(), stream);
  std::int64_t ns = 0;
  EXPECT_EQ(device().EventElapsed(start, Record(stream), &ns),
            Status::kInvalidResourceHandle);
  Event never;
  ASSERT_EQ(device().EventCreate(&never, 0), Status::kSuccess);
  EXPECT_EQ(device().EventElapsed(start, never, &ns),
            Status::kInvalidResourceHandle);
  const Event elsewhere = RecordTimed(device(1), NewStream(0, 1));
  EXPECT_EQ(device().EventElapsed(start, elsewhere, &ns),
            Status::kInvalidResourceHandle);
}

// One piece of work after another, for work that is pending at a record too.
TEST_F(SimEventsTest, WorkTakesItsTimeBetweenEventsUnderEachProgress) {
  for (const char* progress : {"inline", "lazy", "seeded", "timed", "manual"}) {
    Build(progress);
    const Stream stream = NewStream();
    Busy(stream, 3'000'000);
    const Event start = RecordTimed(device(), stream);
    for (int i = 0; i < 10; ++i) Busy(stream, 500'000);
    const Event end = RecordTimed(device(), stream);
    Busy(stream, 9'000'000);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    std::int64_t ns = 0;
    EXPECT_EQ(device().EventElapsed(start, end, &ns), Status::kSuccess);
    EXPECT_GE(ns, 5'000'000) << progress;
    EXPECT_LT(ns, 5'100'000) << progress;
  }
}

TEST_F(SimEventsTest, WorkOfAnotherDeviceTakesNoTimeHere) {
  Build("inline");
  const Stream stream = NewStream();
  const Event start = RecordTimed(device(), stream);
  Busy(NewStream(kStreamNonBlocking, 1), 5'000'000);
  std::int64_t ns = 0;
  EXPECT_EQ(device().EventElapsed(start, RecordTimed(device(), stream), &ns),
            Status::kSuccess);
  EXPECT_LT(ns, 5'000'000);
}

TEST_F(SimEventsTest, TimedWorkTakesItsTimeBetweenEvents) {
  Build("timed");
  const Stream stream = NewStream();
  const Event start = RecordTimed(device(), stream);
  Busy(stream, 5'000'000);
  const Event middle = RecordTimed(device(), stream);
  Busy(stream, 7'000'000);
  const Event end = RecordTimed(device(), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  std::int64_t ns = 0;
  EXPECT_EQ(device().EventElapsed(middle, end, &ns), Status::kSuccess);
  EXPECT_GE(ns, 7'000'000);
  EXPECT_LT(ns, 7'100'000);
  EXPECT_EQ(device().EventElapsed(start, middle, &ns), Status::kSuccess);
  EXPECT_GE(ns, 5'000'000);
  EXPECT_LT(ns, 5'100'000);
}

}  // namespace
}  // namespace strata::sim
