// One pool per thread: paddle.md §3.4 rule 11, and the pools of threads that
// have exited.

#include "strata/strategy/thread_local/thread_local_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

StrategyOptions Chunks(std::uint64_t mebibytes) {
  StrategyOptions options;
  options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = mebibytes;
  options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = mebibytes;
  return options;
}

// A thread that runs jobs on request until it is destroyed.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    Do(nullptr);
    thread_.join();
  }
  // Returns when the job is complete; null ends the thread.
  void Do(std::function<void()> job) {
    std::unique_lock<std::mutex> lock(mutex_);
    job_ = std::move(job);
    has_job_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !has_job_; });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool more = true; more;) {
      changed_.wait(lock, [this] { return has_job_; });
      more = job_ != nullptr;
      if (more) job_();
      has_job_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  bool has_job_ = false;
  std::thread thread_{[this] { Run(); }};
};

void OnNewThread(const std::function<void()>& job) { std::thread(job).join(); }

class ThreadLocalTest : public ::testing::Test {
 protected:
  void Use(std::uint64_t memory_mib, std::uint64_t chunk_mib) {
    PoolPlaceOptions options;
    options.memory_bytes = Mebibytes(memory_mib);
    place_ = std::make_unique<PoolPlace>(options);
    Build(chunk_mib);
  }
  void Build(std::uint64_t chunk_mib) {
    local_ = std::make_unique<ThreadLocalAllocator>(
        place_->pool(), place_->NewChainStream(), Chunks(chunk_mib));
  }
  AllocationPtr Get(std::size_t bytes) { return local_->Allocate(bytes); }
  std::uint64_t Growths() const {
    return place_->device().CallCount(DeviceCall::kMemAlloc);
  }
  std::uint64_t InUse() const { return local_->stats().in_use_bytes; }

  std::unique_ptr<PoolPlace> place_;
  std::unique_ptr<ThreadLocalAllocator> local_;
};

TEST_F(ThreadLocalTest, Rule11EachThreadHasAPoolOfItsOwn) {
  Use(64, 4);
  const AllocationPtr mine = Get(1000);
  Worker worker;
  AllocationPtr theirs;
  worker.Do([&] { theirs = Get(1000); });
  EXPECT_NE(mine->base(), theirs->base());
  EXPECT_EQ(local_->pool_count(), 2U);
  const AllocationPtr more = Get(1000);
  EXPECT_EQ(more->base(), mine->base());
  EXPECT_EQ(Growths(), 2U);
  theirs.reset();
}

TEST_F(ThreadLocalTest, Rule11TwoAllocatorsHaveTwoPoolsPerThread) {
  Use(64, 4);
  std::vector<std::unique_ptr<ThreadLocalAllocator>> others;
  std::vector<AllocationPtr> live;
  // More than a thread remembers without a search.
  for (int i = 0; i < 9; ++i) {
    others.push_back(std::make_unique<ThreadLocalAllocator>(
        place_->pool(), place_->NewChainStream(), Chunks(1)));
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& other : others) live.push_back(other->Allocate(1000));
  }
  for (const auto& other : others) EXPECT_EQ(other->pool_count(), 1U);
  EXPECT_EQ(Growths(), 9U);
  live.clear();
}

TEST_F(ThreadLocalTest, Rule11AFreeByAnotherThreadGoesToTheOriginsPool) {
  Use(64, 4);
  AllocationPtr mine = Get(Mebibytes(4));
  const void* address = mine->data();
  Worker worker;
  worker.Do([&] {
    mine.reset();
    // It does not belong to the thread that freed it.
    const AllocationPtr theirs = Get(Mebibytes(4));
    EXPECT_NE(theirs->data(), address);
  });
  EXPECT_EQ(Growths(), 2U);
  EXPECT_EQ(InUse(), 0U);
  mine = Get(Mebibytes(4));
  EXPECT_EQ(mine->data(), address);
  EXPECT_EQ(Growths(), 2U);
}

// The owner drains frees of other threads at its next request, without a
// notification.
TEST_F(ThreadLocalTest, Rule11FreesByOthersServeTheOwnersNextRequest) {
  Use(64, 4);
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 4; ++i) live.push_back(Get(Mebibytes(1)));
  OnNewThread([&] { live.clear(); });
  const AllocationPtr all = Get(Mebibytes(4));
  EXPECT_EQ(Growths(), 1U);
}

