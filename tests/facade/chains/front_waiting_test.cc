// Frees that wait at the lock of a front because another thread holds or owns
// it.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/diagnostics/debug_fill.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/hit/remote_frees.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/manual_clock.h"

namespace strata {
namespace {

// Long enough for another running thread to reach a lock.
void YieldOften() {
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
}

class FrontWaitingTest : public FacadeFixture {
 protected:
  void BuildStreams(const std::string& options = "") {
    facade_ =
        std::make_unique<AllocatorFacade>(Parsed(options), platform_, clock_);
    stream_ = NewStream();
    other_ = NewStream();
  }
  // While the result lives, a Freer does not borrow memory from the stream. Nor
  // does it lock the stream to raise the peak of the place.
  AllocationPtr UseOther() {
    const AllocationPtr used[] = {Alloc(3000),
                                  facade().Alloc(kPlace, 100, other_)};
    return facade().Alloc(kPlace, 100, other_);
  }

  Front& front() {
    return static_cast<Front&>(facade().GetAllocator(kPlace, stream_));
  }
  ChainLock& lock() { return *front().hit_path()->hit_lock(); }
  // Whether a contended free may be queued.
  bool IsOpen() { return IsOpen(stream_); }
  bool IsOpen(Stream stream) {
    ChainLock& lock =
        *static_cast<Front&>(facade().GetAllocator(kPlace, stream))
             .hit_path()
             ->hit_lock();
    const std::lock_guard<ChainLock> guard(lock);
    return lock.is_open();
  }
  AllocationPtr Alloc(std::size_t bytes) {
    return facade().Alloc(kPlace, bytes, stream_);
  }

  // A thread that is known to free memory. It runs `body` after a call of Go.
  class Freer {
   public:
    template <class Body>
    Freer(FrontWaitingTest& test, Body body)
        : thread_([this, &test, body = std::move(body)] {
            test.facade().Alloc(kPlace, 100, test.other_).reset();
            is_known_.count_down();
            go_.wait();
            body();
          }) {
      is_known_.wait();
    }
    void Go() { go_.count_down(); }
    void Join() { thread_.join(); }

   private:
    std::latch is_known_{1};
    std::latch go_{1};
    std::thread thread_;
  };

  // Frees the allocations in another thread while this one holds the lock. The
  // thread queues the frees and ends without a wait.
  void Leave(std::vector<AllocationPtr> allocations) {
    Freer freer(*this, [&] { allocations.clear(); });
    const std::lock_guard<ChainLock> guard(lock());
    freer.Go();
    freer.Join();
    EXPECT_TRUE(lock().has_waiting());
  }
  void Leave(AllocationPtr allocation) {
    std::vector<AllocationPtr> allocations;
    allocations.push_back(std::move(allocation));
    Leave(std::move(allocations));
  }

