#include "strata/allocation/chunks/chunk_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

class ChunkPoolTest : public ::testing::Test {
 protected:
  ChunkPoolTest() {
    // Events are created in batches; create them before calls are counted.
    a_->timeline()->Note();
    EXPECT_EQ(a_->timeline()->Close(), Status::kSuccess);
    a_->timeline()->Poll();
  }

  // The calls that reach the device while `act` runs.
  template <class Act>
  std::vector<DeviceCall> CallsOf(Act act) {
    std::vector<DeviceCall> calls;
    place_.device().SetCallObserver([&calls](const CallRecord& call) {
      if (IsEntryPoint(call.call)) calls.push_back(call.call);
    });
    act();
    place_.device().SetCallObserver(nullptr);
    return calls;
  }

  Allocation* Chunk(std::size_t bytes) {
    Failure failure;
    Allocation* chunk = pool_.TryAllocate(Request{bytes}, failure);
    EXPECT_NE(chunk, nullptr) << failure.ToString();
    return chunk;
  }
  Allocation* ChunkFor(std::size_t bytes, ChainStream& user) {
    Failure failure;
    return pool_.TryAllocateFor(Request{bytes}, user, failure);
  }

  PoolPlace place_;
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.system());
  ChunkPool pool_{below_, Mebibytes(100), place_.reclaimer()};
  std::shared_ptr<ChainStream> a_ = place_.NewChainStream();
  std::shared_ptr<ChainStream> b_ = place_.NewChainStream();
};

TEST_F(ChunkPoolTest, CountsWhatItHoldsAndTheMostItHeld) {
  Allocation* first = Chunk(Mebibytes(10));
  Allocation* second = Chunk(Mebibytes(20));
  pool_.DoFree(first);
  EXPECT_EQ(pool_.reserved_bytes(), Mebibytes(20));
  Stats stats = pool_.stats();
  EXPECT_EQ(stats.peak_reserved_bytes, Mebibytes(30));
  EXPECT_EQ(stats.allocations, 2U);
  EXPECT_EQ(stats.frees, 1U);
  EXPECT_EQ(stats.chunks, 1U);
  EXPECT_EQ(stats.limit_bytes, Mebibytes(100));
  pool_.ResetPeak();
  EXPECT_EQ(pool_.stats().peak_reserved_bytes, Mebibytes(20));
  pool_.DoFree(second);
}

// Memory that the system failed to free is still held.
TEST_F(ChunkPoolTest, ThePeakIsNeverBelowWhatItHolds) {
  place_.device().AddFault(FailNth(DeviceCall::kMemFree, 1));
  pool_.DoFree(Chunk(Mebibytes(40)));
  Allocation* more = Chunk(Mebibytes(20));
  EXPECT_EQ(pool_.stats().reserved_bytes, Mebibytes(60));
  EXPECT_EQ(pool_.stats().peak_reserved_bytes, Mebibytes(60));
  pool_.ResetPeak();
  EXPECT_EQ(pool_.stats().peak_reserved_bytes, Mebibytes(60));
  pool_.DoFree(more);
}

