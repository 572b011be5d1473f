// Requests that wait for memory, through the whole chain.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "strata/facade/graphs/capture_guard.h"
#include "strata/tests/facade/facade_retry_fixture.h"

namespace strata {
namespace {

using testing::HasSubstr;
using testing::Not;

// paddle.md §3.5-6
TEST_F(FacadeRetryTest, FourThreadsShareADeviceThatHasRoomForOne) {
  BuildWithClock();
  constexpr std::size_t kThreads = 4;
  std::array<void*, kThreads> addresses{};
  std::atomic<std::size_t> to_come{kThreads};
  std::latch all_ended(kThreads);
  std::vector<std::thread> threads;
  for (void*& address : addresses) {
    threads.emplace_back([&] {
      AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes - 1);
      address = held->data();
      clock_.AwaitWaiters(--to_come);
      held.reset();
      all_ended.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(addresses, testing::Each(addresses[0]));
  EXPECT_NE(addresses[0], nullptr);
}

// The waiting request gets a block that the front cache would keep.
TEST_F(FacadeRetryTest, AFreeThatWouldBeKeptWholeWakes) {
  BuildWithClock("gpu_memory_limit_mb=8,strata_front_cache=speed");
  constexpr std::size_t kBytes = Mebibytes(4);
  const Stream stream = device().LegacyStream();
  for (int i = 0; i < 20; ++i) facade().Alloc(kPlace, kBytes, stream).reset();
  AllocationPtr first = facade().Alloc(kPlace, kBytes, stream);
  const AllocationPtr second = facade().Alloc(kPlace, kBytes, stream);
  Waiting waiting(*this, kBytes, stream);
  first.reset();
  EXPECT_TRUE(waiting.Ends());
  clock_.Advance(std::chrono::hours(1));  // ends the wait
  EXPECT_NE(waiting.Get(), nullptr);
}

// paddle.md §5-B7: only frees of the same stream were noticed.
TEST_F(FacadeRetryTest, AFreeOnAnotherStreamWakes) {
  for (const char* options :
       {"", "free_idle_chunk", "allocator_strategy=direct", "strata_stat=0",
        "strata_in_use_limit=64MiB", "gpu_memory_limit_mb=50",
        "strata_guard"}) {
    SCOPED_TRACE(options);
    BuildWithClock(options);
    AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40), NewStream());
    Waiting waiting(*this, Mebibytes(40), NewStream());
    held.reset();
    EXPECT_NE(waiting.Get(), nullptr);
  }
}

// Its layers have a separate ladder, but share the budget of the place.
TEST_F(FacadeRetryTest, AFreeOfWhatACaptureAllocatedWakes) {
  BuildWithClock("strata_in_use_limit=8MiB");
  const Stream captured = NewStream();
  facade().Wrap(captured.handle, 0);
  CaptureGuard guard(facade(), captured);
  AllocationPtr held = facade().Alloc(kPlace, Mebibytes(6), captured);
  const Graph graph = guard.End();
  {
    Waiting waiting(*this, Mebibytes(4), NewStream());
    held.reset();
    EXPECT_TRUE(waiting.Ends());
    clock_.Advance(std::chrono::hours(1));  // ends the wait
    EXPECT_NE(waiting.Get(), nullptr);
  }
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  // The device reports it at its next call, and the facade checks at its next
  // pool.
  std::size_t bytes = 0;
  EXPECT_EQ(device().MemGetInfo(&bytes, &bytes), Status::kSuccess);
  facade().RemoveMemoryPoolOfCUDAGraph(
      facade().PrepareMemoryPoolForCUDAGraph());
}

TEST_F(FacadeRetryTest, TheEndOfAnExportWakes) {
  BuildWithClock("allocator_strategy=virtual_memory,gpu_memory_limit_mb=48");
  AllocationPtr block = facade().Alloc(kPlace, Mebibytes(32));
  ExportedMemory exported = facade().Export(*block);
  // Keeps memory in use, so that the request has a reason to wait.
  const AllocationPtr other = facade().Alloc(kPlace, Mebibytes(2));
  block.reset();
  Waiting waiting(*this, Mebibytes(40), NewStream());
  exported.Close();
  EXPECT_TRUE(waiting.Ends());
  clock_.Advance(std::chrono::hours(1));  // ends the wait
  EXPECT_NE(waiting.Get(), nullptr);
}

TEST_F(FacadeRetryTest, APartOfAChunkWakesItsOwnStream) {
  BuildWithClock("allocator_strategy=auto_growth,gpu_memory_limit_mb=15");
  AllocationPtr first = facade().Alloc(kPlace, Mebibytes(5));
  AllocationPtr rest = facade().Alloc(kPlace, Mebibytes(10));
  Waiting waiting(*this, Mebibytes(5), facade().GetDefaultStream(kPlace));
  first.reset();
  EXPECT_NE(waiting.Get(), nullptr);
}

TEST_F(FacadeRetryTest, SaysHowLongItWaited) {
  BuildWithClock("gpu_allocator_retry_time=2500");
  const AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  Waiting waiting(*this, 100, NewStream());
  clock_.Advance(std::chrono::milliseconds(2500));
  EXPECT_EQ(waiting.Get(), nullptr);
  EXPECT_THAT(waiting.failure().ToString(), HasSubstr("waited 2500 ms"));
}

// tf_bfc.md R45: the wait time of requests, met or not.
TEST_F(FacadeRetryTest, StatisticsSayHowOftenAndHowLongRequestsWaited) {
  BuildWithClock();
  const auto stats = [this] {
    return nlohmann::json::parse(facade().StatsJson());
  };
  AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  Waiting met(*this, 100, NewStream());
  clock_.Advance(std::chrono::milliseconds(1500));
  EXPECT_EQ(stats()["device:0"]["retry_waits"], 0);
  held.reset();
  EXPECT_NE(met.Get(), nullptr);
  EXPECT_EQ(stats()["device:0"]["retry_waits"], 1);
  EXPECT_EQ(stats()["device:0"]["retry_waited_us"], 1'500'000);
  held = facade().Alloc(kPlace, kMemoryBytes);
  Waiting refused(*this, 100, NewStream());
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(refused.Get(), nullptr);
  EXPECT_EQ(stats()["device:0"]["retry_waits"], 2);
  EXPECT_EQ(stats()["device:0"]["retry_waited_us"], 11'500'000);
  EXPECT_EQ(stats()["pinned:0"]["retry_waits"], 0);
}

// paddle.md §5-B7
TEST_F(FacadeRetryTest, AProgramOfOneThreadFailsAtOnce) {
  BuildWithClock();
  const AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  EXPECT_THAT(FailAtOnce(100, NewStream()).ToString(),
              Not(HasSubstr("waited")));
}

TEST_F(FacadeRetryTest, AThreadThatUsesAnotherPlaceIsNotWaitedFor) {
  BuildWithClock();
  const AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
  BesideAnotherThread(PinnedPlace(0), [&] { FailAtOnce(100, NewStream()); });
}

TEST_F(FacadeRetryTest, AThreadThatOnlyFreesIsKnown) {
  BuildWithClock();
  AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes - Mebibytes(10));
  AllocationPtr small = facade().Alloc(kPlace, 100);
  std::latch freed(1);
  std::latch free_more(1);
  std::thread consumer([&] {
    small.reset();
    freed.count_down();
    clock_.AwaitWaiters(1);
    held.reset();
    free_more.wait();
  });
  freed.wait();
  EXPECT_NE(facade().Alloc(kPlace, kMemoryBytes), nullptr);
  free_more.count_down();
  consumer.join();
}

// A hit bypasses all code that would register the thread.
TEST_F(FacadeRetryTest, AThreadWhoseOnlyRequestIsAHitIsKnown) {
  BuildWithClock();
  // The front cache keeps the last block for the next request of its size.
  for (int i = 0; i < 4; ++i) facade().Alloc(kPlace, 1000).reset();
  AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes - Mebibytes(10));
  std::latch allocated(1);
  std::latch free_more(1);
  std::thread consumer([&] {
    AllocationPtr hit = facade().Alloc(kPlace, 1000);
    allocated.count_down();
    clock_.AwaitWaiters(1);
    hit.reset();
    held.reset();
    free_more.wait();
  });
  allocated.wait();
  EXPECT_NE(facade().Alloc(kPlace, kMemoryBytes), nullptr);
  free_more.count_down();
  consumer.join();
}

