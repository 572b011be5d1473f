#include "strata/allocation/reclaim/reclaimer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/base/size.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {
namespace {

// Runs the function that a test sets, and records its name.
class TestSource final : public Reclaimer::Source {
 public:
  TestSource(std::string name, std::vector<std::string>& log)
      : name_(std::move(name)), log_(log) {}

  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return available;
  }
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    log_.push_back(name_);
    asked_stream = stream;
    asked_bytes = bytes;
    if (action) action();
    return gives;
  }

  std::size_t available = 0;
  std::size_t gives = 0;
  std::function<void()> action;
  Stream asked_stream;
  std::size_t asked_bytes = 0;

 private:
  const std::string name_;
  std::vector<std::string>& log_;
};

class ReclaimerTest : public ::testing::Test {
 protected:
  static Failure Exhausted(std::size_t bytes, std::size_t device_free) {
    Failure failure;
    failure.reason = Failure::Reason::kDeviceMemory;
    failure.requested_bytes = failure.rounded_bytes = bytes;
    failure.device_free_bytes = device_free;
    return failure;
  }

  TestSource& Add(Reclaimer::Step step, const std::string& name,
                  int priority = 0) {
    sources_.push_back(std::make_unique<TestSource>(name, log_));
    registrations_.push_back(
        Reclaimer::Register(reclaimer_, step, *sources_.back(), priority));
    return *sources_.back();
  }

  // Registers one source per step, not in the order of the steps.
  void AddAll() {
    callbacks_ = &Add(Reclaimer::Step::kCallbacks, "callbacks");
    release_ = &Add(Reclaimer::Step::kReleaseIdleChunks, "release");
    take_ = &Add(Reclaimer::Step::kTakeIdleChunks, "take");
    flush_ = &Add(Reclaimer::Step::kFlushCaches, "flush");
    drain_ = &Add(Reclaimer::Step::kDrainFrees, "drain");
  }

  bool Climb(Failure failure) {
    return reclaimer_->Climb(stream_, failure, [this] {
      log_.emplace_back("search");
      return found_;
    });
  }

  using Log = std::vector<std::string>;

  const Stream stream_{nullptr, 0, 42};
  std::shared_ptr<Reclaimer> reclaimer_ = std::make_shared<Reclaimer>();
  Log log_;
  bool found_ = false;
  std::vector<std::unique_ptr<TestSource>> sources_;
  std::vector<Reclaimer::Registration> registrations_;
  TestSource* drain_ = nullptr;
  TestSource* flush_ = nullptr;
  TestSource* take_ = nullptr;
  TestSource* release_ = nullptr;
  TestSource* callbacks_ = nullptr;
};

TEST_F(ReclaimerTest, RunsTheStepsFromCheapToHarmful) {
  AddAll();
  release_->available = Mebibytes(1);
  EXPECT_FALSE(Climb(Exhausted(Mebibytes(1), 0)));
  EXPECT_EQ(log_, (Log{"drain", "flush", "take", "release", "callbacks"}));
}

TEST_F(ReclaimerTest, SearchesAfterEveryStepThatGave) {
  AddAll();
  release_->available = Mebibytes(1);
  flush_->gives = 1;
  release_->gives = 1;
  EXPECT_FALSE(Climb(Exhausted(Mebibytes(1), 0)));
  EXPECT_EQ(log_, (Log{"drain", "flush", "search", "take", "release", "search",
                       "take", "release", "search", "callbacks"}));
}

// A search completes deferred frees, so that no wait for frees finds them.
TEST_F(ReclaimerTest, ReleasesMemoryThatASearchMadeIdle) {
  TestSource& release = Add(Reclaimer::Step::kReleaseIdleChunks, "release");
  Add(Reclaimer::Step::kAwaitFrees, "await");
  release.available = Mebibytes(2);
  release.gives = Mebibytes(1);
  int searches = 0;
  Failure failure = Exhausted(Mebibytes(2), 0);
  EXPECT_TRUE(reclaimer_->Climb(stream_, failure, [&] {
    log_.emplace_back("search");
    return ++searches == 2;
  }));
  EXPECT_EQ(log_, (Log{"release", "search", "await", "release", "search"}));
}

