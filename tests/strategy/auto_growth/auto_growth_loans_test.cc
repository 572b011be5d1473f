// Memory that auto_growth borrows from other streams before it grows. Rules M1
// to M10 are those of cuda_semantics.md §5.2.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/tests/strategy/auto_growth/auto_growth_loans_fixture.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

class AutoGrowthLoansTest : public AutoGrowthLoansFixture {};

TEST_F(AutoGrowthLoansTest, ABlockOfAnotherStreamServesInPlaceOfGrowth) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  const std::uint64_t growths = Growths();
  const AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  EXPECT_EQ(Growths(), growths);
  EXPECT_EQ(borrowed->base(), used->base());
  EXPECT_EQ(borrowed->size(), 4 * kMiB);
}

TEST_F(AutoGrowthLoansTest, EveryByteIsCountedOnce) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  const AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  const Stats lender = a_.strategy->stats();
  const Stats borrower = b_.strategy->stats();
  EXPECT_EQ(lender.reserved_bytes, 16 * kMiB);
  EXPECT_EQ(lender.in_use_bytes, 9 * kMiB);
  EXPECT_EQ(borrower.reserved_bytes, 4 * kMiB);
  EXPECT_EQ(borrower.in_use_bytes, 4 * kMiB);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 20 * kMiB);
}

// M4: the earlier use is complete, and the host has seen it.
TEST_F(AutoGrowthLoansTest, NotWhileTheLendersWorkMayStillUseIt) {
  UseManual();
  const AllocationPtr used = a_->Allocate(9 * kMiB);
  AllocationPtr low = a_->Allocate(8 * kMiB);
  Submit(a_);
  low.reset();
  const AllocationPtr first = b_->Allocate(12 * kMiB);
  EXPECT_NE(first->base(), used->base());

  Finish();
  const AllocationPtr second = b_->Allocate(10 * kMiB);
  EXPECT_EQ(second->base(), used->base());
}

// M4: an event recorded before the free does not cover it.
TEST_F(AutoGrowthLoansTest, AnEventBeforeTheFreeIsNotEnough) {
  UseManual();
  const AllocationPtr used = a_->Allocate(9 * kMiB);
  AllocationPtr low = a_->Allocate(8 * kMiB);
  a_.chain_stream->timeline()->Note();
  ASSERT_EQ(a_.chain_stream->timeline()->Close(), Status::kSuccess);
  Finish();
  Submit(a_);
  low.reset();
  const AllocationPtr other = b_->Allocate(8 * kMiB);
  EXPECT_NE(other->base(), used->base());
}

// M3: the stream of the borrower waits for it.
TEST_F(AutoGrowthLoansTest, OrTheBorrowerWaitsOnTheDevice) {
  UseManual(/*wait=*/true);
  const AllocationPtr used = a_->Allocate(9 * kMiB);
  AllocationPtr low = a_->Allocate(8 * kMiB);
  Submit(a_);
  low.reset();
  const AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  EXPECT_EQ(borrowed->base(), used->base());
  EXPECT_EQ(Calls(DeviceCall::kStreamWaitEvent), 1U);
}