TEST_F(ThreadLocalTest, Rule11APoolOutlivesItsThreadWhileBlocksLive) {
  Use(64, 4);
  AllocationPtr theirs;
  OnNewThread([&] { theirs = Get(1000); });
  EXPECT_EQ(InUse(), 1024U);
  EXPECT_EQ(place_->device().MemsetAsync(
                reinterpret_cast<DevicePtr>(theirs->data()), 1, theirs->size(),
                place_->device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(local_->Release(), 0U);
  theirs.reset();
  EXPECT_EQ(local_->Release(), Mebibytes(4));
}

TEST_F(ThreadLocalTest, ANewThreadAdoptsThePoolOfOneThatExited) {
  Use(64, 4);
  const void* address = nullptr;
  OnNewThread([&] { address = Get(1000)->data(); });
  OnNewThread([&] { EXPECT_EQ(Get(1000)->data(), address); });
  EXPECT_EQ(local_->pool_count(), 1U);
  // Also with a live block of the former owner in it.
  AllocationPtr left;
  OnNewThread([&] { left = Get(1000); });
  OnNewThread([&] {
    const AllocationPtr next = Get(1000);
    EXPECT_EQ(next->base(), left->base());
  });
  for (int i = 0; i < 20; ++i) OnNewThread([&] { Get(1000).reset(); });
  EXPECT_EQ(local_->pool_count(), 1U);
  EXPECT_EQ(Growths(), 1U);
}

// The original's Release covers only the pool of the calling thread.
TEST_F(ThreadLocalTest, Rule11ReleaseReachesThePoolsOfAllThreads) {
  Use(64, 4);
  Get(1000).reset();
  Worker alive;
  AllocationPtr freed_elsewhere;
  alive.Do([&] { freed_elsewhere = Get(1000); });
  freed_elsewhere.reset();  // waits in the list of an idle thread
  Worker other;
  other.Do([&] { Get(1000).reset(); });
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(12));
  EXPECT_EQ(local_->Release(), Mebibytes(12));
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

TEST_F(ThreadLocalTest, ExhaustionTakesTheIdleChunksOfExitedThreads) {
  Use(64, 20);
  AllocationPtr keeps_mine = Get(1000);
  OnNewThread([&] { Get(1000).reset(); });
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(40));
  const AllocationPtr large = Get(Mebibytes(40));
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(60));
}

TEST_F(ThreadLocalTest, ExhaustionTakesInWhatOthersFreed) {
  Use(32, 16);
  Worker owner;
  AllocationPtr theirs;
  AllocationPtr keeps_their_chunk;
  owner.Do([&] {
    theirs = Get(Mebibytes(12));
    keeps_their_chunk = Get(1000);
  });
  const AllocationPtr mine = Get(Mebibytes(15));
  theirs.reset();
  // The owner never returns. Its chunk is not idle, but has room.
  const AllocationPtr more = Get(Mebibytes(12));
  EXPECT_EQ(more->base(), keeps_their_chunk->base());
  Failure failure;
  EXPECT_EQ(local_->AllocateOrNull(Request{Mebibytes(12)}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.in_use_bytes, Mebibytes(27) + 1024);
  EXPECT_EQ(failure.largest_free_bytes, Mebibytes(4) - 1024);
}

TEST_F(ThreadLocalTest, NoGrowthServesFromAnyPool) {
  Use(64, 4);
  AllocationPtr theirs;
  Worker worker;
  worker.Do([&] { theirs = Get(1000); });
  const AllocationPtr mine = local_->Allocate(Request{1000, 0, kNoGrowth});
  EXPECT_EQ(mine->base(), theirs->base());
  EXPECT_EQ(Growths(), 1U);
}

TEST_F(ThreadLocalTest, HugeBlocksBelongToNoThread) {
  Use(64, 4);
  AllocationPtr huge = Get(Mebibytes(9));
  EXPECT_EQ(local_->huge_count(), 1U);
  OnNewThread([&] { huge.reset(); });
  EXPECT_EQ(local_->huge_count(), 0U);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

// A thread exits after the destruction of the allocator: there is no pool to
// release to.
TEST_F(ThreadLocalTest, AThreadMayOutliveTheAllocator) {
  Use(64, 4);
  Worker worker;
  worker.Do([&] { Get(1000).reset(); });
  local_.reset();
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
  // A new allocator has new pools, whatever the thread remembers.
  Build(4);
  worker.Do([&] { Get(1000).reset(); });
  EXPECT_EQ(local_->pool_count(), 1U);
}

// Actions of a thread after the destruction of its list of pools.
struct FreesAndAllocatesAtExit {
  ThreadLocalAllocator* local = nullptr;
  AllocationPtr held;
  std::atomic<std::size_t>* served = nullptr;

  FreesAndAllocatesAtExit() = default;
  FreesAndAllocatesAtExit(const FreesAndAllocatesAtExit&) = delete;
  FreesAndAllocatesAtExit& operator=(const FreesAndAllocatesAtExit&) = delete;
  ~FreesAndAllocatesAtExit() {
    if (local == nullptr) return;
    held.reset();
    Failure failure;
    for (int i = 0; i < 3; ++i) {
      if (local->AllocateOrNull(Request{1000}, failure) != nullptr) ++*served;
    }
  }
};

TEST_F(ThreadLocalTest, AThreadPastItsEndMayStillAllocateAndFree) {
  Use(64, 4);
  std::atomic<std::size_t> served{0};
  OnNewThread([&] {
    // Created before the list of pools, so destroyed after it.
    thread_local FreesAndAllocatesAtExit at_exit;
    at_exit.served = &served;
    at_exit.held = Get(1000);
    at_exit.local = local_.get();
  });
  EXPECT_EQ(served, 3U);
  EXPECT_EQ(InUse(), 0U);
  EXPECT_EQ(local_->pool_count(), 1U);
}

TEST_F(ThreadLocalTest, ThreadsAndAllocatorMayEndTogether) {
  Use(64, 1);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> used{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        Get(1000).reset();
        ++used;
      });
    }
    while (used != 3) std::this_thread::yield();
    // The threads are about to exit.
    local_.reset();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
    Build(1);
  }
}

