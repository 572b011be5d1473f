#include "strata/allocation/streams/stream_timeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "strata/allocation/streams/timeline_table.h"
#include "strata/platform/calls/call_record.h"
#include "strata/platform/sim/device/sim_platform.h"

namespace strata {
namespace {

using Tick = StreamTimeline::Tick;

// Work runs on request of the test.
class StreamTimelineTest : public testing::Test {
 protected:
  StreamTimelineTest() : platform_(MakePlatform()), table_(platform_) {
    for (Stream* stream : {&first_, &second_}) {
      EXPECT_EQ(device().StreamCreate(stream, kStreamNonBlocking),
                Status::kSuccess);
    }
    EXPECT_EQ(device().MemAlloc(&memory_, 4096), Status::kSuccess);
  }

  static std::shared_ptr<SimPlatform> MakePlatform() {
    PlatformOptions options;
    options.sim_progress = "manual";
    return std::make_shared<SimPlatform>(options);
  }

  SimDevice& device() { return platform_->sim_device(0); }
  void Work(const Stream& stream) {
    EXPECT_EQ(device().MemsetAsync(memory_, 1, 64, stream), Status::kSuccess);
  }
  std::uint64_t Count(DeviceCall call) { return device().CallCount(call); }
  void FailCalls(DeviceCall call, std::uint64_t count) {
    FaultRule rule;
    rule.call = call;
    rule.nth = 1;
    rule.count = count;
    rule.status = Status::kUnknown;
    device().AddFault(rule);
  }

  std::shared_ptr<SimPlatform> platform_;
  TimelineTable table_;
  Stream first_;
  Stream second_;
  DevicePtr memory_ = 0;
};

TEST_F(StreamTimelineTest, TicksRiseAndCostNoDeviceCall) {
  const auto timeline = table_.Of(first_);
  const std::uint64_t before = Count(DeviceCall::kEventRecord);
  EXPECT_EQ(timeline->Note(), 1u);
  EXPECT_EQ(timeline->Note(), 2u);
  EXPECT_EQ(timeline->open(), 2u);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), before);
}

TEST_F(StreamTimelineTest, ATickIsDoneOnceTheWorkBeforeItsEventIs) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
  EXPECT_EQ(timeline->open(), 0u);
  timeline->Poll();
  EXPECT_FALSE(timeline->IsDone(tick));
  device().StepAll();
  EXPECT_FALSE(timeline->IsDone(tick)) << "nobody has looked";
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(tick));
}

// An event covers the ticks noted before its record, and no later ones.
TEST_F(StreamTimelineTest, OneEventCoversAllTicksBeforeIt) {
  const auto timeline = table_.Of(first_);
  for (int i = 0; i < 10; ++i) timeline->Note();
  Work(first_);
  timeline->Close();
  Work(first_);
  const Tick later = timeline->Note();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 1u);
  device().StepAll();
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(10));
  EXPECT_FALSE(timeline->IsDone(later));
}

// Even directly before: an event of the previous tick proves nothing for this
// one.
TEST_F(StreamTimelineTest, AnEventBeforeATickIsNotTakenForIt) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  timeline->Note();
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
  Work(first_);
  const Tick tick = timeline->Note();
  EXPECT_EQ(timeline->OrderBefore(tick, device(), second_), Status::kSuccess);
  Work(second_);
  EXPECT_TRUE(device().Step(first_));
  EXPECT_FALSE(device().Step(second_)) << "the second piece has not run";
  EXPECT_TRUE(device().Step(first_));
  EXPECT_TRUE(device().Step(second_));
}

TEST_F(StreamTimelineTest, AwaitWaitsForTheEventOfItsOwnTick) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick earlier = timeline->Note();
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
  Work(first_);
  const Tick tick = timeline->Note();
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
  Work(first_);
  EXPECT_EQ(timeline->Await(tick), Status::kSuccess);
  EXPECT_TRUE(timeline->IsDone(earlier));
  EXPECT_TRUE(timeline->IsDone(tick));
  EXPECT_EQ(device().PendingCount(), 1u) << "what came later is not waited for";
}