  ManualClock clock_;
  Stream stream_;
  Stream other_;
};

TEST_F(FrontWaitingTest, AFreeDoesNotWaitForWhoHasTheLock) {
  BuildStreams();
  Leave(Alloc(1000));
  // A query drains the queued free.
  EXPECT_EQ(front().stats().in_use_bytes, 0U);
  EXPECT_FALSE(lock().has_waiting());
}

// A completed free is never part of a peak.
TEST_F(FrontWaitingTest, RequestsTakeInWhatWaits) {
  for (const std::size_t bytes :
       {std::size_t{1000}, std::size_t{100000}, Mebibytes(3)}) {
    BuildStreams();
    for (int i = 0; i < 4; ++i) Alloc(bytes).reset();
    AllocationPtr first = Alloc(bytes);
    void* const address = first->data();
    const std::uint64_t peak = front().stats().peak_in_use_bytes;
    Leave(std::move(first));
    const AllocationPtr second = Alloc(bytes);
    EXPECT_EQ(second->data(), address);
    EXPECT_EQ(front().stats().peak_in_use_bytes, peak);
  }
}

// A hit looks only at the front cache.
TEST_F(FrontWaitingTest, AHitTakesInNothing) {
  BuildStreams();
  const AllocationPtr other = UseOther();
  for (int i = 0; i < 4; ++i) Alloc(1000).reset();
  AllocationPtr left = Alloc(1000);
  void* const address = left->data();
  Alloc(1000).reset();  // one block is in the cache
  Leave(std::move(left));
  const AllocationPtr hit = Alloc(1000);
  EXPECT_NE(hit->data(), address);
  EXPECT_TRUE(lock().has_waiting());
  const AllocationPtr miss = Alloc(1000);
  EXPECT_EQ(miss->data(), address);
  EXPECT_FALSE(lock().has_waiting());
}

// Unless it would reach a new peak.
TEST_F(FrontWaitingTest, NoPeakCountsWhatWaits) {
  BuildStreams();
  const AllocationPtr other = UseOther();
  for (int i = 0; i < 4; ++i) Alloc(1000).reset();
  AllocationPtr first = Alloc(1000);
  const AllocationPtr second = Alloc(1000);
  Alloc(1000).reset();  // one block is in the cache
  facade().ResetPeak(kPlace);
  EXPECT_FALSE(front().state().counts.is_beyond_limit());
  Leave(std::move(first));
  const AllocationPtr hit = Alloc(1000);
  EXPECT_FALSE(lock().has_waiting());
  EXPECT_EQ(front().stats().peak_in_use_bytes, 2048U);
  const AllocationPtr higher = Alloc(1000);
  EXPECT_EQ(front().stats().peak_in_use_bytes, 3072U);
}

// A full queue: the next free waits for the lock, and drains all queued frees.
TEST_F(FrontWaitingTest, AFreeThatFindsTheQueueFullDrainsIt) {
  BuildStreams();
  bool is_drained = false;
  // If the last free begins too late, it finds the lock free and drains none.
  for (int attempt = 0; attempt < 20 && !is_drained; ++attempt) {
    std::vector<AllocationPtr> held;
    for (std::size_t i = 0; i <= RemoteFrees::kMost; ++i) {
      held.push_back(Alloc(1000));
    }
    std::latch is_full(1);
    Freer freer(*this, [&] {
      while (held.size() > 1) held.pop_back();
      is_full.count_down();
      held.pop_back();
    });
    {
      const std::lock_guard<ChainLock> guard(lock());
      freer.Go();
      is_full.wait();
      EXPECT_TRUE(lock().has_waiting());
      YieldOften();
    }
    freer.Join();
    is_drained = !lock().has_waiting();
    EXPECT_EQ(front().stats().in_use_bytes, 0U);
  }
  EXPECT_TRUE(is_drained);
}

TEST_F(FrontWaitingTest, AFreeThatFindsTheLockFreeTakesIt) {
  BuildStreams("strata_stream_lock=word");
  AllocationPtr held = Alloc(1000);
  Leave(Alloc(1000));
  Alloc(Mebibytes(3)).reset();  // drains the queued frees
  Freer freer(*this, [&] { held.reset(); });
  freer.Go();
  freer.Join();
  EXPECT_FALSE(lock().has_waiting());
  EXPECT_EQ(front().stats().in_use_bytes, 0U);
}

// The owner keeps the lock.
TEST_F(FrontWaitingTest, AFreeOfAnotherThreadRemovesNoOwner) {
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  BuildStreams("strata_stream_lock=biased");
  const AllocationPtr other = UseOther();
  for (int i = 0; i < 100; ++i) Alloc(1000).reset();
  AllocationPtr held = Alloc(1000);
  Freer freer(*this, [&] { held.reset(); });
  freer.Go();
  freer.Join();
  EXPECT_TRUE(lock().has_waiting());
  ASSERT_TRUE(lock().try_lock());  // only its owner can
  lock().unlock();
  EXPECT_EQ(front().stats().in_use_bytes, 0U);
}

// The layers must see the frees.
TEST_F(FrontWaitingTest, NoneIsLeftWhileACaptureIsAnnounced) {
  if (!ProcessBarrier::Instance().is_available()) {
    GTEST_SKIP() << "no thread can own a lock here";
  }
  // The free finds the lock owned by this thread.
  BuildStreams("strata_stream_lock=biased");
  const AllocationPtr other = UseOther();
  for (int i = 0; i < 100; ++i) Alloc(1000).reset();
  AllocationPtr held = Alloc(1000);
  Freer freer(*this, [&] { held.reset(); });
  const CaptureGuard capture(facade(), stream_);
  freer.Go();
  freer.Join();
  EXPECT_FALSE(lock().has_waiting());
  EXPECT_EQ(front().stats().in_use_bytes, 0U);
}

TEST_F(FrontWaitingTest, NoneIsLeftThatIsToBeFilled) {
  BuildStreams();
  const DebugFill fill(&device(), static_cast<unsigned char>(7), false);
  front().set_debug_fill(&fill);
  EXPECT_FALSE(IsOpen());
  front().set_debug_fill(nullptr);
}

TEST_F(FrontWaitingTest, CountsAsOtherFrees) {
  BuildStreams();
  const Stats before = front().stats();
  std::vector<AllocationPtr> allocations;
  for (std::size_t i = 1; i <= 40; ++i) allocations.push_back(Alloc(1000 * i));
  Leave(std::move(allocations));
  const Stats after = front().stats();
  EXPECT_EQ(after.frees, before.frees + 40);
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(after.requested_bytes, before.requested_bytes);
}

TEST_F(FrontWaitingTest, ReleaseGivesBackWhatWaits) {
  BuildStreams();
  facade().Release(kPlace);
  Leave(Alloc(Mebibytes(12)));
  EXPECT_GE(facade().Release(kPlace), Mebibytes(12));
}

using FrontWaitingDeathTest = FrontWaitingTest;

TEST_F(FrontWaitingDeathTest, ASecondFreeIsFoundWhileTheFirstWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        BuildStreams();
        AllocationPtr allocation = Alloc(1000);
        AllocationPtr again(allocation.get());
        Freer freer(*this, [&] {
          allocation.reset();
          again.reset();
        });
        const std::lock_guard<ChainLock> guard(lock());
        freer.Go();
        freer.Join();
      },
      "double free");
}