// tf_bfc.md R46: such a request waited until the timeout.
TEST_F(FacadeRetryTest, ARequestAboveALimitDoesNotWait) {
  for (const char* options :
       {"", "gpu_memory_limit_mb=50", "strata_in_use_limit=50MiB"}) {
    SCOPED_TRACE(options);
    BuildWithClock(options);
    const AllocationPtr held = facade().Alloc(kPlace, Mebibytes(30));
    const std::size_t most = options[0] == '\0' ? kMemoryBytes : Mebibytes(50);
    BesideAnotherThread(kPlace, [&] { FailAtOnce(most + 1, NewStream()); });
  }
}

TEST_F(FacadeRetryTest, WithNothingInUseThereIsNothingToWaitFor) {
  BuildWithClock("allocator_strategy=auto_growth");
  facade().Alloc(kPlace, Mebibytes(10)).reset();  // idle, not in use
  FaultRule rule;
  rule.call = DeviceCall::kMemAlloc;
  BesideAnotherThread(kPlace, [&] {
    device().AddFault(rule);
    FailAtOnce(Mebibytes(20), NewStream());
    device().ClearFaults();
  });
}

// paddle.md §5-B6: with a time of 0, only the default stream worked.
TEST_F(FacadeRetryTest, ATimeOfZeroWorksOnEveryStream) {
  BuildWithClock("gpu_allocator_retry_time=0");
  const Stream stream = NewStream();
  for (const Stream on : {facade().GetDefaultStream(kPlace), stream}) {
    EXPECT_NE(facade().Alloc(kPlace, 100, on), nullptr);
  }
  EXPECT_THAT(facade().Layers(kPlace), Not(testing::Contains("retry")));
  EXPECT_EQ(facade().GetStats(kPlace).allocations, 2U);
  BesideAnotherThread(kPlace, [&] {
    const AllocationPtr held = facade().Alloc(kPlace, kMemoryBytes);
    FailAtOnce(100, stream);
  });
}