TEST_F(StreamTimelineTest, ClosingTwiceRecordsOnce) {
  const auto timeline = table_.Of(first_);
  timeline->Note();
  timeline->Close();
  timeline->Close();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 1u);
}

TEST_F(StreamTimelineTest, AFullBatchClosesItself) {
  const auto timeline = table_.Of(first_);
  for (Tick i = 0; i < 3 * StreamTimeline::kBatch; ++i) timeline->Note();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 3u);
  EXPECT_EQ(timeline->open(), 0u);
}

TEST_F(StreamTimelineTest, MoreEventsThanSlotsLoseNothing) {
  const auto timeline = table_.Of(first_);
  for (std::size_t i = 0; i < 3 * StreamTimeline::kPending; ++i) {
    Work(first_);
    timeline->Note();
    EXPECT_EQ(timeline->Close(), Status::kSuccess);
  }
  timeline->Poll();
  EXPECT_EQ(timeline->done(), 0u);
  device().StepAll();
  EXPECT_EQ(timeline->Poll(), 3 * StreamTimeline::kPending);
}

TEST_F(StreamTimelineTest, EventsAreUsedAgain) {
  const auto timeline = table_.Of(first_);
  for (int i = 0; i < 100; ++i) {
    timeline->Note();
    timeline->Close();
    device().StepAll();
    timeline->Poll();
  }
  EXPECT_EQ(Count(DeviceCall::kEventCreate), EventPool::kBatch);
  EXPECT_EQ(table_.kept_events(), EventPool::kBatch);
}

// Otherwise they would stay until another event completes.
TEST_F(StreamTimelineTest, EventsOfWorkThatIsSeenDoneOtherwiseAreUsedAgain) {
  const auto timeline = table_.Of(first_);
  const auto close = [&] {
    timeline->Note();
    EXPECT_EQ(timeline->Close(), Status::kSuccess);
    EXPECT_EQ(table_.kept_events(), device().Leaks().events - 1);
  };
  close();
  EXPECT_TRUE(timeline->SeeIdle());
  EXPECT_EQ(table_.kept_events(), device().Leaks().events);
  close();
  EXPECT_EQ(timeline->AwaitAll(), Status::kSuccess);
  EXPECT_EQ(table_.kept_events(), device().Leaks().events);
}

TEST_F(StreamTimelineTest, AnotherStreamIsOrderedOnTheDevice) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  EXPECT_EQ(timeline->OrderBefore(tick, device(), second_), Status::kSuccess);
  Work(second_);
  EXPECT_FALSE(device().Step(second_)) << "it has to wait for the first";
  EXPECT_TRUE(device().Step(first_));
  EXPECT_TRUE(device().Step(second_));
}

TEST_F(StreamTimelineTest, AStreamThatCapturesIsNotMadeToWait) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  table_.gate().Announce();
  EXPECT_EQ(device().StreamBeginCapture(second_, CaptureMode::kRelaxed),
            Status::kSuccess);
  EXPECT_EQ(timeline->OrderBefore(tick, device(), second_), Status::kNotReady);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), 0u);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(second_, &graph), Status::kSuccess);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  table_.gate().Withdraw();
}

TEST_F(StreamTimelineTest, AwaitWaitsOnTheHost) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  EXPECT_EQ(timeline->Await(tick), Status::kSuccess);
  EXPECT_TRUE(timeline->IsDone(tick));
  EXPECT_EQ(device().PendingCount(), 0u);
}

TEST_F(StreamTimelineTest, WhatCannotBeRecordedStaysOpen) {
  const auto timeline = table_.Of(first_);
  FailCalls(DeviceCall::kEventRecord, 1);
  const Tick tick = timeline->Note();
  EXPECT_EQ(timeline->Close(), Status::kUnknown);
  device().StepAll();
  timeline->Poll();
  EXPECT_FALSE(timeline->IsDone(tick));
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
  device().StepAll();
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(tick));
}

