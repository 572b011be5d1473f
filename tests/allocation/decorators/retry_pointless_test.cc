// Cases in which a wait is pointless. The clock stands still, so a waiting
// request would never return.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

#include "strata/tests/allocation/decorators/retry_fixture.h"
#include "strata/tests/testing/layers/failing_allocator.h"

namespace strata {
namespace {

class RetryPointlessTest : public RetryFixture {};

// §5-B7: an exhausted request of a single thread waited until the timeout.
TEST_F(RetryPointlessTest, AThreadAloneDoesNotWaitForItself) {
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.waited_ms, 0U);
  EXPECT_EQ(place_.searches(), 2U);  // one each: no other thread could free
}

TEST_F(RetryPointlessTest, ThreadsThatHaveEndedFreeNothing) {
  { const Bystander bystander(*place_); }
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryPointlessTest, WaitingEndsWithTheLastThreadThatCouldFree) {
  AllocationPtr held;
  auto bystander = std::make_unique<Bystander>(*place_);
  // This thread, which runs the test, must not count: it never ends.
  std::thread holder([&] { held = place_->Allocate(kArenaBytes); });
  holder.join();
  Asker asker(*place_, 1);
  clock_.AwaitWaiters(1);
  const std::uint64_t searches = place_.searches();
  bystander->End();
  EXPECT_EQ(asker.Get(), nullptr);
  EXPECT_EQ(asker.failure().reason, Failure::Reason::kDeviceMemory);
  // It has slept since its last search, so it searches once more.
  EXPECT_EQ(place_.searches(), searches + 1);
}

TEST_F(RetryPointlessTest, WithTheOptionAThreadAloneWaits) {
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

// The last waiter fails, and the memory that it frees serves the other one.
TEST_F(RetryPointlessTest, WhenNobodyElseCouldFreeOneFailureHelpsTheOthers) {
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

// A ring of waiters: the last one fails, and the memory that it frees serves
// the other one.
TEST_F(RetryPointlessTest, ThreadsThatWaitForEachOtherDoNotWaitForever) {
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

TEST_F(RetryPointlessTest, ARequestAboveTheDevicesSizeDoesNotWait) {
  const Bystander bystander(*place_);
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{kArenaBytes + 1}, failure), nullptr);
  EXPECT_EQ(place_->AllocateOrNull(Request{SIZE_MAX / 2}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryPointlessTest, NothingInUseMeansNothingToWaitFor) {
  // The device reports more memory than it can allocate.
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

TEST_F(RetryPointlessTest, ARequestThatForbidsItDoesNotWait) {
  const Bystander bystander(*place_);
  const AllocationPtr held = place_->Allocate(kArenaBytes);
  Failure failure;
  EXPECT_EQ(place_->AllocateOrNull(Request{1, 0, kNoRetry}, failure), nullptr);
  EXPECT_EQ(clock_.waits(), 0U);
}

TEST_F(RetryPointlessTest, FailuresOtherThanExhaustionDoNotWait) {
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
TEST_F(RetryPointlessTest, ATimeOfZeroMeansNoWait) {
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

}  // namespace
}  // namespace strata
