// Timed progress, with the device's own clock: CallRecord::time_ns.
#include "strata/platform/sim/streams/timed_progress.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "strata/platform/sim/faults/cost_table.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

class TimedProgressTest : public SimProgressFixture {
 protected:
  TimedProgressTest() {
    Build("timed");
    device().SetCallObserver(
        [this](const CallRecord& call) { now_ns_ = call.time_ns; });
  }

  // Time until all work of the device is complete.
  std::uint64_t TimeOfSynchronize() {
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    return now_ns_ - CallCostNs(DeviceCall::kSynchronize, 0);
  }

  std::uint64_t now_ns_ = 0;
};

TEST_F(TimedProgressTest, WaitTakesAsLongAsTheWork) {
  const Stream stream = NewStream();
  const std::uint64_t begin = now_ns_;
  Busy(stream, kMillisecond);
  Busy(stream, kMillisecond);
  EXPECT_EQ(TimeOfSynchronize(), begin + 2 * kMillisecond);
}

TEST_F(TimedProgressTest, PollsSucceedWhenTheTimeHasPassed) {
  const Stream stream = NewStream();
  Busy(stream, kMillisecond);
  const std::uint64_t begin = now_ns_;
  std::uint64_t polls = 1;
  while (device().StreamQuery(stream) == Status::kNotReady) {
    ++polls;
    ASSERT_LT(now_ns_, begin + 2 * kMillisecond);
  }
  EXPECT_GE(now_ns_, begin + kMillisecond);
  EXPECT_GT(polls, 1000u);
}

TEST_F(TimedProgressTest, StreamsRunAtTheSameTime) {
  const std::uint64_t begin = now_ns_;
  std::uint64_t last_submitted = 0;
  for (int i = 0; i < kConcurrentWork; ++i) {
    const Stream stream = NewStream();
    last_submitted = now_ns_;
    Busy(stream, kMillisecond);
  }
  EXPECT_EQ(TimeOfSynchronize(), last_submitted + kMillisecond);
  EXPECT_LT(last_submitted - begin, kMillisecond);
}

TEST_F(TimedProgressTest, WorkBeyondTheSlotsOfADeviceWaitsForOne) {
  std::vector<Stream> streams;
  for (int i = 0; i <= kConcurrentWork; ++i) streams.push_back(NewStream());
  const std::uint64_t begin = now_ns_;
  for (const Stream& stream : streams) Busy(stream, kMillisecond);
  EXPECT_EQ(TimeOfSynchronize(), begin + 2 * kMillisecond);
}

TEST_F(TimedProgressTest, DevicesHaveSlotsOfTheirOwn) {
  std::vector<Stream> streams;
  for (int i = 0; i < 2 * kConcurrentWork; ++i) {
    streams.push_back(NewStream(kStreamNonBlocking, i % 2));
  }
  const std::uint64_t begin = now_ns_;
  for (const Stream& stream : streams) Busy(stream, kMillisecond);
  ASSERT_EQ(device(1).Synchronize(), Status::kSuccess);
  EXPECT_LT(TimeOfSynchronize(), begin + 2 * kMillisecond);
}

TEST_F(TimedProgressTest, WorkStartsWhenWhatItWaitsForIsDone) {
  const Stream first = NewStream();
  const Stream second = NewStream();
  const std::uint64_t begin = now_ns_;
  Busy(first, kMillisecond);
  WaitFor(second, Record(first));
  Busy(second, kMillisecond);
  EXPECT_EQ(TimeOfSynchronize(), begin + 2 * kMillisecond);
}

TEST_F(TimedProgressTest, EffectHappensAtTheEnd) {
  std::uint64_t* word = NewWord();
  *word = 1;
  const Stream stream = NewStream();
  const WorkRange range{At(word), sizeof *word, true};
  ASSERT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, kMillisecond, 7),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_EQ(*word, 1u);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*word, 7u);
}

TEST_F(TimedProgressTest, ClockNeverGoesBack) {
  std::uint64_t last = 0;
  device().SetCallObserver([&](const CallRecord& call) {
    EXPECT_GE(call.time_ns, last);
    last = call.time_ns;
  });
  const Stream stream = NewStream();
  for (int i = 0; i < 20; ++i) {
    Busy(stream, 10'000);
    ASSERT_EQ(device().EventSynchronize(Record(stream)), Status::kSuccess);
  }
  EXPECT_GE(last, 20u * 10'000);
}

TEST_F(TimedProgressTest, WorkMayTakeLongerThanTheClockCounts) {
  const Stream stream = NewStream();
  ASSERT_GT(now_ns_, 0u);
  Busy(stream, UINT64_MAX);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  Mark(stream, 'a');
  EXPECT_EQ(log_, "");
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(log_, "a");
}

}  // namespace
}  // namespace strata::sim
