// Many concurrent threads on one facade. Run it under the thread sanitizer.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

constexpr int kThreads = 8;

class FacadeThreadsTest : public FacadeFixture {
 protected:
  // Random calls of one thread. Counts the successful requests.
  void Work(unsigned seed, const std::vector<Stream>& streams) {
    std::mt19937 random(seed);
    const auto pick = [&](unsigned n) { return random() % n; };
    std::vector<AllocationPtr> held;
    for (int i = 0; i < 300; ++i) {
      const Stream stream = streams[pick(4)];
      const std::size_t bytes = std::size_t{1} << pick(20);
      try {
        switch (pick(5)) {
          case 0:
            held.push_back(facade().Alloc(kPlace, bytes, stream.handle));
            break;
          case 1:
            held.push_back(facade()
                               .GetAllocator(kPlace, stream)
                               .Allocate(Request{bytes, 4096}));
            break;
          default:
            held.push_back(facade().Alloc(kPlace, bytes, stream));
        }
        ++met_;
      } catch (const OutOfMemory&) {
        held.clear();
        continue;
      }
      if (pick(4) == 0) facade().RecordStream(held.back(), streams[pick(4)]);
      if (pick(8) == 0) facade().EraseStream(*held.back(), streams[pick(4)]);
      if (pick(2) == 0) {
        std::swap(held[pick(static_cast<unsigned>(held.size()))], held.back());
        held.pop_back();
      }
      if (pick(50) == 0) facade().Release(kPlace);
      if (pick(50) == 0) CheckStats();
    }
  }

  void CheckStats() {
    const Stats stats = facade().GetStats(kPlace);
    EXPECT_LE(stats.reserved_bytes, kMemoryBytes);
    EXPECT_FALSE(facade().StatsJson().empty());
  }

  // Creates and destroys streams. Their memory outlives them.
  void ComeAndGo() {
    std::vector<AllocationPtr> held;
    for (int i = 0; i < 50; ++i) {
      Stream stream;
      ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
      try {
        held.push_back(facade().Alloc(kPlace, 5000, stream.handle));
        ++met_;
        facade().RecordStream(held.back(), stream);
      } catch (const OutOfMemory&) {
        held.clear();
      }
      facade().StreamDestroyed(stream);
      ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
      if (i % 3 == 0) held.clear();
    }
  }

  std::atomic<std::uint64_t> met_{0};
};

TEST_F(FacadeThreadsTest, AllCallsAtOnceKeepTheBooks) {
  Build("strata_exact_peak");
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, &streams] { Work(i, streams); });
  }
  threads.emplace_back([this] { ComeAndGo(); });
  for (std::thread& thread : threads) thread.join();

  const Stats stats = facade().GetStats(kPlace);
  EXPECT_EQ(stats.allocations, met_);
  EXPECT_EQ(stats.frees, met_);
  EXPECT_EQ(stats.in_use_bytes, 0U);
  EXPECT_EQ(stats.requested_bytes, 0U);
  facade().Release(kPlace);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
  EXPECT_EQ(device().Leaks().allocations, 0U);
}

// While a thread releases memory to the system, the memory is neither idle nor
// free.
TEST_F(FacadeThreadsTest, ARequestWaitsForAReleaseByAnotherThread) {
  for (const std::string strategy : {"auto_growth", "virtual_memory"}) {
    SCOPED_TRACE(strategy);
    Build("gpu_allocator_retry_time=0,allocator_strategy=" + strategy);
    const Stream stream = NewStream();
    facade().Alloc(kPlace, Mebibytes(40), NewStream()).reset();
    std::atomic<bool> is_releasing{false};
    std::atomic<bool> is_over{false};
    device().SetCallObserver([&](const CallRecord& call) {
      if ((call.call != DeviceCall::kMemFree &&
           call.call != DeviceCall::kUnmapRange) ||
          is_releasing.exchange(true)) {
        return;
      }
      // Long enough for the request to fail, if it does not wait.
      for (int i = 0; i < 100000 && !is_over; ++i) std::this_thread::yield();
    });
    std::thread releasing([&] { facade().Release(kPlace); });
    while (!is_releasing) std::this_thread::yield();
    Failure failure;
    EXPECT_NE(
        facade().TryAlloc(kPlace, Request{Mebibytes(50)}, stream, failure),
        nullptr)
        << failure.ToString();
    is_over = true;
    releasing.join();
    device().SetCallObserver(nullptr);
  }
}

// Each thread owns the lock of its stream while it hits. One thread reads the
// statistics and another one frees blocks of the owners; both revoke the
// ownership.
TEST_F(FacadeThreadsTest, OwnersOfLocksLoseNothingToOthers) {
  Build("strata_stream_lock=biased");
  constexpr std::size_t kOwners = 2;
  constexpr std::uint64_t kRounds = 40;
  constexpr std::uint64_t kPairs =
      200;  // enough for a thread to become an owner
  std::array<std::mutex, kOwners> mutexes;
  std::array<AllocationPtr, kOwners> handed;  // guarded by mutexes
  std::atomic<bool> is_over{false};
  std::vector<std::thread> owners;
  for (std::size_t i = 0; i < kOwners; ++i) {
    const Stream stream = NewStream();
    owners.emplace_back([this, i, stream, &mutexes, &handed] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
          facade().Alloc(kPlace, 1000, stream).reset();
        }
        AllocationPtr next = facade().Alloc(kPlace, 1000, stream);
        const std::lock_guard<std::mutex> guard(mutexes[i]);
        std::swap(handed[i], next);
      }
    });
  }
  std::thread other([&] {
    while (!is_over.load()) {
      for (std::size_t i = 0; i < kOwners; ++i) {
        AllocationPtr taken;
        const std::lock_guard<std::mutex> guard(mutexes[i]);
        std::swap(handed[i], taken);
      }
      CheckStats();
      std::this_thread::yield();
    }
  });
  for (std::thread& owner : owners) owner.join();
  is_over.store(true);
  other.join();
  for (AllocationPtr& block : handed) block.reset();
  const Stats stats = facade().GetStats(kPlace);
  EXPECT_EQ(stats.allocations, kOwners * kRounds * (kPairs + 1));
  EXPECT_EQ(stats.frees, stats.allocations);
  EXPECT_EQ(stats.in_use_bytes, 0U);
}

// paddle.md §5 B13: two threads that first used a stream at once each built its
// layers.
TEST_F(FacadeThreadsTest, ThreadsThatMeetANewStreamGetTheSameChain) {
  for (int round = 0; round < 50; ++round) {
    if (round == 0) Build();
    if (round == 25) Build("allocator_strategy=cuda_malloc_async");
    const Stream stream = NewStream();
    std::atomic<bool> go{false};
    std::vector<Allocator*> seen(4);
    std::vector<std::thread> threads;
    for (Allocator*& mine : seen) {
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        mine = facade().Alloc(kPlace, 100, stream.handle)->owner();
      });
    }
    go = true;
    for (std::thread& thread : threads) thread.join();
    for (Allocator* one : seen) EXPECT_EQ(one, seen[0]);
  }
}

TEST_F(FacadeThreadsTest, NumbersCanBeReadWhileStreamsEnd) {
  Build();
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const Stats stats = facade().GetStats(kPlace);
      EXPECT_LE(stats.frees, stats.allocations);
      facade().LargestStreamPeak(kPlace);
      facade().ResetPeak(kPlace);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const Stream stream = NewStream();
    AllocationPtr held = facade().Alloc(kPlace, 100, stream);
    facade().StreamDestroyed(stream);
    Destroy(stream);
    held.reset();
  }
  stop = true;
  reader.join();
  EXPECT_EQ(facade().GetStats(kPlace).allocations, 300U);
  EXPECT_EQ(facade().GetStats(kPlace).frees, 300U);
}

}  // namespace
}  // namespace strata
