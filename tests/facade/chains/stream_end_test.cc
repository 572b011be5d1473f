// The end of a stream does not wait for any work. The only exception is
// `direct`, when it releases memory to the system.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

// Work completes when the host waits for it.
class StreamEndFixture : public FacadeFixture {
 protected:
  StreamEndFixture() : FacadeFixture(1, "lazy") {}

  void BuildStrategy(const std::string& name) {
    Build("allocator_strategy=" + name);
    ending_ = NewStream();
    other_ = NewStream();
  }
  AllocationPtr Alloc(std::size_t bytes, Stream stream) {
    return facade().Alloc(kPlace, bytes, stream);
  }
  void Work(Stream stream, const AllocationPtr& on) {
    ASSERT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(on->data()), 1,
                                   64, stream),
              Status::kSuccess);
    ASSERT_TRUE(IsBusy(stream));
  }
  bool IsBusy(Stream stream) {
    return device().StreamQuery(stream) == Status::kNotReady;
  }

  Stream ending_;
  Stream other_;
};

class StreamEndTest : public StreamEndFixture,
                      public testing::WithParamInterface<const char*> {
 protected:
  void BuildStrategy() { StreamEndFixture::BuildStrategy(GetParam()); }
};

TEST_P(StreamEndTest, OfOneThatIsIdleWaitsForNoFreeOfOthers) {
  BuildStrategy();
  Alloc(Mebibytes(12), ending_).reset();
  AllocationPtr marked = Alloc(Mebibytes(3), ending_);
  AllocationPtr of_other = Alloc(Mebibytes(3), other_);
  Work(other_, marked);
  facade().RecordStream(marked, other_);
  marked.reset();
  of_other.reset();
  facade().StreamDestroyed(ending_);
  EXPECT_TRUE(IsBusy(other_));
  Destroy(ending_);
}

TEST_P(StreamEndTest, OfOneThatIsIdleWaitsForNoneThatHasWhatItLent) {
  BuildStrategy();
  const AllocationPtr used = Alloc(Mebibytes(9), ending_);
  {
    const AllocationPtr borrowed = Alloc(Mebibytes(4), other_);
    Work(other_, borrowed);
  }
  facade().StreamDestroyed(ending_);
  EXPECT_TRUE(IsBusy(other_));
  Destroy(ending_);
}

TEST_P(StreamEndTest, OfOneThatWorksDoesNotWaitForIt) {
  BuildStrategy();
  const AllocationPtr used = Alloc(Mebibytes(9), other_);
  {
    const AllocationPtr borrowed = Alloc(Mebibytes(4), ending_);
    const AllocationPtr own = Alloc(Mebibytes(12), ending_);
    Work(ending_, borrowed);
  }
  facade().StreamDestroyed(ending_);
  EXPECT_TRUE(IsBusy(ending_));
  Destroy(ending_);
}

// Its chain ends with it.
TEST_P(StreamEndTest, TheLastFreeAfterItDoesNotWaitEither) {
  BuildStrategy();
  AllocationPtr last = Alloc(Mebibytes(12), ending_);
  Work(ending_, last);
  facade().StreamDestroyed(ending_);
  last.reset();
  EXPECT_TRUE(IsBusy(ending_));
  facade().Release(kPlace);
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 0U);
  // Only shared state may have kept it.
  EXPECT_NE(Alloc(Mebibytes(50), other_), nullptr);
  Destroy(ending_);
}

TEST_P(StreamEndTest, OfOneThatWorksAndHasLentDoesNotWaitForIt) {
  BuildStrategy();
  AllocationPtr used = Alloc(Mebibytes(9), ending_);
  const AllocationPtr borrowed = Alloc(Mebibytes(4), other_);
  Work(ending_, used);
  used.reset();
  facade().StreamDestroyed(ending_);
  ASSERT_TRUE(IsBusy(ending_));
  ASSERT_EQ(device().StreamSynchronize(ending_), Status::kSuccess);
  Destroy(ending_);
  // Other streams can use the rest of the chunk behind that work. `pool` does
  // not split the chunk.
  const std::size_t reserved = facade().GetStats(kPlace).reserved_bytes;
  const AllocationPtr rest = Alloc(Mebibytes(8), other_);
  if (std::string(GetParam()) != "pool") {
    EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, reserved);
  }
}

class StreamEndLoansTest : public StreamEndFixture {
 protected:
  std::size_t Reserved() { return facade().GetStats(kPlace).reserved_bytes; }
};

