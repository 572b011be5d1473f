// The cache of freed blocks of cuda_malloc_async: the requests that it serves,
// and the frees to the driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_cache_fixture.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class CudaMallocAsyncCacheTest : public CudaMallocAsyncCacheFixture {};

TEST_F(CudaMallocAsyncCacheTest, ASizeThatComesAgainMakesNoCall) {
  const Chain chain = Start();
  void* const kept = KeepOne(chain, 1024);
  StartLog();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(chain->Allocate(1000)->data(), kept);
  EXPECT_TRUE(log_.empty());
  // Another size is not in it.
  chain->Allocate(1025).reset();
  EXPECT_THAT(
      LoggedWork(),
      ElementsAre(Pair(DeviceCall::kMallocFromPoolAsync, chain.stream().uid),
                  Pair(DeviceCall::kFreeAsync, chain.stream().uid)));
}

TEST_F(CudaMallocAsyncCacheTest, OffIsACallForEach) {
  options_.Edit<FrontCacheOptions>().front_cache = "off";
  const Chain chain = Start();
  EXPECT_EQ(chain->hit_path(), nullptr);
  StartLog();
  for (int i = 0; i < 10; ++i) chain->Allocate(1000).reset();
  EXPECT_EQ(CallsOf(DeviceCall::kMallocFromPoolAsync).size(), 10U);
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 10U);
}

// Captures would not be detected.
TEST_F(CudaMallocAsyncCacheTest, WithoutATimelineNothingIsKept) {
  setting_.knows_captures = false;
  const Chain chain = Start();
  EXPECT_EQ(chain->hit_path(), nullptr);
  StartLog();
  for (int i = 0; i < 10; ++i) chain->Allocate(1000).reset();
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 10U);
}

TEST_F(CudaMallocAsyncCacheTest, WhatIsKeptIsTheStreamsOwn) {
  const Chain chain = Start();
  const Chain other = NewChain();
  KeepOne(chain, 1024);
  Failure failure;
  const Request held{1024, 0, kNoGrowth};
  EXPECT_EQ(other->AllocateOrNull(held, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(KeptIn(chain), 1024U);
}

TEST_F(CudaMallocAsyncCacheTest, AMarkedBlockIsNotKept) {
  const Chain chain = Start();
  std::vector<AllocationPtr> blocks = Admit(chain, 1024);
  StartLog();
  FreeMarked(std::move(blocks[0]), marker_);
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 1U);
  // Nor after a free by the hit path, which declines.
  AllocationPtr erased = std::move(blocks[1]);
  chain->RecordStream(erased.get(), marker_);
  chain->EraseStream(erased.get(), marker_);
  erased.reset();
  EXPECT_EQ(KeptIn(chain), 1024U);
}

TEST_F(CudaMallocAsyncCacheTest, CountsWhatItsCallersHold) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  const Stats before = chain->stats();
  EXPECT_EQ(before.in_use_bytes, 0U);
  EXPECT_EQ(before.requested_bytes, 0U);
  EXPECT_EQ(before.live_allocations(), 0U);
  EXPECT_TRUE(pool_->market().IsUnused());
  AllocationPtr hit = chain->Allocate(900);
  Stats stats = chain->stats();
  EXPECT_EQ(stats.in_use_bytes, 1024U);
  EXPECT_EQ(stats.requested_bytes, 900U);
  EXPECT_EQ(stats.total_requested_bytes, before.total_requested_bytes + 900);
  EXPECT_EQ(stats.live_allocations(), 1U);
  EXPECT_EQ(stats.cache_hits, before.cache_hits + 1);
  EXPECT_EQ(stats.cache_hits + stats.cache_misses, stats.allocations);
  EXPECT_FALSE(pool_->market().IsUnused());
  hit.reset();
  stats = chain->stats();
  EXPECT_EQ(stats.requested_bytes, 0U);
  EXPECT_EQ(stats.frees, before.frees + 1);
}

// 1/256 of the chain's memory, or 128 KiB; 512 KiB of the first 8 MiB.
TEST_F(CudaMallocAsyncCacheTest, KeepsAShareOfWhatTheChainHas) {
  const Chain chain = Start();
  std::vector<AllocationPtr> blocks = Admit(chain, Kibibytes(64), 16);
  blocks.clear();
  EXPECT_EQ(KeptIn(chain), Kibibytes(512));
  AllocationPtr large = chain->Allocate(Mebibytes(56));
  EXPECT_EQ(KeptIn(chain), 0U);
  Admit(chain, Kibibytes(64), 16).clear();
  EXPECT_EQ(KeptIn(chain), Kibibytes(192));  // of 224
  StartLog();
  large.reset();
  EXPECT_EQ(KeptIn(chain), Kibibytes(192)) << "of 512";
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 1U);
}

