// Host functions in streams while other threads continue (S11, T11).
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimHostFunctionTest : public SimProgressFixture {};

// A host function that reports its start and ends on request.
struct SlowFunction {
  static void Run(void* argument) {
    auto* self = static_cast<SlowFunction*>(argument);
    self->begun.set_value();
    self->may_end.get_future().wait();
    self->ended.store(true);
  }

  std::promise<void> begun;
  std::promise<void> may_end;
  std::atomic<bool> ended{false};
};

TEST_F(SimHostFunctionTest, RunsBetweenTheWorkAroundIt) {  // T11
  Build("lazy");
  std::uint64_t* word = NewWord();
  *word = 0;
  struct Look {
    const std::uint64_t* word;
    std::uint64_t seen = 0;
  } look{word};
  const Stream stream = NewStream();
  ASSERT_EQ(device().MemsetAsync(At(word), 1, 8, stream), Status::kSuccess);
  ASSERT_EQ(device().LaunchHostFunc(
                stream,
                [](void* argument) {
                  auto* at = static_cast<Look*>(argument);
                  at->seen = *at->word;
                },
                &look),
            Status::kSuccess);
  ASSERT_EQ(device().MemsetAsync(At(word), 2, 8, stream), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(look.seen, 0x0101010101010101u);
  EXPECT_EQ(*word, 0x0202020202020202u);
}

TEST_F(SimHostFunctionTest, OtherThreadsCallWhileItRuns) {
  for (const char* progress : {"inline", "lazy"}) {
    SCOPED_TRACE(progress);
    Build(progress);
    const Stream busy = NewStream();
    const Stream other = NewStream();
    SlowFunction slow;
    std::thread driver([&] {
      EXPECT_EQ(device().LaunchHostFunc(busy, &SlowFunction::Run, &slow),
                Status::kSuccess);
      EXPECT_EQ(device().StreamSynchronize(busy), Status::kSuccess);
    });
    slow.begun.get_future().wait();
    log_.clear();
    Mark(other, 'a');
    EXPECT_EQ(device().StreamSynchronize(other), Status::kSuccess);
    EXPECT_EQ(log_, "a");
    EXPECT_EQ(device().StreamQuery(busy), Status::kNotReady);
    slow.may_end.set_value();
    driver.join();
    EXPECT_EQ(device().StreamQuery(busy), Status::kSuccess);
  }
}

TEST_F(SimHostFunctionTest, WhoNeedsItWaitsUntilItHasEnded) {
  Build("lazy");
  const Stream busy = NewStream();
  const Stream after = NewStream();
  SlowFunction slow;
  ASSERT_EQ(device().LaunchHostFunc(busy, &SlowFunction::Run, &slow),
            Status::kSuccess);
  WaitFor(after, Record(busy));
  Mark(after, 'b');
  std::thread driver([&] { device().StreamSynchronize(busy); });
  slow.begun.get_future().wait();
  std::thread waiter([&] {
    EXPECT_EQ(device().StreamSynchronize(after), Status::kSuccess);
    EXPECT_TRUE(slow.ended.load());
  });
  slow.may_end.set_value();
  driver.join();
  waiter.join();
  EXPECT_EQ(log_, "b");
}

TEST_F(SimHostFunctionTest, InlineWorkBehindItRunsWhenItHasEnded) {
  Build("inline");
  const Stream stream = NewStream();
  SlowFunction slow;
  std::thread driver(
      [&] { device().LaunchHostFunc(stream, &SlowFunction::Run, &slow); });
  slow.begun.get_future().wait();
  Mark(stream, 'b');  // returns: a submission does not wait
  EXPECT_EQ(log_, "");
  slow.may_end.set_value();
  driver.join();
  EXPECT_EQ(log_, "b");
}

TEST_F(SimHostFunctionTest, CallsOfItAreRefusedWhoeverRunsIt) {  // S11
  Build("lazy");
  struct Caller {
    SimDevice* device;
    DeviceWork* work;
    Stream stream;
    Status query = Status::kSuccess;
    Status enqueue = Status::kSuccess;
  } caller{&device(), platform_->work(0), NewStream()};
  ASSERT_EQ(device().LaunchHostFunc(
                caller.stream,
                [](void* argument) {
                  auto* at = static_cast<Caller*>(argument);
                  at->query = at->device->StreamQuery(at->stream);
                  at->enqueue = at->work->Enqueue(at->stream, nullptr, 0, 1, 0);
                },
                &caller),
            Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(caller.query, Status::kNotPermitted);
  EXPECT_EQ(caller.enqueue, Status::kNotPermitted);
  EXPECT_EQ(device().PendingCount(), 0u);
}

}  // namespace
}  // namespace strata::sim