TEST_F(ReclaimerTest, WaitsForFreesOnceNothingElseHelps) {
  AddAll();
  Add(Reclaimer::Step::kAwaitFrees, "await");
  release_->available = Mebibytes(1);
  EXPECT_FALSE(Climb(Exhausted(Mebibytes(1), 0)));
  EXPECT_EQ(log_,
            (Log{"drain", "flush", "take", "release", "await", "callbacks"}));
}

// A released block may be an idle chunk of any stream (pytorch.md §8 "retry
// path").
TEST_F(ReclaimerTest, SearchesAndTakesIdleChunksAfterWaitingForFrees) {
  AddAll();
  Add(Reclaimer::Step::kAwaitFrees, "await").gives = 1;
  release_->available = Mebibytes(1);
  EXPECT_FALSE(Climb(Exhausted(Mebibytes(1), 0)));
  EXPECT_EQ(log_, (Log{"drain", "flush", "take", "release", "await", "search",
                       "take", "release", "callbacks"}));
}

TEST_F(ReclaimerTest, NoFreeIsWaitedForToMeetABudget) {
  Add(Reclaimer::Step::kAwaitFrees, "await");
  Failure failure = Exhausted(1, Gibibytes(1));
  failure.reason = Failure::Reason::kBudget;
  Climb(failure);
  EXPECT_EQ(log_, Log());
}

TEST_F(ReclaimerTest, SearchesBehindWhatWasGivenOutsideTheLadder) {
  std::uint64_t searches = 0;
  TestSource& callback = Add(Reclaimer::Step::kCallbacks, "callback");
  callback.action = [&] {
    reclaimer_->BeginGiving();
    reclaimer_->EndGiving(true);
  };
  Failure failure = Exhausted(1, 1);
  EXPECT_TRUE(reclaimer_->Climb(stream_, failure, [&] {
    ++searches;
    return true;
  }));
  EXPECT_EQ(searches, 1U);
}

// The search begins and ends a release itself. If that alone caused another
// search, the ladder would never end.
TEST_F(ReclaimerTest, SearchesNotAgainWhereNothingWasGiven) {
  std::uint64_t searches = 0;
  const auto give_nothing = [&] {
    reclaimer_->BeginGiving();
    reclaimer_->EndGiving(false);
  };
  Add(Reclaimer::Step::kCallbacks, "callback").action = give_nothing;
  Failure failure = Exhausted(1, 1);
  EXPECT_FALSE(reclaimer_->Climb(stream_, failure, [&] {
    ++searches;
    give_nothing();
    return false;
  }));
  EXPECT_EQ(searches, 0U);
}

TEST_F(ReclaimerTest, StopsAtTheFirstSearchThatFinds) {
  AddAll();
  found_ = true;
  flush_->gives = 1;
  EXPECT_TRUE(Climb(Exhausted(Mebibytes(1), Mebibytes(1))));
  EXPECT_EQ(log_, (Log{"drain", "flush", "search"}));
}

TEST_F(ReclaimerTest, StopsWhenTheReasonIsNoLongerExhaustion) {
  AddAll();
  drain_->gives = 1;
  Failure failure = Exhausted(Mebibytes(1), Mebibytes(1));
  EXPECT_FALSE(reclaimer_->Climb(stream_, failure, [&] {
    failure.reason = Failure::Reason::kDevice;
    return false;
  }));
  EXPECT_EQ(log_, (Log{"drain"}));
}

TEST_F(ReclaimerTest, SaysWhatTheRequestNeeds) {
  AddAll();
  Climb(Exhausted(4711, 4711));
  EXPECT_EQ(release_->asked_bytes, 4711U);
  EXPECT_EQ(release_->asked_stream, stream_);
}