TEST_F(CudaMallocAsyncCacheTest, WhatIsTooMuchWhenTheRestIsFreedGoesToo) {
  const Chain chain = Start();
  AllocationPtr rest = chain->Allocate(Mebibytes(20));
  AllocationPtr large = chain->Allocate(Mebibytes(30));
  Admit(chain, Kibibytes(64), 16).clear();
  EXPECT_EQ(KeptIn(chain), Kibibytes(192));
  StartLog();
  large.reset();
  EXPECT_EQ(KeptIn(chain), 0U) << "128 KiB may be kept";
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 4U);
}

TEST_F(CudaMallocAsyncCacheTest, SizesThatAreNotUsedAreGivenUp) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  std::vector<AllocationPtr> others =
      Admit(chain, 256, 2 * FrontCache::kSweep + 1);
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncCacheTest, ReleaseGivesItBack) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  StartLog();
  EXPECT_EQ(chain->Release(), Mebibytes(32));
  const auto frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_EQ(frees[0].stream_uid, chain.stream().uid);
  EXPECT_EQ(pool_->reserved_bytes(), 0U);
}

// Cached blocks are claimed.
TEST_F(CudaMallocAsyncCacheTest, IsEmptiedBeforeTheLimitRefuses) {
  setting_.limit_bytes = Mebibytes(32);
  const Chain chain = Start();
  const AllocationPtr rest = chain->Allocate(Mebibytes(31));
  Admit(chain, Kibibytes(64)).clear();
  ASSERT_EQ(KeptIn(chain), Kibibytes(128));
  Request request{Kibibytes(960)};
  request.flags = kNoRetry;
  Failure failure;
  EXPECT_NE(chain->AllocateOrNull(request, failure), nullptr);
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncCacheTest, IsEmptiedBeforeTheDriverRefuses) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  Fail(DeviceCall::kMallocFromPoolAsync, 1);
  const Request request{Kibibytes(100), 0, kNoRetry};
  Failure failure;
  EXPECT_NE(chain->AllocateOrNull(request, failure), nullptr);
  EXPECT_EQ(KeptIn(chain), 0U);
}

// The cache of another stream is claimed, although the driver does not need it.
TEST_F(CudaMallocAsyncCacheTest, ARequestThatCannotBeMetCostsNothingOfIt) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  EXPECT_ANY_THROW(chain->Allocate(Gibibytes(1)));
  EXPECT_ANY_THROW(NewChain()->Allocate(Gibibytes(1)));
  EXPECT_EQ(KeptIn(chain), 1024U);
}

TEST_F(CudaMallocAsyncCacheTest, AShortageOfOtherStreamsReachesIt) {
  setting_.limit_bytes = Mebibytes(32);
  const Chain chain = Start();
  const Chain other = NewChain();
  Admit(other, Kibibytes(64), 8).clear();
  ASSERT_EQ(KeptIn(other), Kibibytes(512));
  const AllocationPtr rest = chain->Allocate(Mebibytes(32) - Kibibytes(768));
  EXPECT_EQ(KeptIn(other), Kibibytes(512));
  StartLog();
  const AllocationPtr last = chain->Allocate(Kibibytes(500));
  EXPECT_EQ(KeptIn(other), 0U);
  // Before the steps that wait.
  EXPECT_EQ(CallsOf(DeviceCall::kPoolTrimTo).size(), 0U);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamSynchronize).size(), 0U);
}

// A cached block counts as in use only until a query.
TEST_F(CudaMallocAsyncCacheTest, IsEmptiedBeforeAWaitForWhatIsPending) {
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.5;
  setting_.progress = "manual";
  const Chain chain = Start();
  const AllocationPtr live = chain->Allocate(Mebibytes(16) - Kibibytes(192));
  FreeMarked(chain->Allocate(Mebibytes(16)), marker_);
  Admit(chain, Kibibytes(64), 4).clear();
  ASSERT_EQ(KeptIn(chain), Kibibytes(128));
  AllocationPtr between = chain->Allocate(Kibibytes(65));
  StartLog();
  AllocationPtr last = chain->Allocate(Kibibytes(66));
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(CallsOf(DeviceCall::kStreamWaitEvent).size(), 0U);
}

