#include "strata/platform/sim/streams/scheduler.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace strata::sim {
namespace {

// A scheduler with a legacy stream, two blocking and two other streams on
// device 0. Device 1 has no blocking streams, and otherwise equal ones. Work
// writes its name.
class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(ProgressKind kind = ProgressKind::kLazy)
      : scheduler_(kind, 1) {
    AddStream(legacy_, StreamKind::kLegacy);
    AddStream(b1_, StreamKind::kBlocking);
    AddStream(b2_, StreamKind::kBlocking);
    AddStream(n1_, StreamKind::kNonBlocking);
    AddStream(n2_, StreamKind::kNonBlocking);
    AddStream(other_legacy_, StreamKind::kLegacy);
    AddStream(other_, StreamKind::kNonBlocking);
  }

  static Stream Make(int device, std::uint64_t uid) {
    Stream stream;
    stream.device = device;
    stream.uid = uid;
    return stream;
  }

  void AddStream(const Stream& stream, StreamKind kind) {
    scheduler_.AddStream(stream, kind);
  }
  void Submit(const Stream& stream, char name) {
    scheduler_.Submit(
        stream, 1000, [this, name] { log_ += name; }, &lock_);
  }
  StreamSnapshot Record(const Stream& stream) {
    StreamSnapshot snapshot;
    scheduler_.Snapshot(stream, &snapshot);
    return snapshot;
  }
  void Await(const Stream& stream) { scheduler_.AwaitStream(stream, &lock_); }

  std::mutex mutex_;
  SimLock lock_{mutex_};
  Scheduler scheduler_;
  const Stream legacy_ = Make(0, kLegacyStreamUid);
  const Stream b1_ = Make(0, 2);
  const Stream b2_ = Make(0, 3);
  const Stream n1_ = Make(0, 4);
  const Stream n2_ = Make(0, 5);
  const Stream other_legacy_ = Make(1, kLegacyStreamUid);
  const Stream other_ = Make(1, 6);
  std::string log_;  // names of the work in execution order
};

TEST_F(SchedulerTest, StreamIsFirstInFirstOut) {  // S1
  for (const char name : {'a', 'b', 'c'}) Submit(n1_, name);
  EXPECT_EQ(log_, "");
  Await(n1_);
  EXPECT_EQ(log_, "abc");
}

TEST_F(SchedulerTest, WaitRunsNothingThatItDoesNotNeed) {
  Submit(n1_, 'a');
  Submit(n2_, 'b');
  Await(n2_);
  EXPECT_EQ(log_, "b");
  EXPECT_EQ(scheduler_.PendingCount(0), 1u);
}

TEST_F(SchedulerTest, WorkInTheLegacyStreamWaitsForBlockingStreams) {  // S3
  Submit(b1_, 'a');
  Submit(legacy_, 'l');
  Submit(b2_, 'b');
  Await(b2_);
  EXPECT_EQ(log_, "alb");
}

TEST_F(SchedulerTest, NonBlockingStreamTakesNoPartInTheLegacyRule) {
  Submit(n1_, 'a');
  Submit(legacy_, 'l');
  Submit(n2_, 'b');
  Await(legacy_);
  Await(n2_);
  EXPECT_EQ(log_, "lb");
}

TEST_F(SchedulerTest, LegacyRuleEndsAtTheDevice) {
  Submit(b1_, 'a');
  Submit(other_legacy_, 'l');
  Await(other_legacy_);
  EXPECT_EQ(log_, "l");
}

TEST_F(SchedulerTest, BlockingStreamMadeLaterWaitsForTheLegacyStream) {
  Submit(legacy_, 'l');
  const Stream late = Make(0, 9);
  AddStream(late, StreamKind::kBlocking);
  Submit(late, 'a');
  Await(late);
  EXPECT_EQ(log_, "la");
}

TEST_F(SchedulerTest, AwaitingTheLegacyStreamCoversBlockingStreams) {  // H1
  Submit(b1_, 'a');
  Submit(n1_, 'b');
  EXPECT_FALSE(scheduler_.PollStream(legacy_, &lock_));
  Await(legacy_);
  EXPECT_EQ(log_, "a");
  EXPECT_TRUE(scheduler_.PollStream(legacy_, &lock_));
}

TEST_F(SchedulerTest, WaitUsesTheSnapshotOfItsCall) {  // E2, T3
  Submit(n1_, 'a');
  StreamSnapshot event = Record(n1_);
  scheduler_.WaitFor(n2_, event);
  Submit(n2_, 'x');
  Submit(n1_, 'b');
  event = Record(n1_);
  Await(n2_);
  EXPECT_EQ(log_, "ax");
}

TEST_F(SchedulerTest, WaitCrossesDevices) {  // E4, T12
  Submit(other_, 'a');
  scheduler_.WaitFor(n1_, Record(other_));
  Submit(n1_, 'b');
  Await(n1_);
  EXPECT_EQ(log_, "ab");
}

TEST_F(SchedulerTest, WaitIsWorkOfItsStreamUntilItIsOver) {
  Submit(n1_, 'a');
  scheduler_.WaitFor(n2_, Record(n1_));
  EXPECT_FALSE(scheduler_.PollStream(n2_, &lock_));
  Await(n1_);
  // It completes with the work that it waits for, without a wait for it.
  EXPECT_TRUE(scheduler_.PollStream(n2_, &lock_));
}

TEST_F(SchedulerTest, RecordInTheLegacyStreamCoversBlockingStreams) {  // E8
  Submit(b1_, 'a');
  Submit(n1_, 'x');
  const StreamSnapshot event = Record(legacy_);
  EXPECT_FALSE(scheduler_.IsDone(event.point));
  scheduler_.Await(event.point, &lock_);
  EXPECT_EQ(log_, "a");
}