TEST_F(FacadeRetryTest, AStreamMayEndWhileOthersWait) {
  BuildWithClock();
  const Stream stream = NewStream();
  AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40), stream);
  Waiting waiting(*this, Mebibytes(40), NewStream());
  facade().StreamDestroyed(stream);
  held.reset();  // the last block of its chain, which ends with it
  EXPECT_NE(waiting.Get(), nullptr);
}

// The free was deferred because its stream could not be queried. No later free
// will wake the waiters, so the drain of the deferred free wakes them.
TEST_F(FacadeRetryTest, ADeferredFreeThatIsTakenInWakes) {
  BuildWithClock();
  const Stream owner = NewStream();
  const Stream user = NewStream();
  const AllocationPtr kept = facade().Alloc(kPlace, Mebibytes(10), NewStream());
  AllocationPtr held = facade().Alloc(kPlace, Mebibytes(40), owner);
  facade().RecordStream(held, user);
  for (const DeviceCall call :
       {DeviceCall::kEventRecord, DeviceCall::kStreamQuery,
        DeviceCall::kStreamSynchronize, DeviceCall::kSynchronize}) {
    FaultRule rule;
    rule.call = call;
    rule.status = Status::kUnknown;
    device().AddFault(rule);
  }
  held.reset();
  // Less than the drained block: the other request may borrow a part of it.
  Waiting waiting(*this, Mebibytes(20), NewStream());
  device().ClearFaults();
  // Misses, and serves its own request. It releases nothing.
  const AllocationPtr other = facade().Alloc(kPlace, Mebibytes(1), NewStream());
  EXPECT_NE(other, nullptr);
  EXPECT_NE(waiting.Get(), nullptr);
}

// A graph kept the block, so the free itself was too early to wake a waiter.
TEST_F(FacadeRetryTest, AFreeThatAGraphHadKeptWakes) {
  BuildWithClock();
  const Stream stream = NewStream();
  const AllocationPtr kept = facade().Alloc(kPlace, Mebibytes(10), NewStream());
  AllocationPtr eager = facade().Alloc(kPlace, Mebibytes(40), stream);
  Graph graph;
  {
    CaptureGuard guard(facade(), stream);
    eager.reset();
    graph = guard.End();
  }
  Waiting waiting(*this, Mebibytes(40), NewStream());
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  device().MemGetInfo(&free_bytes,
                      &total_bytes);  // reports the end of the graph
  facade().RemoveMemoryPoolOfCUDAGraph(
      facade().PrepareMemoryPoolForCUDAGraph());  // notices it
  EXPECT_TRUE(waiting.Ends());
  clock_.Advance(std::chrono::hours(1));  // ends the wait
  EXPECT_NE(waiting.Get(), nullptr);
}

// ---- Out-of-memory callbacks.

}  // namespace
}  // namespace strata
