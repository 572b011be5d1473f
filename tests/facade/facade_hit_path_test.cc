// The hit path: its cost, and that it loses nothing.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/error.h"
#include "strata/allocation/streams/event_pool.h"
#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/chain.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

// With a lock that a thread may own, and with a plain lock.
class FacadeHitPathTest : public FacadeFixture,
                          public testing::WithParamInterface<bool> {
 protected:
  void Build(std::string options = "") {
    if (!options.empty()) options.append(",");
    options.append(GetParam() ? "strata_stream_lock=biased"
                              : "strata_stream_lock=word");
    FacadeFixture::Build(options);
  }
};

INSTANTIATE_TEST_SUITE_P(Both, FacadeHitPathTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& test) {
                           return test.param ? "biased" : "plain";
                         });

TEST_P(FacadeHitPathTest, MakesNoHeapCallAndNoDeviceCall) {
  Build();
  const Stream stream = NewStream();
  void* const handle = stream.handle;
  const auto pair = [&] {
    facade().Alloc(kPlace, 1000).reset();
    facade().Alloc(kPlace, 1000, stream).reset();
    facade().Alloc(kPlace, 1000, handle).reset();
    facade().GetAllocator(kPlace).Allocate(Request{500, 256}).reset();
    facade().GetAllocator(kPlace).Free(facade().Alloc(kPlace, 70),
                                       facade().GetDefaultStream(kPlace));
  };
  // The two streams alternate with the memory of the first one, and stop.
  for (int i = 0; i < 1000; ++i) pair();
  const std::uint64_t device_calls = CountAll();
  const HeapCallCounter heap;
  for (int i = 0; i < 100; ++i) pair();
  EXPECT_EQ(heap.calls(), 0U);
  EXPECT_EQ(CountAll(), device_calls);
}

// Without a front cache, each request searches.
TEST_P(FacadeHitPathTest, AStepThatRepeatsMakesNoCalls) {
  for (const char* option : {"", " strata_front_cache=off"}) {
    SCOPED_TRACE(option);
    Build(option);
    std::vector<AllocationPtr> live(200);
    const auto step = [&] {
      for (std::size_t i = 0; i < live.size(); ++i) {
        live[i] = facade().Alloc(kPlace, 1000 + 777 * i);
      }
      for (AllocationPtr& block : live) block.reset();
    };
    for (int i = 0; i < 40; ++i) step();
    const std::uint64_t device_calls = CountAll();
    const HeapCallCounter heap;
    step();
    EXPECT_EQ(heap.calls(), 0U);
    EXPECT_EQ(CountAll(), device_calls);
    EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 0U);
  }
}

// Also if a request without an offset gets a block of the same size.
TEST_P(FacadeHitPathTest, ABlockHasLeftItsOffsetBehind) {
  constexpr std::size_t kAlignment = std::size_t{1} << 16;
  Build();
  std::vector<AllocationPtr> live(100);
  std::vector<AllocationPtr> aligned(4);
  std::size_t offsets = 0;
  std::size_t others = 0;
  std::size_t padded = 0;
  for (int step = 0; step < 100; ++step) {
    for (std::size_t i = 0; i < live.size(); ++i) {
      live[i] = facade().Alloc(kPlace, 1000 + 777 * i);
      const Block& block = *live[i]->block();
      ASSERT_EQ(live[i]->data(), block.data);
      ASSERT_TRUE(IsPlain(block));
      if (i % 25 != 12) continue;
      // The block of the previous step.
      AllocationPtr& other = aligned[i / 25];
      other.reset();
      if (++others % 3 == 0) {
        other = facade().Alloc(kPlace, padded);
        ASSERT_EQ(other->data(), other->block()->data);
        continue;
      }
      other = facade().GetAllocator(kPlace).Allocate(Request{500, kAlignment});
      padded = other->block()->size;
      const auto address = reinterpret_cast<std::uintptr_t>(other->data());
      ASSERT_EQ(address % kAlignment, 0U);
      offsets += other->block()->offset_bytes() != 0 ? 1 : 0;
    }
    for (AllocationPtr& block : live) block.reset();
  }
  EXPECT_GT(offsets, 100U);
  aligned.clear();
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 0U);
}