// The end of a stream drains the queued frees, and its chain ends with the last
// free.
TEST_F(FrontWaitingTest, TheEndOfAStreamTakesInWhatWaits) {
  BuildStreams();
  AllocationPtr last = Alloc(1000);
  Leave(Alloc(1000));
  facade().StreamDestroyed(stream_);
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 1024U);
  std::thread([&] { last.reset(); }).join();
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 0U);
}

// A queued free is memory that another request may use.
TEST_F(FrontWaitingTest, ARequestOfAnotherStreamGetsWhatWaits) {
  BuildStreams("gpu_allocator_retry_time=0");
  Leave(Alloc(Mebibytes(40)));
  EXPECT_NE(facade().Alloc(kPlace, Mebibytes(40), NewStream()), nullptr);
}

// A free that is queued at a lock would wake no waiter.
TEST_F(FrontWaitingTest, AFreeThatSomebodyWaitsForIsNotLeft) {
  BuildStreams();
  AllocationPtr held = Alloc(Mebibytes(40));
  AllocationPtr result;
  std::promise<void> ended;
  const Stream third = NewStream();
  std::thread waiter([&] {
    Failure failure;
    result = facade().TryAlloc(kPlace, Request{Mebibytes(40)}, third, failure);
    ended.set_value();
  });
  clock_.AwaitWaiters(1);
  EXPECT_FALSE(IsOpen());
  Freer freer(*this, [&] { held.reset(); });
  {
    const std::lock_guard<ChainLock> guard(lock());
    freer.Go();
    YieldOften();
  }
  freer.Join();
  EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);   // the free has woken it
  clock_.Advance(std::chrono::hours(1));  // ends the wait
  waiter.join();
  EXPECT_NE(result, nullptr);
}

// The chain of a stream may be built while a request waits.
TEST_F(FrontWaitingTest, NoneIsLeftAtAChainThatIsBuiltDuringAWait) {
  BuildStreams();
  AllocationPtr held = Alloc(Mebibytes(40));
  EXPECT_TRUE(IsOpen());
  AllocationPtr result;
  const Stream third = NewStream();
  const Stream late = NewStream();
  const Stream last = NewStream();
  std::thread waiter([&] {
    Failure failure;
    result = facade().TryAlloc(kPlace, Request{Mebibytes(40)}, third, failure);
  });
  clock_.AwaitWaiters(1);
  EXPECT_FALSE(IsOpen(late));
  held.reset();
  waiter.join();
  EXPECT_NE(result, nullptr);
  EXPECT_TRUE(IsOpen(last));
}

// A thread that frees under the lock of its chain may have seen no waiter. Then
// the waiter must find the freed blocks, including deferred blocks of a
// busy stream.
TEST_F(FrontWaitingTest, AFreeThatSawNobodyWaitIsFoundByWhoeverDoes) {
  for (const char* options : {"", "allocator_strategy=bfc"}) {
    facade_ =
        std::make_unique<AllocatorFacade>(Parsed(options), platform_, clock_);
    stream_ = NewStream();
    other_ = NewStream();
    const Stream third = NewStream();
    facade().Alloc(kPlace, 100, third).reset();
    Freer other_thread(*this, [] {});
    Allocation* const held = Alloc(Mebibytes(40)).release();
    const std::uint64_t waits = clock_.waits();
    AllocationPtr result;
    std::atomic<bool> has_ended{false};
    std::thread waiter;
    {
      const std::lock_guard<ChainLock> guard(lock());
      waiter = std::thread([&] {
        Failure failure;
        result =
            facade().TryAlloc(kPlace, Request{Mebibytes(40)}, third, failure);
        has_ended = true;
      });
      // By now it sleeps, unless it waits for the lock.
      for (int i = 0; i < 20 && clock_.waits() == waits; ++i) YieldOften();
      front().state().counts.Uncount(*held->block());
      ASSERT_TRUE(front().hit_path()->Give(held->block()));
    }
    while (clock_.waits() == waits && !has_ended) std::this_thread::yield();
    EXPECT_EQ(clock_.waits(), waits) << options;
    clock_.Advance(std::chrono::hours(1));  // ends the wait
    waiter.join();
    EXPECT_NE(result, nullptr) << options;
    other_thread.Go();
    other_thread.Join();
    result.reset();
    facade_.reset();
  }
}

}  // namespace
}  // namespace strata