// A capture gets no cached block, and none of its blocks is cached.
TEST_F(CudaMallocAsyncCacheTest, ACaptureHasNoPartInIt) {
  const Chain chain = Start();
  AllocationPtr before = std::move(Admit(chain, 1024).front());
  void* const kept = KeepOne(chain, 1024);
  BeginCapture(chain);
  Failure failure;
  const Request held{1024, 0, kNoGrowth};
  EXPECT_EQ(chain->AllocateOrNull(held, failure), nullptr);
  EXPECT_EQ(chain->hit_path()->Take(1024), nullptr);
  AllocationPtr inside = chain->Allocate(1024);
  EXPECT_NE(inside->data(), kept);
  AllocationPtr outlives = chain->Allocate(1024);
  inside.reset();
  EXPECT_EQ(KeptIn(chain), 1024U);
  outlives.reset();
  EndCapture(chain);
  EXPECT_EQ(chain->Allocate(1024)->data(), kept);
  EXPECT_EQ(KeptIn(chain), 1024U);
  before.reset();
  EXPECT_EQ(KeptIn(chain), 2048U) << "it is older than the capture";
}

TEST_F(CudaMallocAsyncCacheTest, WhatIsFreedWhileOneIsAnnouncedIsNotKept) {
  const Chain chain = Start();
  std::vector<AllocationPtr> blocks = Admit(chain, 1024);
  gate().Announce();
  blocks.pop_back();
  EXPECT_EQ(KeptIn(chain), 0U);
  gate().Withdraw();
  blocks.pop_back();
  EXPECT_EQ(KeptIn(chain), 1024U);
}

// The memory may belong to a graph.
TEST_F(CudaMallocAsyncCacheTest, WhatACaptureAllocatedIsNotKeptLater) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  gate().Announce();
  AllocationPtr block = chain->Allocate(1024);
  gate().Withdraw();
  StartLog();
  block.reset();
  EXPECT_EQ(KeptIn(chain), 1024U);
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 1U);
}

// A free would become part of the graph.
TEST_F(CudaMallocAsyncCacheTest, NothingIsFreedIntoACapture) {
  setting_.limit_bytes = Mebibytes(34);
  const Chain chain = Start();
  const Chain other = NewChain();
  KeepOne(chain, 1024);
  KeepOne(other, 1024);
  BeginCapture(chain);
  StartLog();
  Failure failure;
  EXPECT_EQ(chain->AllocateOrNull(Request{Mebibytes(40)}, failure), nullptr);
  EXPECT_EQ(other->AllocateOrNull(Request{Mebibytes(34)}, failure), nullptr);
  EXPECT_EQ(chain->Release(), 0U);
  other->Release();
  EXPECT_EQ(KeptIn(chain), 1024U);
  for (const CallRecord& call : CallsOf(DeviceCall::kFreeAsync)) {
    EXPECT_NE(call.stream_uid, chain.stream().uid);
  }
  EXPECT_EQ(KeptIn(other), 0U) << "its own shortage reaches it";
  EndCapture(chain);
  EXPECT_EQ(KeptIn(chain), 1024U);
}

TEST_F(CudaMallocAsyncCacheTest, TheEndOfTheStreamEndsIt) {
  setting_.progress = "lazy";
  const Chain chain = Start();
  std::vector<AllocationPtr> blocks = Admit(chain, 1024);
  blocks.pop_back();
  StartLog();
  chain->StreamDestroyed(chain.stream());
  auto frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_EQ(frees[0].stream_uid, chain.stream().uid);
  chain.chain_stream->Retire();
  Destroy(chain.stream());
  StartLog();
  blocks.clear();
  EXPECT_EQ(KeptIn(chain), 0U);
  frees = CallsOf(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_NE(frees[0].stream_uid, chain.stream().uid);
  Failure failure;
  EXPECT_EQ(chain->AllocateOrNull(Request{1024}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBadRequest);
}

// Blocks that the stream would capture are freed after the end of the captures.
TEST_F(CudaMallocAsyncCacheTest, AChainThatEndsInACaptureFreesNothingIntoIt) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  BeginCapture(chain);
  StartLog();
  chain->StreamDestroyed(chain.stream());
  EXPECT_EQ(CallsOf(DeviceCall::kFreeAsync).size(), 0U);
  Graph graph;
  device().StreamEndCapture(chain.stream(), &graph);
  if (graph) device().GraphDestroy(graph);
  gate().Withdraw();
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  chain->Release();
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
}

TEST_F(CudaMallocAsyncCacheTest, WhatCannotBeFreedIsKeptForLater) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  Fail(DeviceCall::kFreeAsync);
  AllocationPtr large = chain->Allocate(Mebibytes(10));
  EXPECT_EQ(KeptIn(chain), 0U);
  EXPECT_EQ(device().Leaks().pool_blocks, 2U);
  EXPECT_FALSE(pool_->market().IsUnused());
  device().ClearFaults();
  large.reset();
  EXPECT_EQ(chain->Release(), Mebibytes(32));
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  EXPECT_TRUE(pool_->market().IsUnused());
}