// With one stream in use, a shared strategy needs no walk either.
TEST_P(FacadeHitPathTest, SharedStrategiesMakeNoCallsOnAHit) {
  for (const char* name : {"bfc", "naive_best_fit", "thread_local", "pool"}) {
    SCOPED_TRACE(name);
    Build(std::string("allocator_strategy=").append(name));
    // The first lock that a thread owns allocates from the C library.
    for (int i = 0; i < 100; ++i) facade().Alloc(kPlace, 1000).reset();
    EXPECT_NE(facade().GetAllocator(kPlace).hit_path(), nullptr);
    const std::uint64_t device_calls = CountAll();
    const HeapCallCounter heap;
    for (int i = 0; i < 100; ++i) facade().Alloc(kPlace, 1000).reset();
    EXPECT_EQ(heap.calls(), 0U);
    EXPECT_EQ(CountAll(), device_calls);
    EXPECT_EQ(facade().GetStats(kPlace).frees, 200U);
  }
}

// The driver pool is not called either, for sizes that repeat.
TEST_P(FacadeHitPathTest, TheDriversPoolIsNotCalledOnAHit) {
  Build("allocator_strategy=cuda_malloc_async");
  const Stream stream = NewStream();
  const auto pair = [&] {
    facade().Alloc(kPlace, 1000).reset();
    facade().Alloc(kPlace, 1000, stream).reset();
  };
  for (int i = 0; i < 100; ++i) pair();
  const std::uint64_t device_calls = CountAll();
  const HeapCallCounter heap;
  for (int i = 0; i < 100; ++i) pair();
  EXPECT_EQ(heap.calls(), 0U);
  EXPECT_EQ(CountAll(), device_calls);
  const Stats stats = facade().GetStats(kPlace);
  EXPECT_EQ(stats.allocations, 400U);
  EXPECT_EQ(stats.frees, 400U);
  EXPECT_EQ(stats.in_use_bytes, 0U);
  EXPECT_EQ(stats.requested_bytes, 0U);
}

TEST_P(FacadeHitPathTest, TheLargestBlockToKeepIsAnOption) {
  const auto is_kept = [&](const std::string& options, std::size_t bytes) {
    Build(options);
    for (int i = 0; i < 16; ++i) facade().Alloc(kPlace, bytes).reset();
    return !dynamic_cast<Chain&>(facade().GetAllocator(kPlace))
                .state()
                .cache.empty();
  };
  EXPECT_TRUE(is_kept("", 4096));
  EXPECT_TRUE(is_kept("strata_front_cache_max_block=4KiB", 4096));
  EXPECT_FALSE(is_kept("strata_front_cache_max_block=2KiB", 4096));
  EXPECT_FALSE(is_kept("", Kibibytes(128)));
  EXPECT_TRUE(is_kept("strata_front_cache_max_block=128KiB", Kibibytes(128)));
}

// A free that must reach the system walks, and counts once.
TEST_P(FacadeHitPathTest, AHugeBlockIsNoHit) {
  Build(
      "allocator_strategy=naive_best_fit,initial_gpu_memory_in_mb=4,"
      "reallocate_gpu_memory_in_mb=4");
  facade().Alloc(kPlace, 1000).reset();
  const std::uint64_t frees = Count(DeviceCall::kMemFree);
  facade().Alloc(kPlace, Mebibytes(16)).reset();
  EXPECT_EQ(Count(DeviceCall::kMemFree), frees + 1);
  const Stats stats = facade().GetStats(kPlace);
  EXPECT_EQ(stats.allocations, 2U);
  EXPECT_EQ(stats.frees, 2U);
  EXPECT_EQ(stats.in_use_bytes, 0U);
  EXPECT_EQ(stats.requested_bytes, 0U);
}

