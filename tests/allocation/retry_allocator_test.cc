#include "strata/allocation/retry_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/allocation/limit_allocator.h"
#include "strata/tests/testing/arena_place.h"
#include "strata/tests/testing/failing_allocator.h"
#include "strata/tests/testing/manual_clock.h"
#include "strata/tests/testing/pool_place.h"

namespace strata {
namespace {

using testing::HasSubstr;

constexpr std::size_t kArenaBytes = 100;

// A thread that may free memory as far as anybody knows: it has called the
// allocator, and runs until it is told to end.
class Bystander {
 public:
  explicit Bystander(Allocator& allocator)
      : thread_([this, &allocator] {
          allocator.Allocate(1).reset();
          ready_.count_down();
          end_.wait();
        }) {
    ready_.wait();
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander() { End(); }

  void End() {
    if (!thread_.joinable()) return;
    end_.count_down();
    thread_.join();
  }

 private:
  std::latch ready_{1};
  std::latch end_{1};
  std::thread thread_;
};

class RetryAllocatorTest : public ::testing::Test {
 protected:
  RetryOptions Options() {
    RetryOptions options;
    options.time = std::chrono::seconds(10);
    options.clock = &clock_;
    return options;
  }

  // Asks in a thread of its own, and keeps what it gets.
  class Asker {
   public:
    Asker(Allocator& allocator, std::size_t bytes)
        : thread_([this, &allocator, bytes] {
            result_ = allocator.AllocateOrNull(Request{bytes}, failure_);
          }) {}
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;
    ~Asker() {
      if (thread_.joinable()) thread_.join();
    }

    // Waits for the answer.
    AllocationPtr& Get() {
      if (thread_.joinable()) thread_.join();
      return result_;
    }
    const Failure& failure() {
      Get();
      return failure_;
    }

   private:
    AllocationPtr result_;
    Failure failure_;
    std::thread thread_;
  };