TEST_F(ReclaimerTest, AnImpossibleRequestCostsNobodyHisCache) {
  AddAll();
  release_->available = Mebibytes(3);
  EXPECT_FALSE(Climb(Exhausted(Mebibytes(5), Mebibytes(1))));
  EXPECT_EQ(log_, (Log{"drain", "flush", "callbacks"}));
}

// The host does not report its other free memory, and a device does not report
// the host's part of managed memory.
TEST_F(ReclaimerTest, WhereNobodyKnowsWhatElseIsFreeAllOfItGoes) {
  AddAll();
  for (const Place place : {HostPlace(), PinnedPlace(0), ManagedPlace(0)}) {
    Failure failure = Exhausted(Mebibytes(5), 0);
    failure.place = place;
    if (place.kind != PlaceKind::kManaged) {
      failure.reason = Failure::Reason::kHostMemory;
    }
    release_->available = 0;
    Climb(failure);
    EXPECT_EQ(log_, (Log{"drain", "flush", "callbacks"}));
    log_.clear();
    release_->available = 1;
    Climb(failure);
    EXPECT_EQ(log_, (Log{"drain", "flush", "take", "release", "callbacks"}));
    log_.clear();
  }
}

TEST_F(ReclaimerTest, ReleasesWhenAllTogetherSuffice) {
  AddAll();
  release_->available = Mebibytes(3);
  TestSource& second = Add(Reclaimer::Step::kReleaseIdleChunks, "second");
  second.available = Mebibytes(1);
  Climb(Exhausted(Mebibytes(5), Mebibytes(1)));
  EXPECT_EQ(log_,
            (Log{"drain", "flush", "take", "release", "second", "callbacks"}));
}

TEST_F(ReclaimerTest, ALimitIsMetByWhatItLeaves) {
  AddAll();
  release_->available = Mebibytes(3);
  Failure failure = Exhausted(Mebibytes(5), 0);
  failure.reason = Failure::Reason::kLimit;
  failure.limit_bytes = Mebibytes(20);
  failure.reserved_bytes = Mebibytes(18);
  Climb(failure);
  EXPECT_EQ(log_, (Log{"drain", "flush", "take", "release", "callbacks"}));
  log_.clear();
  failure.reserved_bytes = Mebibytes(19);
  Climb(failure);
  EXPECT_EQ(log_, (Log{"drain", "flush", "callbacks"}));
}

TEST_F(ReclaimerTest, IdleChunksMeetNoBudget) {
  AddAll();
  release_->available = Gibibytes(3);
  Failure failure = Exhausted(1, Gibibytes(1));
  failure.reason = Failure::Reason::kBudget;
  Climb(failure);
  EXPECT_EQ(log_, (Log{"drain", "flush", "callbacks"}));
}

TEST_F(ReclaimerTest, SumsOfHugeSourcesDoNotOverflow) {
  AddAll();
  release_->available = SIZE_MAX;
  Climb(Exhausted(Mebibytes(5), Mebibytes(1)));
  EXPECT_EQ(log_.at(2), "take");
}

TEST_F(ReclaimerTest, AsksByPriorityThenInOrderOfRegistration) {
  const auto add = [this](const std::string& name, int priority) {
    Add(Reclaimer::Step::kCallbacks, name, priority);
  };
  add("a", 0);
  add("b", -5);
  add("c", 7);
  add("d", 0);
  add("e", 7);
  EXPECT_FALSE(Climb(Exhausted(1, 1)));
  EXPECT_EQ(log_, (Log{"c", "e", "a", "d", "b"}));
}

TEST_F(ReclaimerTest, AsksNoMoreCallbacksThanItNeeds) {
  AddAll();
  callbacks_->gives = 1;
  Add(Reclaimer::Step::kCallbacks, "spared");
  found_ = true;
  EXPECT_TRUE(Climb(Exhausted(Mebibytes(1), 0)));
  EXPECT_EQ(log_, (Log{"drain", "flush", "callbacks", "search"}));
}