TEST_F(StreamEndLoansTest, WhatItBorrowedComesBackOnceItsWorkIsDone) {
  BuildStrategy("auto_growth,auto_growth_chunk_size_in_mb=20");
  AllocationPtr used = Alloc(Mebibytes(9), other_);
  AllocationPtr borrowed = Alloc(Mebibytes(8), ending_);
  ASSERT_EQ(borrowed->base(), used->base());
  Work(ending_, borrowed);
  borrowed.reset();
  facade().StreamDestroyed(ending_);
  ASSERT_EQ(device().StreamSynchronize(ending_), Status::kSuccess);
  Destroy(ending_);
  const std::size_t reserved = Reserved();
  Alloc(Mebibytes(10), other_).reset();  // the lender would have to grow
  EXPECT_EQ(Reserved(), reserved);
  used.reset();
  facade().Release(kPlace);
  EXPECT_EQ(Reserved(), 0U);
}

// Likewise, if no request needed it and everything is released at once.
TEST_F(StreamEndLoansTest, ReleaseTakesBackWhatItBorrowedFirst) {
  BuildStrategy("auto_growth");
  AllocationPtr used = Alloc(Mebibytes(9), other_);
  AllocationPtr borrowed = Alloc(Mebibytes(8), ending_);
  Work(ending_, borrowed);
  borrowed.reset();
  facade().StreamDestroyed(ending_);
  used.reset();
  facade().Release(kPlace);
  EXPECT_EQ(Reserved(), 0U);
  Destroy(ending_);
}

// Also a stream that borrowed from an ended stream.
TEST_F(StreamEndLoansTest, ReleaseGivesWhatTheLenderLeaves) {
  BuildStrategy("auto_growth");
  const Stream third = NewStream();
  AllocationPtr used = Alloc(Mebibytes(9), other_);
  AllocationPtr borrowed = Alloc(Mebibytes(8), ending_);
  Work(ending_, borrowed);
  Work(other_, used);
  borrowed.reset();
  used.reset();
  facade().StreamDestroyed(other_);
  facade().StreamDestroyed(ending_);
  EXPECT_TRUE(IsBusy(ending_));
  Alloc(100, third).reset();
  const std::size_t reserved = Reserved();
  EXPECT_EQ(facade().Release(kPlace), reserved);
  EXPECT_EQ(Reserved(), 0U);
  Destroy(other_);
  Destroy(ending_);
}

// A thread that uses a new stream queries the destroyed streams. It holds
// nothing that other threads need.
TEST_P(StreamEndTest, MemoryOfItsPendingFreesServesALargeRequest) {
  BuildStrategy();
  AllocationPtr freed = Alloc(Mebibytes(40), ending_);
  Work(ending_, freed);
  freed.reset();
  facade().StreamDestroyed(ending_);
  Destroy(ending_);
  EXPECT_NE(Alloc(Mebibytes(50), other_), nullptr);
}

TEST_P(StreamEndTest, AskingForItHoldsUpNoOtherThread) {
  BuildStrategy();
  AllocationPtr used = Alloc(Mebibytes(3), ending_);
  Work(ending_, used);
  used.reset();
  facade().StreamDestroyed(ending_);
  Destroy(ending_);
  const Stream third = NewStream();
  const Stream fourth = NewStream();
  std::atomic<bool> has_asked{false};
  std::future<void> beside;
  bool went_on = true;
  device().SetCallObserver([&](const CallRecord& call) {
    if (call.call != DeviceCall::kEventQuery || has_asked.exchange(true)) {
      return;
    }
    beside = std::async(std::launch::async, [&] { Alloc(1000, fourth); });
    went_on =
        beside.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  });
  Alloc(1000, third).reset();
  device().SetCallObserver(nullptr);
  if (beside.valid()) beside.get();
  EXPECT_TRUE(went_on);
}

// No later call could release it.
TEST_F(StreamEndLoansTest, TheEndOfTheFacadeGivesBackWhatIsIdle) {
  BuildStrategy("auto_growth");
  const AllocationPtr live = Alloc(Mebibytes(1), other_);
  const std::size_t reserved = Reserved();
  AllocationPtr last = Alloc(Mebibytes(12), ending_);
  AllocationPtr idle = Alloc(Mebibytes(14), ending_);
  Work(ending_, idle);
  Work(ending_, last);
  idle.reset();
  facade().StreamDestroyed(ending_);
  facade_.reset();
  last.reset();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
  EXPECT_EQ(total_bytes - free_bytes, reserved);
  Destroy(ending_);
}

INSTANTIATE_TEST_SUITE_P(Strategies, StreamEndTest,
                         testing::Values("auto_growth", "bfc",
                                         "cuda_malloc_async", "naive_best_fit",
                                         "pool", "thread_local"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace strata