TEST_F(ChunkPoolTest, MeetsTheLimitExactlyAndNoMore) {
  Allocation* most = Chunk(Mebibytes(99));
  Failure failure;
  EXPECT_EQ(pool_.TryAllocate(Request{Mebibytes(1) + 1}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(failure.reserved_bytes, Mebibytes(99));
  EXPECT_EQ(failure.limit_bytes, Mebibytes(100));
  EXPECT_EQ(failure.rounded_bytes, Mebibytes(1) + 1);
  EXPECT_EQ(below_->calls(), 1U);
  EXPECT_EQ(pool_.stats().failures, 1U);
  Allocation* rest = Chunk(Mebibytes(1));
  pool_.DoFree(most);
  pool_.DoFree(rest);
}

TEST_F(ChunkPoolTest, AFailedGrowthLeavesLimitAndPeakAsTheyWere) {
  below_->Fail({1, 1, Failure::Reason::kDeviceMemory});
  Failure failure;
  EXPECT_EQ(pool_.TryAllocate(Request{Mebibytes(100)}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(pool_.reserved_bytes(), 0U);
  EXPECT_EQ(pool_.stats().peak_reserved_bytes, 0U);
  pool_.DoFree(Chunk(Mebibytes(100)));
}

TEST_F(ChunkPoolTest, NoAddressSpaceHoldsAnAbsurdSize) {
  Failure failure;
  ChunkPool unlimited(below_, 0, nullptr);
  EXPECT_EQ(unlimited.TryAllocate(Request{SIZE_MAX}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kTooLarge);
  EXPECT_EQ(below_->calls(), 0U);
}

// paddle.md §5 B11: the check and the addition are one atomic step.
TEST_F(ChunkPoolTest, ConcurrentGrowthNeverExceedsTheLimit) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      Failure failure;
      for (int i = 0; i < 200; ++i) {
        std::vector<Allocation*> mine;
        while (Allocation* chunk =
                   pool_.TryAllocate(Request{Mebibytes(15)}, failure)) {
          mine.push_back(chunk);
          EXPECT_LE(pool_.reserved_bytes(), Mebibytes(100));
        }
        EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
        for (Allocation* chunk : mine) pool_.DoFree(chunk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool_.stats().peak_reserved_bytes, Mebibytes(100));
  EXPECT_EQ(pool_.reserved_bytes(), 0U);
}

// tf_bfc.md §2, SubAllocator: visitors run in order at an allocation, and in
// reverse order before the actual free.
TEST_F(ChunkPoolTest, TellsVisitorsInOrderAndBackwardsBeforeTheMemoryGoes) {
  std::vector<std::string> log;
  for (const char* name : {"one", "two"}) {
    pool_.AddVisitor([&log, name](void* data, std::size_t bytes, int change) {
      EXPECT_NE(data, nullptr);
      EXPECT_EQ(HeldLocks(), 0);
      log.push_back(std::string(name) + (change > 0 ? " +" : " -") +
                    std::to_string(bytes));
    });
  }
  place_.device().SetCallObserver([&log](const CallRecord& call) {
    if (IsEntryPoint(call.call)) log.emplace_back(DeviceCallName(call.call));
  });
  Allocation* chunk = Chunk(Mebibytes(2));
  pool_.DoFree(chunk);
  place_.device().SetCallObserver(nullptr);
  EXPECT_THAT(log, ElementsAre("mem_alloc", "one +2097152", "two +2097152",
                               "two -2097152", "one -2097152", "mem_free"));
}

// tf_bfc.md W20: the original also visits the null pointer of a failure.
TEST_F(ChunkPoolTest, DoesNotVisitAChunkThatTheSystemRefused) {
  int visits = 0;
  pool_.AddVisitor([&](void*, std::size_t, int) { ++visits; });
  place_.device().AddFault(FailNth(DeviceCall::kMemAlloc, 1));
  Failure failure;
  EXPECT_EQ(pool_.TryAllocate(Request{Mebibytes(2)}, failure), nullptr);
  EXPECT_EQ(visits, 0);
}

// A chunk that changes streams is neither allocated nor freed.
TEST_F(ChunkPoolTest, VisitsAChunkOnceHoweverOftenItIsOffered) {
  std::vector<int> changes;
  pool_.AddVisitor(
      [&](void*, std::size_t, int change) { changes.push_back(change); });
  Allocation* chunk = Chunk(Mebibytes(10));
  for (int i = 0; i < 3; ++i) {
    pool_.Offer(chunk, *a_);
    ASSERT_EQ(ChunkFor(Mebibytes(10), *b_), chunk);
  }
  pool_.DoFree(chunk);
  EXPECT_THAT(changes, ElementsAre(1, -1));
}

// An earlier fault, found by tools/soak: while one thread freed memory, another
// one could allocate the same memory, and both counted as reserved.
TEST_F(ChunkPoolTest, WhatTheSystemHasBackIsNoLongerCountedAsReserved) {
  std::size_t counted = 1;
  Allocation* chunk = Chunk(Mebibytes(2));
  place_.device().SetCallObserver([&](const CallRecord& call) {
    if (call.call == DeviceCall::kMemFree) counted = pool_.reserved_bytes();
  });
  pool_.DoFree(chunk);
  place_.device().SetCallObserver(nullptr);
  EXPECT_EQ(counted, 0U);
}

TEST_F(ChunkPoolTest, AVisitorMayUseThePool) {
  bool nested = false;
  Allocation* inner = nullptr;
  pool_.AddVisitor([&](void*, std::size_t, int change) {
    if (change > 0 && !std::exchange(nested, true)) {
      inner = Chunk(Mebibytes(1));
    }
  });
  pool_.DoFree(Chunk(Mebibytes(2)));
  ASSERT_NE(inner, nullptr);
  pool_.DoFree(inner);
}

TEST_F(ChunkPoolTest, AnOfferedChunkServesAnotherStreamAfterItsEvent) {
  Allocation* chunk = Chunk(Mebibytes(10));
  EXPECT_THAT(CallsOf([&] { pool_.Offer(chunk, *a_); }),
              ElementsAre(DeviceCall::kEventRecord));
  EXPECT_EQ(pool_.reserved_bytes(), Mebibytes(10));
  EXPECT_EQ(pool_.stats().idle_bytes, Mebibytes(10));
  Allocation* taken = nullptr;
  EXPECT_THAT(CallsOf([&] { taken = ChunkFor(Mebibytes(10), *b_); }),
              ElementsAre(DeviceCall::kStreamWaitEvent));
  EXPECT_EQ(taken, chunk);
  EXPECT_EQ(pool_.stats().idle_bytes, 0U);
  pool_.DoFree(taken);
}

TEST_F(ChunkPoolTest, TheWaitIsOnTheNewUsersStream) {
  std::vector<CallRecord> calls;
  place_.device().SetCallObserver([&calls](const CallRecord& call) {
    if (call.stream_uid != 0 && IsEntryPoint(call.call)) calls.push_back(call);
  });
  pool_.Offer(Chunk(Mebibytes(10)), *a_);
  pool_.DoFree(ChunkFor(Mebibytes(10), *b_));
  place_.device().SetCallObserver(nullptr);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].call, DeviceCall::kEventRecord);
  EXPECT_EQ(calls[0].stream_uid, a_->stream().uid);
  EXPECT_EQ(calls[1].call, DeviceCall::kStreamWaitEvent);
  EXPECT_EQ(calls[1].stream_uid, b_->stream().uid);
}

TEST_F(ChunkPoolTest, TakesTheSmallestOfferOfAtMostTwiceTheSize) {
  for (const std::size_t mebibytes : {12U, 8U, 20U}) {
    pool_.Offer(Chunk(Mebibytes(mebibytes)), *a_);
  }
  Allocation* taken = ChunkFor(Mebibytes(7), *b_);
  EXPECT_EQ(taken->size(), Mebibytes(8));
  Allocation* exactly_twice = ChunkFor(Mebibytes(6), *b_);
  EXPECT_EQ(exactly_twice->size(), Mebibytes(12));
  Allocation* new_one = ChunkFor(Mebibytes(10) - 1, *b_);
  EXPECT_EQ(new_one->size(), Mebibytes(10) - 1);
  EXPECT_EQ(pool_.stats().idle_bytes, Mebibytes(20));
  for (Allocation* chunk : {taken, exactly_twice, new_one}) {
    pool_.DoFree(chunk);
  }
}

TEST_F(ChunkPoolTest, AnOddOfferOfMoreThanTwiceTheSizeIsNotTaken) {
  pool_.Offer(Chunk(2001), *a_);
  Allocation* chunk = ChunkFor(1000, *b_);
  EXPECT_EQ(chunk->size(), 1000U);
  pool_.DoFree(chunk);
}

TEST_F(ChunkPoolTest, ReleaseWaitsForTheEventsOfOffers) {
  pool_.Offer(Chunk(Mebibytes(10)), *a_);
  std::size_t given = 0;
  EXPECT_THAT(CallsOf([&] { given = pool_.Release(); }),
              ElementsAre(DeviceCall::kThreadExchangeCaptureMode,
                          DeviceCall::kEventSynchronize,
                          DeviceCall::kThreadExchangeCaptureMode,
                          DeviceCall::kMemFree));
  EXPECT_EQ(given, Mebibytes(10));
  EXPECT_EQ(pool_.Release(), 0U);
}

TEST_F(ChunkPoolTest, AnOfferOfARetiredStreamNeedsNoEvent) {
  ChainStream retired(place_.device(), place_.NewStream());
  retired.Retire();
  Allocation* chunk = Chunk(Mebibytes(10));
  EXPECT_THAT(CallsOf([&] { pool_.Offer(chunk, retired); }), ElementsAre());
  EXPECT_THAT(CallsOf([&] { chunk = ChunkFor(Mebibytes(10), *b_); }),
              ElementsAre());
  pool_.DoFree(chunk);
}

TEST_F(ChunkPoolTest, AnOfferWithoutAnEventIsTakenOnceItsStreamWasWaitedFor) {
  Allocation* chunk = Chunk(Mebibytes(10));
  place_.device().AddFault(FailAll(DeviceCall::kEventRecord));
  pool_.Offer(chunk, *a_);
  EXPECT_THAT(CallsOf([&] { chunk = ChunkFor(Mebibytes(10), *b_); }),
              ElementsAre(DeviceCall::kEventRecord, DeviceCall::kEventRecord,
                          DeviceCall::kStreamSynchronize));
  EXPECT_EQ(pool_.stats().chunks, 1U);
  pool_.DoFree(chunk);
}

TEST_F(ChunkPoolTest, AnOfferOfAStreamWithoutTimelineWaitsOnTheHost) {
  ChainStream unknown(place_.device(), place_.NewStream());
  EXPECT_THAT(
      CallsOf([&] { pool_.Offer(Chunk(Mebibytes(10)), unknown); }),
      ElementsAre(DeviceCall::kMemAlloc, DeviceCall::kStreamSynchronize));
  EXPECT_EQ(pool_.Release(), Mebibytes(10));
}

// cuda_semantics.md C16: a chunk offered by a capturing stream was lost,
// because neither an event nor a wait was possible.
TEST_F(ChunkPoolTest, AnOfferOfACapturingStreamIsKeptUntilTheCaptureIsOver) {
  CaptureGate& gate = place_.timelines()->gate();
  gate.Announce();
  ASSERT_EQ(
      place_.device().StreamBeginCapture(a_->stream(), CaptureMode::kRelaxed),
      Status::kSuccess);
  Allocation* offered = Chunk(Mebibytes(10));
  pool_.Offer(offered, *a_);
  Allocation* fresh = ChunkFor(Mebibytes(10), *b_);
  EXPECT_NE(fresh, offered);
  Graph graph;
  EXPECT_EQ(place_.device().StreamEndCapture(a_->stream(), &graph),
            Status::kSuccess);
  EXPECT_EQ(place_.device().GraphDestroy(graph), Status::kSuccess);
  gate.Withdraw();
  EXPECT_EQ(ChunkFor(Mebibytes(10), *b_), offered);
  pool_.DoFree(offered);
  pool_.DoFree(fresh);
}

// cuda_semantics.md M6: the memory was released to the system although its work
// might be pending.
TEST_F(ChunkPoolTest, ReleaseKeepsWhatCannotBeWaitedFor) {
  pool_.Offer(Chunk(Mebibytes(10)), *a_);
  for (const DeviceCall call :
       {DeviceCall::kEventSynchronize, DeviceCall::kStreamSynchronize,
        DeviceCall::kSynchronize}) {
    place_.device().AddFault(FailAll(call));
  }
  EXPECT_EQ(pool_.Release(), 0U);
  EXPECT_EQ(pool_.reserved_bytes(), Mebibytes(10));
  place_.device().ClearFaults();
  EXPECT_EQ(pool_.Release(), Mebibytes(10));
}

// No later request can use it.
TEST_F(ChunkPoolTest, CloseGivesWhatCannotBeWaitedFor) {
  pool_.Offer(Chunk(Mebibytes(10)), *a_);
  for (const DeviceCall call :
       {DeviceCall::kEventSynchronize, DeviceCall::kStreamSynchronize,
        DeviceCall::kSynchronize}) {
    place_.device().AddFault(FailAll(call));
  }
  pool_.Close();
  EXPECT_EQ(pool_.reserved_bytes(), 0U);
}

TEST_F(ChunkPoolTest, WaitsOnTheHostWhenTheNewUserCannotWait) {
  pool_.Offer(Chunk(Mebibytes(10)), *a_);
  place_.device().AddFault(FailAll(DeviceCall::kStreamWaitEvent));
  Allocation* chunk = nullptr;
  EXPECT_THAT(CallsOf([&] { chunk = ChunkFor(Mebibytes(10), *b_); }),
              ElementsAre(DeviceCall::kStreamWaitEvent,
                          DeviceCall::kThreadExchangeCaptureMode,
                          DeviceCall::kEventSynchronize,
                          DeviceCall::kThreadExchangeCaptureMode));
  pool_.DoFree(chunk);
}

TEST_F(ChunkPoolTest, KeepsAnOfferThatNobodyCanBeOrderedAfter) {
  pool_.Offer(Chunk(Mebibytes(10)), *a_);
  for (const DeviceCall call :
       {DeviceCall::kStreamWaitEvent, DeviceCall::kEventSynchronize,
        DeviceCall::kStreamSynchronize, DeviceCall::kSynchronize}) {
    place_.device().AddFault(FailAll(call));
  }
  Allocation* fresh = ChunkFor(Mebibytes(10), *b_);
  EXPECT_EQ(pool_.stats().idle_bytes, Mebibytes(10));
  EXPECT_EQ(pool_.stats().chunks, 2U);
  pool_.DoFree(fresh);
  place_.device().ClearFaults();
  EXPECT_EQ(pool_.Release(), Mebibytes(10));
}

TEST_F(ChunkPoolTest, TheLastOneOutGivesTheOffersBack) {
  {
    ChunkPool pool(place_.system(), 0, place_.reclaimer());
    Failure failure;
    pool.Offer(pool.TryAllocate(Request{Mebibytes(4)}, failure), *a_);
    EXPECT_EQ(place_.device().Leaks().allocations, 1U);
  }
  EXPECT_EQ(place_.device().Leaks().allocations, 0U);
  // Its steps are removed from the ladder too.
  Failure failure;
  failure.reason = Failure::Reason::kDeviceMemory;
  EXPECT_FALSE(
      place_.reclaimer()->Climb(Stream(), failure, [] { return false; }));
}

}  // namespace
}  // namespace strata