TEST_F(StreamTimelineTest, EventsThatCannotBeMadeLeaveTicksOpen) {
  const auto timeline = table_.Of(first_);
  FailCalls(DeviceCall::kEventCreate, 1);
  timeline->Note();
  EXPECT_EQ(timeline->Close(), Status::kUnknown);
  EXPECT_EQ(timeline->open(), 1u);
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
}

TEST_F(StreamTimelineTest, WhatIsOwedIsNotedOnce) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  timeline->Owe();
  timeline->Owe();
  const Tick owed = timeline->owed();
  EXPECT_EQ(timeline->noted(), 0u);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 0u);
  EXPECT_EQ(timeline->Settle(), Status::kSuccess);
  EXPECT_EQ(timeline->Settle(), Status::kSuccess);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 1u);
  timeline->Poll();
  EXPECT_FALSE(timeline->IsDone(owed));
  device().StepAll();
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(owed));
  // For later work, a later moment may be needed.
  timeline->Owe();
  EXPECT_GT(timeline->owed(), owed);
}

TEST_F(StreamTimelineTest, TheTableSettlesEveryStream) {
  const auto first = table_.Of(first_);
  const auto second = table_.Of(second_);
  table_.Settle();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 0u);
  first->Owe();
  second->NoteOnly();
  FailCalls(DeviceCall::kEventRecord, 1);
  table_.Settle();
  EXPECT_EQ(first->open() + second->open(), 1u);
  table_.Settle();
  EXPECT_EQ(first->open() + second->open(), 0u);
}

// cuda_semantics.md S9, E6: the event outlives the stream.
TEST_F(StreamTimelineTest, TicksOfAnEndedStreamAreDoneWithItsWork) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  table_.StreamDestroyed(first_);
  EXPECT_EQ(device().StreamDestroy(first_), Status::kSuccess);
  const Tick late = timeline->Note();
  timeline->Poll();
  EXPECT_FALSE(timeline->IsDone(tick));
  EXPECT_EQ(timeline->OrderBefore(late, device(), second_), Status::kSuccess);
  Work(second_);
  EXPECT_FALSE(device().Step(second_));
  device().StepAll();
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(tick));
  EXPECT_TRUE(timeline->IsDone(late));
}

TEST_F(StreamTimelineTest, AnEndedStreamWithoutWorkIsDone) {
  const auto timeline = table_.Of(first_);
  table_.StreamDestroyed(first_);
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(timeline->Note()));
}

// Work on memory still in use was not noted, but it counts.
TEST_F(StreamTimelineTest, WorkThatWasNotNotedBeforeTheEndCounts) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  table_.StreamDestroyed(first_);
  EXPECT_EQ(device().StreamDestroy(first_), Status::kSuccess);
  const Tick late = timeline->Note();
  timeline->Poll();
  EXPECT_FALSE(timeline->IsDone(late));
  device().StepAll();
  timeline->Poll();
  EXPECT_TRUE(timeline->IsDone(late));
}

TEST_F(StreamTimelineTest, AnEventBecomesAMomentOfItsOwn) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  Work(first_);
  EXPECT_EQ(device().EventRecord(event, first_, 0), Status::kSuccess);
  const TimelineTable::Moment moment = table_.MomentOf(first_, event);
  ASSERT_NE(moment.timeline, nullptr);
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  Work(first_);
  moment.timeline->Close();
  EXPECT_FALSE(moment.timeline->Poll() >= moment.tick);
  device().Step(first_);
  moment.timeline->Await(moment.tick);
  EXPECT_TRUE(moment.timeline->IsDone(moment.tick));
  EXPECT_EQ(device().PendingCount(), 1u);
  EXPECT_EQ(table_.MomentOf(Stream(), event).timeline, nullptr);
  EXPECT_EQ(table_.MomentOf(first_, Event()).timeline, nullptr);
}