TEST_F(ReclaimerTest, RunsTheStepsAgainAfterACallbackThatGave) {
  reclaimer_ = std::make_shared<Reclaimer>(RetryOptions(), 1);
  AddAll();
  release_->available = Mebibytes(1);
  callbacks_->gives = 1;
  EXPECT_FALSE(Climb(Exhausted(Mebibytes(1), 0)));
  EXPECT_EQ(log_, (Log{"drain", "flush", "take", "release", "callbacks",
                       "search", "drain", "flush", "take", "release"}));
}

// paddle.md §3.5-3: rounds end when a callback frees nothing, or after the
// maximum.
TEST_F(ReclaimerTest, AsksCallbacksInRoundsWhileTheyGive) {
  for (const std::int64_t rounds : {0, 1, 3, 100}) {
    reclaimer_ = std::make_shared<Reclaimer>(RetryOptions(), rounds);
    int left = 5;
    TestSource& callback = Add(Reclaimer::Step::kCallbacks, "callback");
    callback.gives = 1;
    callback.action = [&] {
      if (--left == 0) callback.gives = 0;
    };
    EXPECT_FALSE(Climb(Exhausted(1, 1)));
    EXPECT_EQ(5 - left, rounds < 1 ? 1 : rounds == 100 ? 5 : rounds);
  }
}

// Without a count of bytes, a growth of idle memory is a reason for another
// round.
TEST_F(ReclaimerTest, AsksCallbacksUntilTwoRoundsChangeNothing) {
  AddAll();
  int calls = 0;
  callbacks_->gives = 1;
  callbacks_->action = [&] {
    if (++calls <= 3) release_->available += 10;
  };
  EXPECT_FALSE(Climb(Exhausted(1000, 1)));
  EXPECT_EQ(calls, 5);
}

// Bytes freed in one round are allocated again in the next.
TEST_F(ReclaimerTest, MemoryThatComesAndGoesIsNoReasonForAnotherRound) {
  AddAll();
  int calls = 0;
  callbacks_->gives = 1;
  callbacks_->action = [&] {
    ASSERT_LT(++calls, 100);
    release_->available = calls % 2 == 0 ? 10 : 20;
  };
  EXPECT_FALSE(Climb(Exhausted(1000, 1)));
  EXPECT_EQ(calls, 3);
}

TEST_F(ReclaimerTest, ReportsOnceWhenNothingHelped) {
  AddAll();
  callbacks_->gives = 1;
  Add(Reclaimer::Step::kReport, "report");
  EXPECT_FALSE(Climb(Exhausted(1, 1)));
  EXPECT_EQ(log_.back(), "report");
  EXPECT_EQ(std::count(log_.begin(), log_.end(), "report"), 1);
}

TEST_F(ReclaimerTest, ReportsNothingIfACallbackHelped) {
  AddAll();
  callbacks_->gives = 1;
  callbacks_->action = [this] { found_ = true; };
  Add(Reclaimer::Step::kReport, "report");
  EXPECT_TRUE(Climb(Exhausted(1, 1)));
  EXPECT_EQ(log_.back(), "search");
}

// It would wait for itself.
TEST_F(ReclaimerTest, ASourceMayBeUnregisteredInsideItsOwnCall) {
  TestSource& callback = Add(Reclaimer::Step::kCallbacks, "callback");
  callback.gives = 1;
  callback.action = [this] { registrations_[0].Reset(); };
  EXPECT_FALSE(Climb(Exhausted(1, 1)));
  EXPECT_EQ(log_, (Log{"callback", "search"}));
}

