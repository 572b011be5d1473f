#include "strata/allocation/reclaim/thread_census.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "strata/tests/testing/parked_thread.h"

namespace strata {
namespace {

class ThreadCensusTest : public ::testing::Test {
 protected:
  // A thread counted at `places` that runs until the test ends it.
  class Runner : public ParkedThread {
   public:
    explicit Runner(std::uint64_t places)
        : ParkedThread([places] { CountAll(places); }) {}
  };

  // A thread counted at `places` that waits at `place` until the test ends it.
  class Sleeper {
   public:
    Sleeper(std::uint64_t places, std::uint64_t place)
        : thread_([this, places, place] {
            CountAll(places);
            {
              std::unique_lock<std::mutex> lock(Census().mutex());
              waiter_.place = place;
              blocked_ = Census().Block(waiter_);
              ready_.count_down();
              while (blocked_ && !waiter_.hopeless) waiter_.wake.wait(lock);
            }
            end_.wait();
          }) {
      ready_.wait();
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() { End(); }

    bool is_blocked() {
      const std::lock_guard<std::mutex> guard(Census().mutex());
      return blocked_ && !waiter_.hopeless;
    }
    void End() {
      if (!thread_.joinable()) return;
      end_.count_down();
      thread_.join();
    }

   private:
    std::latch ready_{1};
    std::latch end_{1};
    ThreadCensus::Waiter waiter_;
    bool blocked_ = false;
    std::thread thread_;
  };

  static ThreadCensus& Census() { return ThreadCensus::Instance(); }
  static void CountAll(std::uint64_t places) {
    for (; places != 0; places &= places - 1) {
      ThreadCensus::Count(places & ~(places - 1));
    }
  }

  ~ThreadCensusTest() override {
    for (const std::uint64_t place : {a_, b_}) Census().RemovePlace(place);
  }

  const std::uint64_t a_ = Census().AddPlace();
  const std::uint64_t b_ = Census().AddPlace();
};

TEST_F(ThreadCensusTest, APlaceIsSharedOnceASecondThreadIsCounted) {
  ThreadCensus::Count(a_);
  ThreadCensus::Count(a_);
  EXPECT_FALSE(Census().WasShared(a_));
  { const Runner runner(a_); }
  EXPECT_TRUE(Census().WasShared(a_));
  EXPECT_FALSE(Census().WasShared(b_));
}

TEST_F(ThreadCensusTest, AFreshPlaceKnowsNobody) {
  const std::uint64_t place = Census().AddPlace();
  ThreadCensus::Count(place);
  { const Runner runner(place); }
  Census().RemovePlace(place);
  EXPECT_EQ(ThisThread().counted_places.load() & place, 0U);
  EXPECT_EQ(Census().AddPlace(), place);
  EXPECT_FALSE(Census().WasShared(place));
  Census().RemovePlace(place);
}

TEST_F(ThreadCensusTest, PlacesBeyondTheBitsShareThem) {
  std::vector<std::uint64_t> places;
  for (int i = 0; i < 100; ++i) places.push_back(Census().AddPlace());
  for (const std::uint64_t place : places)
    EXPECT_TRUE(std::has_single_bit(place));
  const std::set<std::uint64_t> bits(places.begin(), places.end());
  EXPECT_EQ(bits.size(), 64U);
  // When one of two places that share a bit is removed, the other keeps its
  // threads.
  ThreadCensus::Count(places.front());
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] != places.front()) continue;
    Census().RemovePlace(places[i]);
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  EXPECT_NE(ThisThread().counted_places.load() & places.front(), 0U);
  for (const std::uint64_t place : places) Census().RemovePlace(place);
}

TEST_F(ThreadCensusTest, NobodyWaitsWhereNobodyElseRuns) {
  Sleeper alone(a_, a_);
  EXPECT_FALSE(alone.is_blocked());
}

TEST_F(ThreadCensusTest, AThreadOfAnotherPlaceIsNoHope) {
  const Runner elsewhere(b_);
  Sleeper sleeper(a_, a_);
  EXPECT_FALSE(sleeper.is_blocked());
}

TEST_F(ThreadCensusTest, HopeReachesThroughThoseWhoWaitElsewhere) {
  Runner runner(a_);
  Sleeper between(a_ | b_, a_);  // may be woken, and then free at b
  Sleeper sleeper(b_, b_);
  EXPECT_TRUE(between.is_blocked());
  EXPECT_TRUE(sleeper.is_blocked());
  runner.End();
  EXPECT_FALSE(sleeper.is_blocked());
  EXPECT_FALSE(between.is_blocked());
}

TEST_F(ThreadCensusTest, TellsTheLastThatCameFirst) {
  Runner runner(a_);
  Sleeper first(a_, a_);
  Sleeper last(a_, a_);
  runner.End();
  EXPECT_FALSE(last.is_blocked());
  EXPECT_TRUE(first.is_blocked());  // the last one runs: it may free
  last.End();
  EXPECT_FALSE(first.is_blocked());
}

}  // namespace
}  // namespace strata