// With several streams, a stream reuses its own freed memory. A request makes
// no device call while free memory exists.
TEST_P(FacadeHitPathTest, SeveralStreamsOfASharedStrategyHardlyAskTheDevice) {
  for (const char* name : {"bfc", "naive_best_fit", "thread_local", "pool"}) {
    SCOPED_TRACE(name);
    Build(std::string("allocator_strategy=").append(name));
    const Stream stream = NewStream();
    facade().Alloc(kPlace, 1000).reset();
    AllocationPtr block = facade().Alloc(kPlace, 1000, stream);
    const void* const data = block->data();
    block.reset();
    const std::uint64_t device_calls = CountAll();
    for (int i = 0; i < 640; ++i) {
      block = facade().Alloc(kPlace, 1000, stream);
      EXPECT_EQ(block->data(), data);
      block.reset();
    }
    // One event for 64 frees; the first frees create some in advance.
    EXPECT_LE(CountAll(), device_calls + 10 + EventPool::kBatch);
  }
}

TEST_P(FacadeHitPathTest, TheCounterSeesAMiss) {
  Build();
  const HeapCallCounter heap;
  facade().Alloc(kPlace, 1000).reset();
  EXPECT_GT(heap.calls(), 0U);
}

TEST_P(FacadeHitPathTest, FreeingManyBlocksMakesNoHeapCall) {
  Build();
  std::vector<AllocationPtr> blocks(3000);
  for (AllocationPtr& block : blocks) block = facade().Alloc(kPlace, 1000);
  const HeapCallCounter heap;
  for (AllocationPtr& block : blocks) block.reset();
  EXPECT_EQ(heap.calls(), 0U);
}

TEST_P(FacadeHitPathTest, AMarkedBlockIsNoHit) {
  Build();
  const Stream other = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000);
  void* const data = block->data();
  facade().RecordStream(block, other);
  const CallLog log(device());
  block.reset();
  const AllocationPtr again = facade().Alloc(kPlace, 1000);
  EXPECT_NE(again->data(), data);
  EXPECT_EQ(log.calls().size(), 0U);
}

TEST_P(FacadeHitPathTest, AReusedBlockHasLeftItsMarkBehind) {
  Build();
  const Stream other = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000);
  facade().RecordStream(block, other);
  block.reset();
  block = facade().Alloc(kPlace, 1000);
  const CallLog log(device());
  block.reset();
  EXPECT_TRUE(log.calls().empty());
}

TEST_P(FacadeHitPathTest, AReusedBlockHasLeftItsOffsetBehind) {
  Build();
  std::vector<AllocationPtr> aligned;
  for (int i = 0; i < 8; ++i) {
    aligned.push_back(
        facade().GetAllocator(kPlace).Allocate(Request{1000, 1 << 16}));
    EXPECT_EQ(
        reinterpret_cast<std::uintptr_t>(aligned.back()->data()) % (1 << 16),
        0U);
  }
  aligned.clear();
  EXPECT_EQ(facade().GetStats(kPlace).in_use_bytes, 0U);
  const AllocationPtr whole = facade().Alloc(kPlace, 70000);
  EXPECT_EQ(whole->block()->offset_units, 0U);
  EXPECT_GE(whole->size(), 70000U);
}

TEST_P(FacadeHitPathTest, FlagsAreHonouredOnAHit) {
  Build();
  const Stream stream = device().LegacyStream();
  Failure failure;
  EXPECT_EQ(
      facade().TryAlloc(kPlace, Request{1000, 0, kNoGrowth}, stream, failure),
      nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kNoGrowth);
  facade().Alloc(kPlace, 1000).reset();
  EXPECT_NE(
      facade().TryAlloc(kPlace, Request{1000, 0, kNoGrowth}, stream, failure),
      nullptr);
}

TEST_P(FacadeHitPathTest, IdleChunksGoBackAtOnceIfTheUserAsksForIt) {
  Build("free_idle_chunk,auto_growth_chunk_rule=exact");
  AllocationPtr first = facade().Alloc(kPlace, Mebibytes(4));
  facade().Alloc(kPlace, Mebibytes(6)).reset();
  EXPECT_EQ(device().Leaks().allocation_bytes, Mebibytes(4));
  first.reset();
  EXPECT_EQ(device().Leaks().allocations, 0U);
}

}  // namespace
}  // namespace strata