  ManualClock clock_;
  ArenaPlace place_{kArenaBytes, Options()};
};

// paddle.md §3.5-6: each holds all there is until every other one waits.
TEST_F(RetryAllocatorTest, FourThreadsShareWhatFitsOnlyOnce) {
  constexpr std::size_t kThreads = 4;
  std::array<void*, kThreads> addresses{};
  std::atomic<std::size_t> to_come{kThreads};
  std::vector<std::thread> threads;
  std::latch all_ended(kThreads);
  for (void*& address : addresses) {
    threads.emplace_back([&] {
      AllocationPtr held = place_->Allocate(kArenaBytes - 1);
      address = held->data();
      clock_.AwaitWaiters(--to_come);
      held.reset();
      all_ended.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(addresses, testing::Each(addresses[0]));
  EXPECT_NE(addresses[0], nullptr);
  EXPECT_EQ(place_.live_bytes(), 0U);
  // The first searched once. The others searched when they came, once more when
  // they had joined, and when woken: one wake-up each, so there was no herd
  // (tf_bfc.md W10).
  EXPECT_EQ(place_.searches(), 1U + 3 * (kThreads - 1));
}

// paddle.md §3.5-6, §3.5-4: the last search's failure is the result.
TEST_F(RetryAllocatorTest, APermanentFailureIsTheUnderlyingAllocatorsOwn) {
  auto ladder = std::make_shared<Reclaimer>(Options());
  auto failing = std::make_shared<FailingAllocator>(
      std::make_shared<ArenaSystem>(kArenaBytes));
  auto hooked = std::make_shared<HookedAllocator>(failing, nullptr);
  hooked->set_ladder(ladder);
  RetryAllocator retry(hooked);
  Bystander bystander(retry);
  failing->Fail({.nth = 1, .count = 1000});
  Asker asker(retry, 7);
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::milliseconds(9999));
  EXPECT_EQ(failing->refused(), 2U);
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(asker.Get(), nullptr);
  EXPECT_EQ(asker.failure().layer, std::string("failing"));
  EXPECT_EQ(asker.failure().waited_ms, 10000U);
  EXPECT_THAT(asker.failure().ToString(), HasSubstr("waited 10000 ms"));
  EXPECT_EQ(failing->refused(), 3U);  // the last search, after the deadline
}

TEST_F(RetryAllocatorTest, TheLastSearchMaySucceed) {
  AllocationPtr held = place_->Allocate(kArenaBytes);
  Asker asker(*place_, 10);
  clock_.AwaitWaiters(1);
  // Freed past the layer that would have told.
  held->block()->owner = place_->underlying();
  held.reset();
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

TEST_F(RetryAllocatorTest, AFreeWakesTheOneThatWaits) {
  AllocationPtr held = place_->Allocate(kArenaBytes);
  Asker asker(*place_, kArenaBytes);
  clock_.AwaitWaiters(1);
  held.reset();
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

TEST_F(RetryAllocatorTest, WhoCameFirstIsServedFirst) {
  AllocationPtr held = place_->Allocate(kArenaBytes);
  std::vector<std::unique_ptr<Asker>> askers;
  for (std::size_t i = 1; i <= 3; ++i) {
    askers.push_back(std::make_unique<Asker>(*place_, kArenaBytes));
    clock_.AwaitWaiters(i);
  }
  for (std::size_t i = 0; i < askers.size(); ++i) {
    held.reset();
    held = std::move(askers[i]->Get());
    ASSERT_NE(held, nullptr);
  }
  // Each was woken once, in order: none has searched more often.
  EXPECT_EQ(place_.searches(), 1U + 3 * askers.size());
}

TEST_F(RetryAllocatorTest, AWaiterThatNeedsMoreThanCouldBeFreeSleepsOn) {
  AllocationPtr most = place_->Allocate(80);
  AllocationPtr rest = place_->Allocate(20);
  Asker large(*place_, 90);
  clock_.AwaitWaiters(1);
  Asker small(*place_, 15);
  clock_.AwaitWaiters(2);
  const std::uint64_t before = place_.searches();
  rest.reset();
  ASSERT_NE(small.Get(), nullptr);
  EXPECT_EQ(place_.searches(), before + 1);  // the large one did not search
  small.Get().reset();
  most.reset();
  EXPECT_NE(large.Get(), nullptr);
  large.Get().reset();
}

// Enough is free in total, but not in one piece.
TEST_F(RetryAllocatorTest, AWokenWaiterThatFailsPassesTheWakeUpOn) {
  AllocationPtr first = place_->Allocate(30);
  AllocationPtr wall = place_->Allocate(40);
  AllocationPtr last = place_->Allocate(30);
  Asker large(*place_, 50);
  clock_.AwaitWaiters(1);
  Asker small(*place_, 25);
  clock_.AwaitWaiters(2);
  Asker smaller(*place_, 24);
  clock_.AwaitWaiters(3);
  // Frees nobody hears of, until the last byte.
  first->block()->owner = place_->underlying();
  last->block()->owner = place_->underlying();
  first.reset();
  last.reset();
  place_.queue().NotifyFree(60);
  EXPECT_NE(small.Get(), nullptr);
  EXPECT_NE(smaller.Get(), nullptr);
  small.Get().reset();
  smaller.Get().reset();
  wall.reset();
  EXPECT_NE(large.Get(), nullptr);
  large.Get().reset();
}

TEST_F(RetryAllocatorTest, WaitsForSeveralFreesThatSufficeTogether) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 10; ++i) held.push_back(place_->Allocate(10));
  Asker asker(*place_, 30);
  clock_.AwaitWaiters(1);
  const std::uint64_t before = place_.searches();
  for (std::size_t i = 4; i < 7; ++i) held[i].reset();
  EXPECT_NE(asker.Get(), nullptr);
  EXPECT_EQ(place_.searches(), before + 1);
  asker.Get().reset();
}

// ---- When there is no point in waiting. The clock stands still, so a request
// ---- that waited would never return.

// §5-B7: single-threaded exhaustion slept the full time.
TEST_F(RetryAllocatorTest, AThreadAloneDoesNotWaitForItself) {
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.waited_ms, 0U);
  EXPECT_EQ(place_.searches(), 2U);  // one each: nobody could have interfered
}

TEST_F(RetryAllocatorTest, ThreadsThatHaveEndedFreeNothing) {
  { const Bystander bystander(*place_); }
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryAllocatorTest, WaitingEndsWithTheLastThreadThatCouldFree) {
  AllocationPtr held;
  auto bystander = std::make_unique<Bystander>(*place_);
  // This thread, the test's, must not count: it never ends.
  std::thread holder([&] { held = place_->Allocate(kArenaBytes); });
  holder.join();
  Asker asker(*place_, 1);
  clock_.AwaitWaiters(1);
  bystander->End();
  EXPECT_EQ(asker.Get(), nullptr);
  EXPECT_EQ(asker.failure().reason, Failure::Reason::kDeviceMemory);
}

TEST_F(RetryAllocatorTest, WithTheOptionAThreadAloneWaits) {
  RetryOptions options = Options();
  options.alone = true;
  ArenaPlace place(kArenaBytes, options);
  const AllocationPtr held = place->Allocate(kArenaBytes);
  std::thread time([&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(std::chrono::seconds(10));
  });
  Failure failure;
  EXPECT_EQ(place->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(failure.waited_ms, 10000U);
  time.join();
}

// The one that came last is told, and what it gives up serves the other.
TEST_F(RetryAllocatorTest, WhenNobodyElseCouldFreeOneFailureHelpsTheOthers) {
  auto bystander = std::make_unique<Bystander>(*place_);
  std::latch first_holds(1);
  AllocationPtr rest;
  std::thread holder([&] { rest = place_->Allocate(kArenaBytes - 10); });
  holder.join();
  AllocationPtr part;
  std::thread last([&] {
    part = place_->Allocate(10);
    first_holds.count_down();
    clock_.AwaitWaiters(1);
    Failure failure;
    EXPECT_EQ(place_->AllocateOrNull(Request{20}, failure), nullptr);
    part.reset();
  });
  first_holds.wait();
  Asker first(*place_, 10);
  clock_.AwaitWaiters(2);
  bystander->End();
  last.join();
  EXPECT_NE(first.Get(), nullptr);
  first.Get().reset();
}

// A ring of waiters: the last one fails, and what it gives up serves the other.
TEST_F(RetryAllocatorTest, ThreadsThatWaitForEachOtherDoNotWaitForever) {
  std::latch both_hold(2);
  std::atomic<int> failures{0};
  const auto ask_for_more = [&] {
    AllocationPtr first = place_->Allocate(kArenaBytes / 2);
    both_hold.arrive_and_wait();
    Failure failure;
    AllocationPtr second =
        place_->AllocateOrNull(Request{kArenaBytes / 2}, failure);
    if (second == nullptr) {
      ++failures;
      EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
    }
  };
  std::thread a(ask_for_more);
  std::thread b(ask_for_more);
  a.join();
  b.join();
  EXPECT_EQ(failures, 1);
}

TEST_F(RetryAllocatorTest, ARequestAboveTheDevicesSizeDoesNotWait) {
  const Bystander bystander(*place_);
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{kArenaBytes + 1}, failure), nullptr);
  EXPECT_EQ(place_->AllocateOrNull(Request{SIZE_MAX / 2}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryAllocatorTest, NothingInUseMeansNothingToWaitFor) {
  // The device says it has more than it can give.
  auto ladder_options = Options();
  struct Unused final : PlaceUsage {
    std::size_t LiveBytes() const noexcept override { return 0; }
    std::optional<std::uint64_t> CountIfUnused() const noexcept override {
      return 1;
    }
  } unused;
  ladder_options.usage = &unused;
  auto hooked = std::make_shared<HookedAllocator>(
      std::make_shared<ArenaSystem>(kArenaBytes), nullptr);
  hooked->set_ladder(std::make_shared<Reclaimer>(ladder_options));
  RetryAllocator retry(hooked);
  const Bystander bystander(retry);
  const AllocationPtr held = retry.Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(retry.AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryAllocatorTest, ARequestThatForbidsItDoesNotWait) {
  const Bystander bystander(*place_);
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{1, 0, kNoRetry}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryAllocatorTest, FailuresOtherThanExhaustionDoNotWait) {
  for (const Failure::Reason reason :
       {Failure::Reason::kNoGrowth, Failure::Reason::kTooLarge,
        Failure::Reason::kBadRequest, Failure::Reason::kDevice}) {
    auto failing = std::make_shared<FailingAllocator>(
        std::make_shared<ArenaSystem>(kArenaBytes));
    auto hooked = std::make_shared<HookedAllocator>(failing, nullptr);
    hooked->set_ladder(std::make_shared<Reclaimer>(Options()));
    RetryAllocator retry(hooked);
    const Bystander bystander(retry);
    failing->Fail({.nth = 1, .reason = reason});
    Failure failure;
    EXPECT_EQ(retry.AllocateOrNull(Request{1}, failure), nullptr);
    EXPECT_EQ(failure.reason, reason);
  }
  EXPECT_EQ(clock_.waits(), 0U);
}

// paddle.md §5-B6
TEST_F(RetryAllocatorTest, ATimeOfZeroMeansNoWait) {
  for (const int ms : {0, -1}) {
    RetryOptions options = Options();
    options.time = std::chrono::milliseconds(ms);
    ArenaPlace place(kArenaBytes, options);
    const Bystander bystander(*place);
    const AllocationPtr held = place->Allocate(kArenaBytes);
    Failure failure;
    EXPECT_EQ(place->AllocateOrNull(Request{1}, failure), nullptr);
    EXPECT_EQ(place.searches(), 3U);
  }
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryAllocatorTest, AVeryLongTimeDoesNotOverflow) {
  RetryOptions options = Options();
  options.time = std::chrono::milliseconds::max();
  ArenaPlace place(kArenaBytes, options);
  AllocationPtr held = place->Allocate(kArenaBytes);
  Asker asker(*place, 1);
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::hours(24) * 365);
  held.reset();
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

// ---- What the chunk pool tells, whatever layer is above it.

TEST_F(RetryAllocatorTest, AChunkThatGoesBackToTheSystemWakesWaiters) {
  const PoolPlace system_place;
  ChunkPool pool(system_place.system(), Mebibytes(10),
                 std::make_shared<Reclaimer>(Options()));
  pool.reclaimer()->retry().CountThread();
  for (const bool offer : {false, true}) {
    Failure failure;
    Allocation* chunk = pool.TryAllocate(Request{Mebibytes(10)}, failure);
    ASSERT_NE(chunk, nullptr);
    Asker asker(pool, Mebibytes(8));
    clock_.AwaitWaiters(1);
    ChainStream no_stream;
    if (offer) {
      pool.Offer(chunk, no_stream);
    } else {
      pool.DoFree(chunk);
    }
    EXPECT_NE(asker.Get(), nullptr);
    asker.Get().reset();
  }
}

// ---- Layers that hold a part of a limit for a moment.

// Refuses the first request, once the test lets it.
class SlowRefusal final : public Decorator {
 public:
  explicit SlowRefusal(std::shared_ptr<Allocator> underlying)
      : Decorator(std::move(underlying)) {}

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    if (calls_++ != 0) return Decorator::TryAllocate(request, failure);
    inside.count_down();
    refuse.wait();
    failure = Failure();
    failure.reason = Failure::Reason::kDevice;
    failure.layer = name();
    return nullptr;
  }
  const char* name() const override { return "slow_refusal"; }
  HitPath* hit_path() override { return nullptr; }

  std::latch inside{1};
  std::latch refuse{1};

 private:
  std::atomic<int> calls_{0};
};

TEST_F(RetryAllocatorTest, AClaimOnTheLimitThatCameToNothingWakesWaiters) {
  const PoolPlace pool_place;
  auto slow = std::make_shared<SlowRefusal>(pool_place.system());
  auto pool = std::make_shared<ChunkPool>(
      slow, Mebibytes(10), std::make_shared<Reclaimer>(Options()));
  // Without the retry layer, whose own notice is not what is tested.
  pool->reclaimer()->retry().CountThread();
  Asker in_vain(*pool, Mebibytes(8));
  slow->inside.wait();
  Asker asker(*pool, Mebibytes(8));
  clock_.AwaitWaiters(1);
  slow->refuse.count_down();
  EXPECT_EQ(in_vain.Get(), nullptr);
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

TEST_F(RetryAllocatorTest, ABudgetReservedInVainWakesWaiters) {
  auto slow =
      std::make_shared<SlowRefusal>(std::make_shared<ArenaSystem>(kArenaBytes));
  auto hooked = std::make_shared<HookedAllocator>(slow, nullptr);
  hooked->set_ladder(std::make_shared<Reclaimer>(Options()));
  LimitAllocator limit(hooked, std::make_shared<Budget>(50));
  hooked->reclaimer()->retry().CountThread();
  Asker in_vain(limit, 40);
  slow->inside.wait();
  Asker asker(limit, 40);
  clock_.AwaitWaiters(1);
  slow->refuse.count_down();
  EXPECT_EQ(in_vain.Get(), nullptr);
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
}

TEST_F(RetryAllocatorTest, ABudgetIsWaitedForToo) {
  auto retry = std::make_shared<RetryAllocator>(
      std::shared_ptr<Allocator>(&*place_, [](Allocator*) {}));
  LimitAllocator limit(retry, std::make_shared<Budget>(50));
  AllocationPtr held = limit.Allocate(40);
  Asker asker(limit, 40);
  clock_.AwaitWaiters(1);
  held.reset();
  EXPECT_NE(asker.Get(), nullptr);
  asker.Get().reset();
  // Above the budget there is nothing to wait for.
  const Bystander bystander(limit);
  Failure failure;
  held = limit.Allocate(50);
  EXPECT_EQ(limit.AllocateOrNull(Request{51}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBudget);
  held.reset();
}

}  // namespace
}  // namespace strata