// The answer of the device does not cover ticks noted during the call.
TEST_F(StreamTimelineTest, ATickNotedDuringTheCallIsNotCoveredByIt) {
  const auto timeline = table_.Of(first_);
  for (const DeviceCall during :
       {DeviceCall::kStreamQuery, DeviceCall::kEventRecord}) {
    SCOPED_TRACE(DeviceCallName(during));
    Tick late = 0;
    device().SetCallObserver([&](const CallRecord& call) {
      if (call.call == during) late = timeline->Note();
    });
    const Tick tick = timeline->Note();
    if (during == DeviceCall::kStreamQuery) {
      EXPECT_TRUE(timeline->SeeIdle());
    } else {
      EXPECT_EQ(timeline->Close(), Status::kSuccess);
    }
    device().SetCallObserver(nullptr);
    timeline->Poll();
    EXPECT_TRUE(timeline->IsDone(tick));
    ASSERT_GT(late, tick);
    EXPECT_FALSE(timeline->IsDone(late));
    EXPECT_EQ(timeline->open(), 1U);
  }
}

// The tick that fills a batch records an event at once, behind the wait.
TEST_F(StreamTimelineTest, AMomentThatFillsABatchWaitsForItsEvent) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  EXPECT_EQ(device().EventRecord(event, first_, 0), Status::kSuccess);
  for (Tick i = 1; i < StreamTimeline::kBatch; ++i) {
    table_.MomentOf(first_, event);
  }
  Work(first_);
  EXPECT_EQ(device().EventRecord(event, first_, 0), Status::kSuccess);
  const TimelineTable::Moment moment = table_.MomentOf(first_, event);
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  ASSERT_NE(moment.timeline, nullptr);
  EXPECT_EQ(moment.timeline->open(), 0U);
  moment.timeline->Poll();
  EXPECT_FALSE(moment.timeline->IsDone(moment.tick));
  device().StepAll();
  moment.timeline->Poll();
  EXPECT_TRUE(moment.timeline->IsDone(moment.tick));
}

TEST_F(StreamTimelineTest, TheEndWaitsIfItCannotRecord) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  FailCalls(DeviceCall::kEventRecord, 1);
  table_.StreamDestroyed(first_);
  EXPECT_EQ(device().PendingCount(), 0u);
  EXPECT_TRUE(timeline->IsDone(tick));
}

TEST_F(StreamTimelineTest, NobodyUsesTheStreamBehindItsLastEvent) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  bool is_recorded = false;
  device().SetCallObserver([&](const CallRecord& call) {
    if (call.call != DeviceCall::kEventRecord) return;
    is_recorded = true;
    EXPECT_FALSE(timeline->Use());
  });
  table_.StreamDestroyed(first_);
  device().SetCallObserver(nullptr);
  EXPECT_TRUE(is_recorded);
}

TEST_F(StreamTimelineTest, AStreamDestroyedWithoutNoticeIsWaitedForByDevice) {
  const auto timeline = table_.Of(first_);
  Work(first_);
  const Tick tick = timeline->Note();
  EXPECT_EQ(device().StreamDestroy(first_), Status::kSuccess);
  EXPECT_NE(timeline->Close(), Status::kSuccess);
  EXPECT_EQ(timeline->Await(tick), Status::kSuccess);
  EXPECT_TRUE(timeline->IsDone(tick));
}

TEST_F(StreamTimelineTest, TheTableKeepsOnePerStream) {
  EXPECT_EQ(table_.Of(first_), table_.Of(first_));
  EXPECT_NE(table_.Of(first_), table_.Of(second_));
  EXPECT_EQ(table_.Find(device().LegacyStream()), nullptr);
  EXPECT_EQ(table_.Of(Stream()), nullptr);
  const auto timeline = table_.Of(first_);
  table_.StreamDestroyed(first_);
  EXPECT_EQ(table_.Find(first_), nullptr);
}

TEST_F(StreamTimelineTest, ThreadsAgree) {
  const auto timeline = table_.Of(first_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 500; ++round) {
        const Tick tick = timeline->Note();
        if (round % 7 == i) timeline->Close();
        if (round % 5 == i) timeline->Poll();
        if (round % 50 == i) {
          EXPECT_EQ(timeline->Await(tick), Status::kSuccess);
          EXPECT_TRUE(timeline->IsDone(tick));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(timeline->Close(), Status::kSuccess);
  device().StepAll();
  EXPECT_EQ(timeline->Poll(), timeline->noted());
}

}  // namespace
}  // namespace strata