// M10: a block joined from several blocks waits for the last of them.
TEST_F(AutoGrowthLoansTest, AJoinedBlockWaitsForTheLatestOfItsParts) {
  UseManual();
  const AllocationPtr used = a_->Allocate(9 * kMiB);
  AllocationPtr high = a_->Allocate(4 * kMiB);
  AllocationPtr low = a_->Allocate(4 * kMiB);
  low.reset();
  AllocationPtr part = b_->Allocate(3 * kMiB);
  ASSERT_EQ(part->base(), used->base());
  Submit(a_);
  high.reset();
  part.reset();
  // A returned loan lies between a block that is ready and one that is not.
  const AllocationPtr other = b_->Allocate(12 * kMiB);
  EXPECT_NE(other->base(), used->base());
  EXPECT_EQ(a_.strategy->stats().largest_free_bytes, 11 * kMiB);
  Finish();
  const AllocationPtr whole = b_->Allocate(10 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
}

TEST_F(AutoGrowthLoansTest, ALoanComesHomeAndCoalescesWhenTheLenderNeedsIt) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  borrowed.reset();
  const std::uint64_t growths = Growths();
  const AllocationPtr whole = a_->Allocate(11 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
  EXPECT_EQ(Growths(), growths);
}

TEST_F(AutoGrowthLoansTest, ALoanComesHomeWhenAThirdStreamNeedsIt) {
  Use({});
  const TestChain c = place_->AddChain();
  const AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  borrowed.reset();
  const AllocationPtr whole = c->Allocate(11 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
}

// The work of the borrower counts as a use of the lender's block.
TEST_F(AutoGrowthLoansTest, ALoanComesHomeOnlyAfterTheBorrowersWork) {
  UseManual();
  const AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  ASSERT_EQ(borrowed->base(), used->base());
  Submit(b_);
  borrowed.reset();
  const AllocationPtr whole = a_->Allocate(11 * kMiB);
  EXPECT_NE(whole->base(), used->base());
  Finish();
}

TEST_F(AutoGrowthLoansTest, AWholeIdleChunkMovesForGood) {
  Use({});
  a_->Allocate(12 * kMiB).reset();
  const AllocationPtr moved = b_->Allocate(11 * kMiB);
  EXPECT_EQ(Growths(), 1U);
  EXPECT_EQ(a_.strategy->stats().reserved_bytes, 0U);
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 12 * kMiB);
}

TEST_F(AutoGrowthLoansTest, ReleaseOfTheLenderGetsIdleLoansBack) {
  Use({});
  AllocationPtr used = LeaveFreeBlock();
  b_->Allocate(4 * kMiB).reset();
  used.reset();
  EXPECT_EQ(a_->Release(), 20 * kMiB);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

TEST_F(AutoGrowthLoansTest, ALoanOutlivesTheLendersChain) {
  Use({});
  AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  used.reset();
  a_ = TestChain();
  EXPECT_EQ(place_->pool()->reserved_bytes(), 20 * kMiB);
  // Meanwhile, the rest of the chunk serves others.
  const AllocationPtr more = b_->Allocate(9 * kMiB);
  EXPECT_EQ(more->base(), borrowed->base());
  borrowed.reset();
}

TEST_F(AutoGrowthLoansTest, ReleaseOfThePoolReachesWhatEndedChainsLeft) {
  Use({});
  AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  used.reset();
  a_ = TestChain();
  borrowed.reset();
  b_->Release();
  EXPECT_EQ(place_->pool()->Release(), 20 * kMiB);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

TEST_F(AutoGrowthLoansTest, LendersThatBorrowFromEachOtherEndInAnyOrder) {
  Use({});
  const AllocationPtr used_a = LeaveFreeBlock();
  AllocationPtr from_a = b_->Allocate(8 * kMiB);
  AllocationPtr used_b = b_->Allocate(15 * kMiB);
  AllocationPtr rest_b = b_->Allocate(9 * kMiB);
  AllocationPtr low_b = b_->Allocate(8 * kMiB);
  low_b.reset();
  const AllocationPtr from_b = a_->Allocate(7 * kMiB);
  EXPECT_EQ(from_a->base(), used_a->base());
  EXPECT_EQ(from_b->base(), rest_b->base());
  from_a.reset();
  used_b.reset();
  rest_b.reset();
  b_ = TestChain();
}

TEST_F(AutoGrowthLoansTest, TheLimitIsOnWhatIsReserved) {
  TestPlaceOptions options;
  options.limit_bytes = 20 * kMiB;
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_chunk_size_in_mb = 20;
  Use(options);
  const AllocationPtr used = LeaveFreeBlock();
  const AllocationPtr borrowed = b_->Allocate(8 * kMiB);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 20 * kMiB);
  Failure failure;
  EXPECT_EQ(b_->AllocateOrNull(Request{8 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
}

// A wait of the stream is better than a failed request.
TEST_F(AutoGrowthLoansTest, AtExhaustionTheBorrowerWaitsOnTheDevice) {
  TestPlaceOptions options;
  options.progress = "manual";
  options.memory_bytes = Mebibytes(20);
  Use(options);
  const AllocationPtr used = a_->Allocate(9 * kMiB);
  AllocationPtr low = a_->Allocate(8 * kMiB);
  Submit(a_);
  low.reset();
  const AllocationPtr borrowed = b_->Allocate(8 * kMiB);
  EXPECT_EQ(borrowed->base(), used->base());
  EXPECT_EQ(Calls(DeviceCall::kStreamWaitEvent), 1U);
}

// pytorch.md §2.3: a block that a release returns to its lender is found,
// although the system got no memory.
TEST_F(AutoGrowthLoansTest, TheLadderFindsWhatALoanBroughtBack) {
  TestPlaceOptions options;
  options.progress = "manual";
  options.memory_bytes = Mebibytes(20);
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_chunk_size_in_mb = 20;
  Use(options);
  const AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  Submit(b_);
  borrowed.reset();
  const AllocationPtr whole = a_->Allocate(11 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
}

TEST_F(AutoGrowthLoansTest, OneStreamNeverAsksTheDevice) {
  place_ = std::make_unique<TestPlace>();
  a_ = place_->AddChain();
  for (int i = 0; i < 200; ++i) {
    const AllocationPtr small = a_->Allocate(1000);
    const AllocationPtr large = a_->Allocate(3 * kMiB);
  }
  EXPECT_EQ(Calls(DeviceCall::kEventRecord), 0U);
  EXPECT_EQ(Calls(DeviceCall::kEventQuery), 0U);
}

TEST_F(AutoGrowthLoansTest, NoneWithoutATimeline) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  const auto stream =
      std::make_shared<ChainStream>(place_->device(), place_->NewStream());
  const auto other = MakeAutoGrowthAllocator(place_->pool(), stream, {});
  const AllocationPtr own = other->Allocate(4 * kMiB);
  EXPECT_NE(own->base(), used->base());
}

struct FailingCall {
  DeviceCall call;
  bool wait;

  friend std::ostream& operator<<(std::ostream& out, const FailingCall& c) {
    return out << DeviceCallName(c.call) << (c.wait ? "_waiting" : "");
  }
};

class AutoGrowthLoansFaultTest
    : public AutoGrowthLoansTest,
      public ::testing::WithParamInterface<FailingCall> {};

TEST_P(AutoGrowthLoansFaultTest, ALoanThatFailsChangesNothing) {
  UseManual(GetParam().wait);
  const AllocationPtr used = a_->Allocate(9 * kMiB);
  AllocationPtr low = a_->Allocate(8 * kMiB);
  Submit(a_);
  low.reset();
  const Stats before = a_.strategy->stats();
  place_->device().AddFault(FailAll(GetParam().call));
  const AllocationPtr grown = b_->Allocate(4 * kMiB);
  place_->device().ClearFaults();
  EXPECT_NE(grown->base(), used->base());
  const Stats after = a_.strategy->stats();
  EXPECT_EQ(after.reserved_bytes, before.reserved_bytes);
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(after.largest_free_bytes, before.largest_free_bytes);
  EXPECT_TRUE(a_.auto_growth().IsConsistent());
  // After the work completes, the next attempt succeeds.
  Finish();
  const AllocationPtr own = b_->Allocate(16 * kMiB);
  EXPECT_EQ(own->base(), grown->base());
  const AllocationPtr borrowed = b_->Allocate(11 * kMiB);
  EXPECT_EQ(borrowed->base(), used->base());
}

INSTANTIATE_TEST_SUITE_P(
    EveryCall, AutoGrowthLoansFaultTest,
    ::testing::Values(FailingCall{DeviceCall::kEventCreate, false},
                      FailingCall{DeviceCall::kEventRecord, false},
                      FailingCall{DeviceCall::kEventQuery, false},
                      FailingCall{DeviceCall::kStreamQuery, false},
                      FailingCall{DeviceCall::kEventCreate, true},
                      FailingCall{DeviceCall::kEventRecord, true},
                      FailingCall{DeviceCall::kStreamWaitEvent, true}),
    ::testing::PrintToStringParamName());

// No wait succeeds.
constexpr std::array<DeviceCall, 3> kWaits = {DeviceCall::kStreamSynchronize,
                                              DeviceCall::kEventSynchronize,
                                              DeviceCall::kSynchronize};

// M4: the block was returned and reused by the lender, although the work of the
// borrower might not be complete. Only the log reported it.
TEST_F(AutoGrowthLoansTest, ALoanThatCannotBeWaitedForDoesNotGoHome) {
  UseManual();
  const AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  ASSERT_EQ(borrowed->base(), used->base());
  Submit(b_);
  borrowed.reset();
  for (const DeviceCall call : kWaits) place_->device().AddFault(FailAll(call));
  EXPECT_EQ(place_->pool()->loans().Recall(ChunkHolder::LoanRecall::kWait,
                                           HolderList::Asked::kAll),
            0U);
  place_->device().ClearFaults();
  const AllocationPtr other = a_->Allocate(11 * kMiB);
  EXPECT_NE(other->base(), used->base());
  Finish();
  place_->pool()->Release();
  const AllocationPtr whole = a_->Allocate(11 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
}

// Likewise, at the end of the borrower's chain.
TEST_F(AutoGrowthLoansTest, ALoanOfAChainThatEndsGoesHomeOnceItIsWaitedFor) {
  UseManual();
  const AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(4 * kMiB);
  Submit(b_);
  borrowed.reset();
  for (const DeviceCall call : kWaits) place_->device().AddFault(FailAll(call));
  b_ = TestChain();
  place_->device().ClearFaults();
  const AllocationPtr other = a_->Allocate(11 * kMiB);
  EXPECT_NE(other->base(), used->base());
  Finish();
  place_->pool()->Release();
  const AllocationPtr whole = a_->Allocate(11 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
}

// The work of the lender itself, after the end of its chain.
TEST_F(AutoGrowthLoansTest,
       WhatALenderThatEndsLeavesIsLentOnlyIfItWasWaitedFor) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    UseManual();
    AllocationPtr used = LeaveFreeBlock();
    AllocationPtr borrowed = b_->Allocate(4 * kMiB);
    ASSERT_EQ(borrowed->base(), used->base());
    const void* const base = used->base();
    Submit(a_);
    used.reset();
    for (const DeviceCall call : kWaits) {
      if (fails) place_->device().AddFault(FailAll(call));
    }
    a_ = TestChain();
    place_->device().ClearFaults();
    const AllocationPtr next = b_->Allocate(9 * kMiB);
    EXPECT_EQ(next->base() == base, !fails);
    Finish();
  }
}

// M6: the system could hand the memory to any user at once.
TEST_F(AutoGrowthLoansTest, AnIdleChunkThatCannotBeWaitedForStaysReserved) {
  UseManual();
  AllocationPtr used = a_->Allocate(9 * kMiB);
  Submit(a_);
  used.reset();
  for (const DeviceCall call : kWaits) place_->device().AddFault(FailAll(call));
  EXPECT_EQ(a_->Release(), 0U);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 20 * kMiB);
  place_->device().ClearFaults();
  EXPECT_EQ(place_->pool()->Release(), 20 * kMiB);
}

// Four streams that borrow from each other all the time. Two chains end
// meanwhile.
TEST(AutoGrowthLoansThreadsTest, StreamsAskEachOtherAtTheSameTime) {
  constexpr std::size_t kThreads = 4;
  TestPlace place;
  LiveRanges live;
  std::atomic<int> overlaps{0};
  const auto run = [&](std::size_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 3; ++round) {
      TestChain chain = place.AddChain();
      std::vector<AllocationPtr> held;
      for (int i = 0; i < 300; ++i) {
        if (held.size() > 5 || (!held.empty() && random() % 3 == 0)) {
          std::swap(held[random() % held.size()], held.back());
          if (!live.Remove(*held.back())) ++overlaps;
          held.pop_back();
        } else {
          Failure failure;
          const std::size_t bytes = (random() % 40 + 1) * kMiB / 4;
          AllocationPtr allocation =
              chain->AllocateOrNull(Request{bytes}, failure);
          if (allocation == nullptr) continue;
          if (!live.Add(*allocation)) ++overlaps;
          held.push_back(std::move(allocation));
        }
      }
      for (const AllocationPtr& allocation : held) {
        if (!live.Remove(*allocation)) ++overlaps;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(place.pool()->reserved_bytes(), 0U);
  EXPECT_EQ(LeakedAllocations(place.device()), 0U);
}

}  // namespace
}  // namespace strata
