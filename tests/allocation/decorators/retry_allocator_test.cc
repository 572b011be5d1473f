#include "strata/allocation/decorators/retry_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/tests/allocation/decorators/retry_fixture.h"
#include "strata/tests/testing/layers/failing_allocator.h"

namespace strata {
namespace {

using testing::HasSubstr;

class RetryAllocatorTest : public RetryFixture {};

// paddle.md §3.5-6: each thread holds all memory until every other one waits.
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
  // The first searched once. The others searched at the start, after they
  // joined the queue, and after the wake-up: one wake-up each, so there was no
  // herd (tf_bfc.md W10).
  EXPECT_EQ(place_.searches(), 1U + 3 * (kThreads - 1));
}

// paddle.md §3.5-6, §3.5-4: the result is the failure of the last search.
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
  // Freed below the layer that would wake waiters.
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
  // Each was woken once, in order: no thread searched more often.
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
  // Frees without a notification, until the last byte.
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

}  // namespace
}  // namespace strata
