// The facade, its streams, its allocations and its threads end in any order.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/platform/calls/call_record.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class FacadeShutdownTest : public FacadeFixture {};

TEST_F(FacadeShutdownTest, AllocationsOutliveTheFacade) {
  Build();
  const Stream stream = NewStream();
  const Stream other = NewStream();
  std::vector<AllocationPtr> held;
  for (const Place place : facade().places()) {
    held.push_back(facade().Alloc(place, 1000));
    held.push_back(facade().Alloc(place, Mebibytes(2)));
    held.push_back(facade().Alloc(place, 0));
    facade().RecordStream(held.front(), other);
  }
  held.push_back(facade().Alloc(kPlace, 1000, stream));
  facade_.reset();
  EXPECT_GT(device().Leaks().memory_blocks, 0U);
  held.clear();
  EXPECT_EQ(device().Leaks().memory_blocks, 0U);
  EXPECT_EQ(device().Leaks().allocations, 0U);
}

// A block that outlives the facade keeps its own chunk, and no idle memory.
TEST_F(FacadeShutdownTest, IdleMemoryReturnsBesideABlockThatLivesOn) {
  for (const std::string strategy :
       {"auto_growth", "virtual_memory", "pool", "bfc"}) {
    SCOPED_TRACE(strategy);
    Build("allocator_strategy=" + strategy);
    const AllocationPtr live = facade().Alloc(kPlace, 256);
    facade().Alloc(kPlace, Mebibytes(40)).reset();
    facade_.reset();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
    EXPECT_GE(free_bytes, kMemoryBytes / 2);
  }
}

TEST_F(FacadeShutdownTest, AllocationsKeepAPlatformOfTheirOwnAlive) {
  AllocationPtr held;
  {
    AllocatorFacade own(
        Options::Parse("strata_platform=sim,strata_sim_memory=16MiB"));
    held = own.Alloc(kPlace, 1000);
  }
  EXPECT_GE(held->size(), 1000U);
  held.reset();  // the last user; the platform ends with it
}

TEST_F(FacadeShutdownTest, NothingIsLeftWhenTheLastAllocationIsGone) {
  Build();
  AllocationPtr first = facade().Alloc(kPlace, 1000);
  AllocationPtr second = facade().Alloc(kPlace, 1000, NewStream());
  facade_.reset();
  first.reset();
  EXPECT_GT(platform_.use_count(), 1);
  second.reset();
  EXPECT_EQ(platform_.use_count(), 1);
}

// The thread that frees the last allocation must not end the chain while
// another thread is still in its layers, after its allocation was discounted.
TEST_F(FacadeShutdownTest, AChainLastsUntilEveryFreeIsDoneWithIt) {
  for (const std::string options : {"strata_stat=true", "strata_stat=false"}) {
    SCOPED_TRACE(options);
    Build("allocator_strategy=direct," + options);
    AllocationPtr slow = facade().Alloc(kPlace, 1000);
    AllocationPtr last = facade().Alloc(kPlace, 1000);
    facade_.reset();
    std::atomic<bool> is_inside{false};
    std::atomic<bool> may_go_on{false};
    device().SetCallObserver([&](const CallRecord& call) {
      if (call.call != DeviceCall::kMemFree || is_inside.exchange(true)) return;
      while (!may_go_on) std::this_thread::yield();
    });
    std::thread freeing([&] { slow.reset(); });
    while (!is_inside) std::this_thread::yield();
    last.reset();
    EXPECT_GT(platform_.use_count(), 1);
    may_go_on = true;
    freeing.join();
    device().SetCallObserver(nullptr);
    EXPECT_EQ(platform_.use_count(), 1);
  }
}

TEST_F(FacadeShutdownTest, AStreamMayEndBeforeTheFacadeAndTheFacadeBeforeIt) {
  Build();
  const Stream early = NewStream();
  const Stream late = NewStream();
  AllocationPtr of_early = facade().Alloc(kPlace, 1000, early);
  AllocationPtr of_late = facade().Alloc(kPlace, 1000, late);
  facade().RecordStream(of_late, device().LegacyStream());
  facade().StreamDestroyed(early);
  Destroy(early);
  facade_.reset();
  const CallLog log(device());
  of_early.reset();
  of_late.reset();
  EXPECT_EQ(log.Failed(), 0U);
}

// An earlier fault: a deferred free kept the shared strategy alive, and thus
// itself. At the end, memory leaked if it could not be waited for.
TEST_F(FacadeShutdownTest, WhatCannotBeWaitedForGoesBackAtTheEnd) {
  for (const std::string& strategy : StrategyNames()) {
    SCOPED_TRACE(strategy);
    Build("allocator_strategy=" + strategy);
    const Stream own = NewStream();
    const Stream other = NewStream();
    AllocationPtr kept = facade().Alloc(kPlace, 1000, other);
    AllocationPtr marked = facade().Alloc(kPlace, Mebibytes(2), own);
    AllocationPtr deferred = facade().Alloc(kPlace, Mebibytes(2), own);
    EXPECT_TRUE(facade().RecordStream(marked, other));
    marked.reset();
    deferred.reset();
    kept.reset();
    for (const DeviceCall call :
         {DeviceCall::kStreamSynchronize, DeviceCall::kEventSynchronize,
          DeviceCall::kEventRecord, DeviceCall::kSynchronize}) {
      device().AddFault(FailAll(call));
    }
    facade_.reset();
    device().ClearFaults();
    EXPECT_EQ(LeakedAllocations(device()), 0U);
    EXPECT_EQ(platform_.use_count(), 1);
  }
}

TEST_F(FacadeShutdownTest, CallbacksAreGoneWithTheFacade) {
  auto used = std::make_shared<int>(0);
  Build();
  const auto callback = facade().AddOutOfMemoryCallback(
      kPlace, [used](Place, std::size_t) { return 0; });
  const AllocationPtr held = facade().Alloc(kPlace, 1000);
  facade_.reset();
  EXPECT_EQ(used.use_count(), 1);
}

TEST_F(FacadeShutdownTest, ThreadsMayFreeWhileTheFacadeEnds) {
  for (int round = 0; round < 20; ++round) {
    Build();
    constexpr int kThreads = 4;
    const Stream streams[] = {NewStream(), NewStream()};
    std::vector<std::vector<AllocationPtr>> held(kThreads);
    for (std::size_t i = 0; i < kThreads; ++i) {
      for (std::size_t j = 0; j < 50; ++j) {
        held[i].push_back(
            facade().Alloc(kPlace, 100 + j * 1000, streams[j % 2]));
        if (j % 8 == 0) {
          facade().RecordStream(held[i].back(), streams[(j + 1) % 2]);
        }
      }
    }
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (std::vector<AllocationPtr>& mine : held) {
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        mine.clear();
      });
    }
    go = true;
    facade_.reset();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(device().Leaks().allocations, 0U);
    ASSERT_EQ(platform_.use_count(), 1);
  }
}

}  // namespace
}  // namespace strata