// Blocks that are passed between short-lived threads.
TEST_F(ThreadLocalTest, BlocksChangeHandsBetweenThreads) {
  Use(128, 1);
  LiveRanges ranges;
  std::mutex mutex;
  std::vector<AllocationPtr> mailbox;
  const auto work = [&](unsigned seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 300; ++i) {
      AllocationPtr got;
      if (random() % 2 == 0) {
        const std::lock_guard<std::mutex> guard(mutex);
        if (!mailbox.empty()) {
          std::swap(mailbox[random() % mailbox.size()], mailbox.back());
          got = std::move(mailbox.back());
          mailbox.pop_back();
        }
      }
      if (got != nullptr) {
        EXPECT_TRUE(ranges.Remove(*got));
        continue;
      }
      if (random() % 64 == 0) local_->Release();
      const std::size_t bytes = 1 + random() % (1U << (4 + random() % 17));
      got = Get(bytes);
      ASSERT_TRUE(ranges.Add(*got));
      const std::lock_guard<std::mutex> guard(mutex);
      mailbox.push_back(std::move(got));
    }
  };
  for (unsigned generation = 0; generation < 5; ++generation) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.emplace_back(work, generation * 4 + i);
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_LE(local_->pool_count(), 4U) << "pools are adopted, not added";
  EXPECT_EQ(InUse(), ranges.bytes());
  mailbox.clear();
  EXPECT_EQ(InUse(), 0U);
  EXPECT_TRUE(local_->IsConsistent());
  local_->Release();
  EXPECT_EQ(place_->device().Leaks().allocations, 0U);
}

// Fault B8: exhaustion raised an error that was never caught.
TEST_F(ThreadLocalTest, B8ExhaustionIsOutOfMemory) {
  Use(16, 4);
  const AllocationPtr mine = Get(Mebibytes(4));
  EXPECT_THROW(Get(Mebibytes(14)), OutOfMemory);
  OnNewThread([&] { EXPECT_THROW(Get(Mebibytes(14)), OutOfMemory); });
  EXPECT_EQ(InUse(), Mebibytes(4));
}

using ThreadLocalDeathTest = ThreadLocalTest;

TEST_F(ThreadLocalDeathTest, FreeingTwiceFromAnotherThreadIsNoticed) {
  Use(64, 4);
  Allocation* twice = Get(4096).release();
  OnNewThread([&] { AllocationPtr(twice).reset(); });
  EXPECT_DEATH(AllocationPtr(twice).reset(),
               "double free of 0x[0-9a-f]+ \\(4.0 KiB on device:0\\), which is "
               "on its way back to its pool");
}

}  // namespace
}  // namespace strata