TEST_F(SchedulerTest, RecordInABlockingStreamCoversTheLegacyStream) {
  Submit(legacy_, 'l');
  const StreamSnapshot event = Record(b1_);
  EXPECT_FALSE(scheduler_.IsDone(event.point));
  scheduler_.WaitFor(n1_, event);
  Submit(n1_, 'x');
  Await(n1_);
  EXPECT_EQ(log_, "lx");
}

TEST_F(SchedulerTest, WorkOfADestroyedStreamStillRuns) {  // S9, T7
  Submit(n1_, 'a');
  const StreamSnapshot event = Record(n1_);
  scheduler_.DestroyStream(n1_);
  EXPECT_FALSE(scheduler_.IsDone(event.point));
  scheduler_.AwaitDevice(0, &lock_);
  EXPECT_EQ(log_, "a");
  EXPECT_TRUE(scheduler_.IsDone(event.point));
}

TEST_F(SchedulerTest, LegacyStreamWaitsForADestroyedBlockingStream) {
  Submit(b1_, 'a');
  scheduler_.DestroyStream(b1_);
  Submit(legacy_, 'l');
  Await(legacy_);
  EXPECT_EQ(log_, "al");
}

TEST_F(SchedulerTest, WhatABlockingStreamWaitedForOutlivesIt) {
  Submit(n1_, 'a');
  const StreamSnapshot event = Record(n1_);
  scheduler_.WaitFor(b1_, event);
  scheduler_.AwaitDevice(0, &lock_);
  scheduler_.DestroyStream(b1_);
  EXPECT_TRUE(scheduler_.IsBefore(event.point, legacy_));
  EXPECT_FALSE(scheduler_.IsBefore(event.point, n2_));
  Submit(legacy_, 'l');
  EXPECT_TRUE(scheduler_.IsBefore(event.point, b2_));
}

TEST_F(SchedulerTest, NothingIsLeftBeforeAPointOfAStreamThatIsGone) {
  Submit(n1_, 'a');
  const StreamPoint point = scheduler_.Last(n1_);
  Await(n1_);
  EXPECT_FALSE(scheduler_.IsBefore(point, n2_));
  scheduler_.DestroyStream(n1_);
  EXPECT_TRUE(scheduler_.IsDone(point));
  EXPECT_TRUE(scheduler_.IsBefore(point, n2_));
}

TEST_F(SchedulerTest, BeforeDoesNotFollowFromDone) {
  Submit(n1_, 'a');
  const StreamPoint point = scheduler_.Last(n1_);
  Await(n1_);
  EXPECT_TRUE(scheduler_.IsDone(point));
  EXPECT_FALSE(scheduler_.IsBefore(point, n2_));
  EXPECT_TRUE(scheduler_.IsBefore(point, n1_));
}

TEST_F(SchedulerTest, BeforeFollowsFromAWaitThatIsNotOver) {
  Submit(n1_, 'a');
  const StreamPoint point = scheduler_.Last(n1_);
  Submit(n1_, 'b');
  const StreamPoint later = scheduler_.Last(n1_);
  scheduler_.Wait(n2_, point);
  EXPECT_FALSE(scheduler_.IsDone(point));
  EXPECT_TRUE(scheduler_.IsBefore(point, n2_));
  EXPECT_FALSE(scheduler_.IsBefore(later, n2_));
}

TEST_F(SchedulerTest, LastOfTheLegacyStreamIsAfterBlockingStreams) {
  Submit(b1_, 'a');
  const StreamPoint point = scheduler_.Last(legacy_);
  EXPECT_FALSE(scheduler_.IsDone(point));
  Await(b1_);
  EXPECT_TRUE(scheduler_.IsDone(point));
}

TEST_F(SchedulerTest, NothingSubmittedIsDone) {
  EXPECT_TRUE(scheduler_.IsDone(StreamPoint()));
  EXPECT_TRUE(scheduler_.IsDone(scheduler_.Last(n1_)));
  EXPECT_TRUE(scheduler_.IsBefore(StreamPoint(), n1_));
}

TEST_F(SchedulerTest, StepRefusesWorkThatHasToWait) {
  Submit(n1_, 'a');
  scheduler_.WaitFor(n2_, Record(n1_));
  Submit(n2_, 'b');
  EXPECT_FALSE(scheduler_.Step(n2_, &lock_));
  EXPECT_TRUE(scheduler_.Step(n1_, &lock_));
  EXPECT_FALSE(scheduler_.Step(n1_, &lock_));
  EXPECT_TRUE(scheduler_.Step(n2_, &lock_));
  EXPECT_EQ(log_, "ab");
}

TEST_F(SchedulerTest, WorkThatReleasesTheLockKeepsItsPlace) {
  scheduler_.SubmitUnlocked(
      n1_, 1000,
      [this](SimLock* lock) {
        lock->unlock();
        {
          // Another thread could submit now, and so can this one.
          SimLock mine(mutex_);
          scheduler_.Submit(
              n1_, 1000, [this] { log_ += 'b'; }, &mine);
        }
        lock->lock();
        log_ += 'a';
      },
      &lock_);
  scheduler_.AwaitDevice(0, &lock_);
  EXPECT_EQ(scheduler_.PendingCount(0), 1u);
  Await(n1_);
  EXPECT_EQ(log_, "ab");
}

using SchedulerDeathTest = SchedulerTest;

TEST_F(SchedulerDeathTest, WaitThatNothingCanEndNamesTheStream) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Submit(n1_, 'a');
  // A point that was never submitted indicates a bookkeeping error.
  EXPECT_DEATH(scheduler_.Await({0, n1_.uid, 1000}, &lock_), "stream 4 of sim");
}

}  // namespace
}  // namespace strata::sim