class CudaMallocAsyncCacheFaultsTest
    : public CudaMallocAsyncCacheFixture,
      public ::testing::WithParamInterface<std::string> {};

// Each call fails once, in every operation that empties the cache.
TEST_P(CudaMallocAsyncCacheFaultsTest, EveryCallMayFailOnce) {
  options_.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = GetParam();
  options_.Edit<CudaMallocAsyncOptions>()
      .cuda_malloc_async_pool_memory_throttle_ratio = 0.01;
  setting_.limit_bytes = Mebibytes(40);
  const std::size_t records = RecordSlab::Instance().taken();
  const auto run = [&] {
    const Chain chain = NewChain();
    const Chain dying = NewChain();
    Failure failure;
    const auto keep = [&failure](const Chain& on, std::size_t bytes) {
      std::vector<AllocationPtr> blocks;
      for (int i = 0; i < 4; ++i) {
        blocks.push_back(on->AllocateOrNull(Request{bytes}, failure));
      }
    };
    keep(chain, 1000);
    keep(dying, 1000);
    AllocationPtr marked = chain->AllocateOrNull(Request{2000}, failure);
    if (marked != nullptr) FreeMarked(std::move(marked), marker_);
    AllocationPtr throttled = chain->AllocateOrNull(Request{3000}, failure);
    keep(chain, 1000);
    // With bins, a block is fetched from the other chain.
    keep(chain, Mebibytes(2));
    AllocationPtr fetched =
        dying->AllocateOrNull(Request{Mebibytes(2)}, failure);
    fetched.reset();
    AllocationPtr large =
        dying->AllocateOrNull(Request{Mebibytes(12)}, failure);
    AllocationPtr impossible =
        dying->AllocateOrNull(Request{Mebibytes(39)}, failure);
    keep(chain, 1000);
    keep(dying, 1000);
    chain->Release();
    keep(chain, 1000);
    keep(dying, 1000);
    dying->StreamDestroyed(dying.stream());
    dying.chain_stream->Synchronize();
    dying.chain_stream->Retire();
    large.reset();
    throttled.reset();
    device().ClearFaults();
    chain->Release();
    dying->Release();
    EXPECT_TRUE(pool_->market().IsUnused());
    EXPECT_EQ(pool_->reserved_bytes(), 0U);
    EXPECT_EQ(chain->stats().in_use_bytes, 0U);
    EXPECT_EQ(device().Leaks().pool_blocks, 0U);
    keep(chain, 1000);  // the chain's end frees the rest
  };
  int runs = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    // The test's own streams, and the objects that the device should destroy.
    if (call == DeviceCall::kStreamDestroy ||
        call == DeviceCall::kStreamCreate ||
        call == DeviceCall::kEventDestroy || call == DeviceCall::kPoolDestroy) {
      continue;
    }
    for (std::uint64_t nth = 1;; ++nth) {
      Build();
      marker_ = NewStream();
      const std::uint64_t calls = Count(call);
      Fail(call, nth);
      run();
      EXPECT_EQ(RecordSlab::Instance().taken(), records)
          << DeviceCallName(call) << " " << nth;
      ++runs;
      if (Count(call) - calls < nth) break;
    }
  }
  EXPECT_GT(runs, 60);
}

INSTANTIATE_TEST_SUITE_P(Bins, CudaMallocAsyncCacheFaultsTest,
                         ::testing::Values("none", "pow2"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata
