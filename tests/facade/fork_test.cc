// Processes that fork while other threads are inside calls. A child may create
// its own facade, and the state shared in the process is consistent in it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/reclaim/thread_census.h"
#include "strata/allocation/record_slab.h"
#include "strata/facade/allocator_facade.h"

namespace strata {
namespace {

constexpr unsigned kSecondsToHang = 30;

// Threads that do not exist in the child may hold locks of the sanitizer's
//   heap.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasForkSafeHeap = false;
#elif defined(__has_feature)
constexpr bool kHasForkSafeHeap =
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kHasForkSafeHeap = true;
#endif

// Creates a facade and uses it. Memory is not locked: a failed lock is logged,
// and a thread of the parent may hold the lock of glog.
bool Works(const std::string& strategy) {
  AllocatorFacade facade(Options::Parse(
      "strata_platform=sim,strata_sim_memory=64MiB,allocator_strategy=" +
      strategy + ",use_pinned_memory=false,strata_host_strategy=" + strategy));
  for (const Place place : {DevicePlace(0), HostPlace()}) {
    std::array<AllocationPtr, 8> live;
    for (std::size_t i = 0; i < 64; ++i) {
      live[i % live.size()] = facade.Alloc(place, 1000 * i + 1);
      if (live[i % live.size()] == nullptr) return false;
    }
  }
  return true;
}

// The result of `body` in a child process; false if the child does not return.
template <class Body>
bool InForkedChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsToHang);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ForkTest : public ::testing::Test {
 protected:
  // Calls `body` repeatedly in new threads until the end of the test.
  template <class Body>
  void Keep(int threads, Body body) {
    for (int i = 0; i < threads; ++i) {
      busy_.emplace_back([this, body] {
        while (!is_over_.load()) body();
      });
    }
  }
  ~ForkTest() override {
    is_over_ = true;
    for (std::thread& thread : busy_) thread.join();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> busy_;
};

class StrategyForkTest : public ForkTest,
                         public ::testing::WithParamInterface<const char*> {};

TEST_P(StrategyForkTest, AChildOfABusyProcessMakesAFacadeOfItsOwn) {
  if (!kHasForkSafeHeap) GTEST_SKIP() << "the heap of a sanitizer";
  const std::string strategy = GetParam();
  ASSERT_TRUE(Works(strategy));
  Keep(2, [strategy] { EXPECT_TRUE(Works(strategy)); });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(InForkedChild([&] { return Works(strategy); })) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, StrategyForkTest,
                         ::testing::Values("auto_growth", "pool", "direct"),
                         [](const auto& info) { return info.param; });

// The locks themselves, each held nearly all the time.
TEST_F(ForkTest, AChildFindsTheRecordsOfTheProcessFree) {
  Keep(2, [] {
    RecordSlab::List list;
    for (int i = 0; i < 100; ++i)
      RecordSlab::Instance().FillFromStock(list, 64);
    RecordSlab::Instance().Drain(list);
  });
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(InForkedChild([] {
      Block* const record = RecordSlab::Instance().Take();
      if (record == nullptr) return false;
      RecordSlab::Instance().Give(record);
      return true;
    })) << i;
  }
}

// A thread that does not exist in the child frees nothing there.
TEST_F(ForkTest, AChildWaitsForNoThreadOfItsParent) {
  ThreadCensus& census = ThreadCensus::Instance();
  const std::uint64_t place = census.AddPlace();
  const auto has_hope = [&] {
    ThreadCensus::Waiter waiter;
    waiter.place = place;
    const std::lock_guard<std::mutex> guard(census.mutex());
    if (!census.Block(waiter)) return false;
    ThreadCensus::Unblock(waiter);
    return true;
  };
  std::atomic<bool> is_counted{false};
  ThreadCensus::Count(place);
  Keep(1, [&is_counted, place] {
    ThreadCensus::Count(place);
    is_counted = true;
  });
  while (!is_counted.load()) std::this_thread::yield();
  EXPECT_TRUE(has_hope());
  EXPECT_TRUE(InForkedChild([&] { return !has_hope(); }));
  EXPECT_TRUE(has_hope());
  census.RemovePlace(place);
}

}  // namespace
}  // namespace strata
