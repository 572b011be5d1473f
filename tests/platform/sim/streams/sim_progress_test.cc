// The time at which work runs, under each kind of progress.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimProgressTest : public SimProgressFixture {};

TEST_F(SimProgressTest, UnknownProgressIsRefusedWithThoseKnown) {
  try {
    Build("eager");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "strata_sim_progress: 'eager' is no progress (known: inline, "
                 "lazy, seeded, timed, manual)");
  }
}

TEST_F(SimProgressTest, InlineWorkIsDoneWhenItsCallReturns) {
  Build("inline");
  const Stream stream = NewStream();
  Mark(stream, 'a');
  EXPECT_EQ(log_, "a");
  Busy(stream);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
  EXPECT_EQ(device().PendingCount(), 0u);
}

TEST_F(SimProgressTest, LazyWorkRunsWhenSomebodyWaits) {
  Build("lazy");
  const Stream stream = NewStream();
  Mark(stream, 'a');
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  EXPECT_EQ(log_, "");
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(log_, "a");
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_F(SimProgressTest, LazyWaitForAnEventRunsNoMoreThanItNeeds) {
  Build("lazy");
  const Stream first = NewStream();
  const Stream second = NewStream();
  Mark(first, 'a');
  const Event event = Record(first);
  Mark(first, 'b');
  Mark(second, 'c');
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(log_, "a");
}

TEST_F(SimProgressTest, LazyPollsEndAfterAThousand) {
  Build("lazy");
  const Stream stream = NewStream();
  Mark(stream, 'a');
  const Event event = Record(stream);
  int polls = 1;
  while (device().EventQuery(event) == Status::kNotReady) {
    ASSERT_LE(++polls, 1000);
  }
  EXPECT_EQ(polls, 1000);
  EXPECT_EQ(log_, "a");
}

TEST_F(SimProgressTest, SynchronizeCoversEveryStreamOfTheDevice) {  // T10
  for (const char* progress : {"lazy", "seeded", "timed", "manual"}) {
    SCOPED_TRACE(progress);
    Build(progress);
    log_.clear();
    const Stream gone = NewStream();
    Mark(gone, 'a');
    ASSERT_EQ(device().StreamDestroy(gone), Status::kSuccess);
    Mark(device().LegacyStream(), 'a');
    Mark(device().PerThreadStream(), 'a');
    Mark(NewStream(), 'a');
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    EXPECT_EQ(log_, "aaaa");
    EXPECT_EQ(device().PendingCount(), 0u);
  }
}

TEST_F(SimProgressTest, SynchronizeLeavesOtherDevicesAlone) {
  Build("lazy");
  Mark(NewStream(kStreamNonBlocking, 1), 'a');
  EXPECT_EQ(device(0).Synchronize(), Status::kSuccess);
  EXPECT_EQ(log_, "");
  EXPECT_EQ(device(1).PendingCount(), 1u);
}

TEST_F(SimProgressTest, SeededWorkRunsAfterCallsThatAreNotAboutIt) {
  Build("seeded");
  Mark(NewStream(), 'a');
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  for (int i = 0; i < 100 && log_.empty(); ++i) {
    ASSERT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
  }
  EXPECT_EQ(log_, "a");
}

TEST_F(SimProgressTest, SeedsMakeOrdersThatDiffer) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Build("seeded", "sync", seed);
    log_.clear();
    const Stream streams[] = {NewStream(), NewStream(), NewStream()};
    for (char name = 'a'; name <= 'c'; ++name) {
      for (const Stream& stream : streams) Mark(stream, name);
    }
    ASSERT_EQ(device().Synchronize(), Status::kSuccess);
    ASSERT_EQ(log_.size(), 9u);
    orders.insert(log_);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST_F(SimProgressTest, ManualWorkWaitsForItsStep) {
  Build("manual");
  const Stream stream = NewStream();
  Mark(stream, 'a');
  Mark(stream, 'b');
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(device().StreamQuery(stream), Status::kNotReady);
  }
  EXPECT_TRUE(device().Step(stream));
  EXPECT_EQ(log_, "a");
  device().StepAll();
  EXPECT_EQ(log_, "ab");
  EXPECT_FALSE(device().Step(stream));
}

TEST_F(SimProgressTest, StepRefusesAStreamOfAnotherDevice) {
  Build("manual");
  const Stream stream = NewStream(kStreamNonBlocking, 1);
  Mark(stream, 'a');
  EXPECT_FALSE(device(0).Step(stream));
  EXPECT_EQ(log_, "");
}

TEST_F(SimProgressTest, EveryProgressHasSteps) {
  for (const char* progress : {"lazy", "timed", "manual"}) {
    SCOPED_TRACE(progress);
    Build(progress);
    log_.clear();
    const Stream stream = NewStream();
    Mark(stream, 'a');
    EXPECT_TRUE(device().Step(stream));
    EXPECT_EQ(log_, "a");
  }
}

TEST_F(SimProgressTest, WorkThatNobodyWaitsForIsNoLeak) {
  Build("manual");
  const Stream stream = NewStream();
  Mark(stream, 'a');
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(platform_->LeakReport(), "");
  platform_.reset();
  EXPECT_EQ(log_, "");
}

}  // namespace
}  // namespace strata::sim