TEST_F(ReclaimerTest, AnUnregisteredSourceIsNotAsked) {
  AddAll();
  registrations_[4].Reset();
  registrations_[3] = Reclaimer::Registration();
  Climb(Exhausted(Mebibytes(5), 0));
  EXPECT_EQ(log_, (Log{"callbacks"}));
}

TEST_F(ReclaimerTest, AMovedRegistrationStaysRegistered) {
  AddAll();
  Reclaimer::Registration moved = std::move(registrations_[4]);
  registrations_.clear();
  Climb(Exhausted(Mebibytes(5), 0));
  EXPECT_EQ(log_, (Log{"drain"}));
}

TEST_F(ReclaimerTest, UnregisteringWaitsForTheCallInside) {
  AddAll();
  std::atomic<bool> inside{false};
  std::atomic<bool> leaving{false};
  drain_->action = [&] {
    inside = true;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    leaving = true;
  };
  std::thread climber([&] { Climb(Exhausted(Mebibytes(5), 0)); });
  while (!inside) std::this_thread::yield();
  registrations_[4].Reset();
  EXPECT_TRUE(leaving);
  climber.join();
}

TEST_F(ReclaimerTest, ASourceMayRegisterAnotherSource) {
  AddAll();
  bool done = false;
  drain_->action = [&] {
    if (!std::exchange(done, true)) Add(Reclaimer::Step::kFlushCaches, "late");
  };
  Climb(Exhausted(Mebibytes(5), 0));
  EXPECT_EQ(log_, (Log{"drain", "flush", "late", "callbacks"}));
}

TEST_F(ReclaimerTest, ASourceThatClimbsAgainGetsNowhere) {
  AddAll();
  drain_->action = [&] { EXPECT_FALSE(Climb(Exhausted(Mebibytes(5), 0))); };
  Climb(Exhausted(Mebibytes(5), 0));
  EXPECT_EQ(log_, (Log{"drain", "flush", "callbacks"}));
}

// Two threads exhaust a place together. Memory that one of them is releasing to
// the system is not available yet, and the other one must not fail meanwhile.
TEST_F(ReclaimerTest, WaitsForWhatAnotherThreadIsGivingBack) {
  class Gate final : public Reclaimer::Source {
   public:
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return climbs == 0 ? Mebibytes(1) : 0;
    }
    std::size_t Reclaim(Stream /*stream*/,
                        std::size_t /*bytes*/) noexcept override {
      ++climbs;
      while (!open) std::this_thread::yield();
      is_free = true;
      return Mebibytes(1);
    }

    std::atomic<int> climbs{0};
    std::atomic<bool> open{false};
    std::atomic<bool> is_free{false};
  };
  class Counter final : public Reclaimer::Source {
   public:
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return 0;
    }
    std::size_t Reclaim(Stream /*stream*/,
                        std::size_t /*bytes*/) noexcept override {
      ++climbs;
      return 0;
    }

    std::atomic<int> climbs{0};
  };
  Gate gate;
  Counter counter;
  const auto gate_registration = Reclaimer::Register(
      reclaimer_, Reclaimer::Step::kReleaseIdleChunks, gate);
  const auto counter_registration =
      Reclaimer::Register(reclaimer_, Reclaimer::Step::kCallbacks, counter);

  std::thread giver([&] {
    Failure failure = Exhausted(Mebibytes(1), 0);
    reclaimer_->Climb(Stream(), failure, [] { return true; });
  });
  while (gate.climbs == 0) std::this_thread::yield();
  bool found = false;
  std::thread other([&] {
    Failure failure = Exhausted(Mebibytes(1), 0);
    found = reclaimer_->Climb(Stream(), failure,
                              [&] { return gate.is_free.load(); });
  });
  // The other thread has no further steps.
  while (counter.climbs == 0) std::this_thread::yield();
  gate.open = true;
  giver.join();
  other.join();
  EXPECT_TRUE(found);
  EXPECT_EQ(gate.climbs, 1);
}

}  // namespace
}  // namespace strata
