// How auto_growth splits, coalesces and grows. Rule numbers are those of
// paddle.md §3.3.

#include "strata/strategy/auto_growth/auto_growth_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

TestPlaceOptions WithChunks(std::uint64_t mebibytes) {
  TestPlaceOptions options;
  if (mebibytes == 0) {
    options.strategy_options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule =
        "exact";
  }
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_chunk_size_in_mb = mebibytes;
  return options;
}

class AutoGrowthTest : public ::testing::Test {
 protected:
  void Use(const TestPlaceOptions& options) {
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
  }
  AllocationPtr Get(std::size_t bytes, std::uint32_t flags = 0) {
    return chain_->Allocate(Request{bytes, 0, flags});
  }
  static std::size_t OffsetOf(const AllocationPtr& allocation) {
    return static_cast<std::size_t>(static_cast<char*>(allocation->data()) -
                                    static_cast<char*>(allocation->base()));
  }
  AutoGrowthAllocator& strategy() { return chain_.auto_growth(); }
  Stats stats() { return strategy().stats(); }
  std::uint64_t Growths() {
    return place_->device().CallCount(DeviceCall::kMemAlloc);
  }

  std::unique_ptr<TestPlace> place_;
  TestChain chain_;
};

TEST_F(AutoGrowthTest, RoundsSizesUpTo256Bytes) {
  Use(WithChunks(1));
  EXPECT_EQ(Get(1)->size(), 256U);
  EXPECT_EQ(Get(256)->size(), 256U);
  EXPECT_EQ(Get(257)->size(), 512U);
  EXPECT_EQ(Get(257)->requested_bytes(), 257U);
}

// The original rounds pinned memory in this way.
TEST_F(AutoGrowthTest, RoundsSizesUpToALargerGranule) {
  TestPlaceOptions options = WithChunks(1);
  options.strategy_options.Edit<AutoGrowthOptions>().auto_growth_granule_bytes =
      Kibibytes(64);
  Use(options);
  const AllocationPtr first = Get(1);
  const AllocationPtr second = Get(Kibibytes(64) + 1);
  EXPECT_EQ(first->size(), Kibibytes(64));
  EXPECT_EQ(second->size(), Kibibytes(128));
  EXPECT_EQ(OffsetOf(second), Mebibytes(1) - Kibibytes(192));
  EXPECT_TRUE(strategy().IsConsistent());
}

// 3.3-3, 3.3-6: the high end of the block is returned.
TEST_F(AutoGrowthTest, Rule3CarvesFromTheHighEnd) {
  Use(WithChunks(1));
  const AllocationPtr first = Get(1000);
  const AllocationPtr second = Get(512);
  EXPECT_EQ(OffsetOf(first), Mebibytes(1) - 1024);
  EXPECT_EQ(OffsetOf(second), Mebibytes(1) - 1024 - 512);
  EXPECT_EQ(first->base(), second->base());
}

// 3.3-3: the smallest sufficient block, the lowest address among equals.
TEST_F(AutoGrowthTest, Rule3TakesTheBestFitAtTheLowestAddress) {
  Use(WithChunks(1));
  std::vector<AllocationPtr> parts;
  for (const std::size_t size : {4096U, 512U, 2048U, 512U, 2048U, 512U}) {
    parts.push_back(Get(size));
  }
  const void* lowest = parts[4]->data();
  for (const std::size_t i : {0U, 2U, 4U}) parts[i].reset();
  const AllocationPtr fit = Get(2048);
  EXPECT_EQ(fit->data(), lowest);
  EXPECT_EQ(Growths(), 1U);
}

// paddle.md §5 B1: frees entered one index and requests searched another, so no
// memory was ever reused.
TEST_F(AutoGrowthTest, B1WhatIsFreedIsFoundAgain) {
  Use(WithChunks(4));
  for (const std::size_t bytes :
       {std::size_t{1000}, Kibibytes(700), Mebibytes(3)}) {
    Get(bytes).reset();
    const std::uint64_t growths = Growths();
    for (int i = 0; i < 100; ++i) Get(bytes).reset();
    EXPECT_EQ(Growths(), growths) << bytes;
  }
  EXPECT_LE(stats().reserved_bytes, Mebibytes(8));
}

// paddle.md §5 B16: any multiple of 256 bytes was split.
TEST_F(AutoGrowthTest, NoSliverBelow512) {
  Use(WithChunks(0));
  Get(2048 + 256).reset();
  const AllocationPtr whole = Get(2048);
  EXPECT_EQ(whole->size(), 2048U + 256);
  EXPECT_EQ(stats().splits, 0U);
  EXPECT_EQ(stats().free_blocks, 0U);
}

TEST_F(AutoGrowthTest, ARemainderOf512IsSplitOff) {
  Use(WithChunks(0));
  Get(2048 + 512).reset();
  const AllocationPtr part = Get(2048);
  EXPECT_EQ(part->size(), 2048U);
  EXPECT_EQ(stats().splits, 1U);
  EXPECT_EQ(stats().largest_free_bytes, 512U);
}

// 3.3-7: merge with previous, then next; never across chunks.
TEST_F(AutoGrowthTest, Rule7CoalescesWithBothNeighbours) {
  Use(WithChunks(1));
  AllocationPtr first = Get(4096);
  AllocationPtr second = Get(4096);
  AllocationPtr third = Get(4096);
  first.reset();
  third.reset();
  EXPECT_EQ(stats().free_blocks, 2U);
  second.reset();
  EXPECT_EQ(stats().free_blocks, 1U);
  EXPECT_EQ(stats().largest_free_bytes, Mebibytes(1));
  // The third joins the rest of the chunk; the second joins on both sides.
  EXPECT_EQ(stats().coalesces, 3U);
  EXPECT_TRUE(strategy().IsConsistent());
}

TEST_F(AutoGrowthTest, Rule7ChunksNeverMerge) {
  Use(WithChunks(0));
  AllocationPtr first = Get(Mebibytes(2));
  AllocationPtr second = Get(Mebibytes(2));
  first.reset();
  second.reset();
  EXPECT_EQ(stats().free_blocks, 2U);
  EXPECT_EQ(stats().largest_free_bytes, Mebibytes(2));
}

// 3.3-2: a block remembers its pool.
TEST_F(AutoGrowthTest, Rule2PoolsDoNotMix) {
  TestPlaceOptions options;
  options.strategy_options.Edit<AutoGrowthOptions>().small_pool_size_in_mb = 1;
  options.strategy_options.Edit<AutoGrowthOptions>()
      .small_pool_auto_growth_chunk_size_in_mb = 4;
  Use(options);
  Get(Mebibytes(8)).reset();
  const AllocationPtr small = Get(1000);
  EXPECT_EQ(stats().chunks, 2U);
  EXPECT_EQ(OffsetOf(small), Mebibytes(4) - 1024);
  const AllocationPtr large = Get(Mebibytes(2));
  EXPECT_EQ(stats().chunks, 2U);
}

// 3.3-4.
TEST_F(AutoGrowthTest, Rule4GrowsByTheChunkSizeOrTheRequest) {
  Use(WithChunks(4));
  const AllocationPtr small = Get(1000);
  EXPECT_EQ(stats().reserved_bytes, Mebibytes(4));
  const AllocationPtr large = Get(Mebibytes(6));
  EXPECT_EQ(stats().reserved_bytes, Mebibytes(10));
}

TEST_F(AutoGrowthTest, TheFirstGrowthOfAPoolIsItsPreAllocation) {
  TestPlaceOptions options;
  options.strategy_options.Edit<AutoGrowthOptions>().small_pool_size_in_mb = 1;
  options.strategy_options.Edit<AutoGrowthOptions>()
      .small_pool_pre_alloc_in_mb = 16;
  Use(options);
  // After a failed growth, the next growth still counts as the first.
  FaultRule rule = FailNth(DeviceCall::kMemAlloc, 1);
  rule.status = Status::kUnknown;
  place_->device().AddFault(rule);
  EXPECT_THROW(Get(1000), DeviceError);
  const AllocationPtr first = Get(1000);
  EXPECT_EQ(stats().reserved_bytes, Mebibytes(16));
  const AllocationPtr rest = Get(Mebibytes(1));
  EXPECT_EQ(stats().reserved_bytes, Mebibytes(16));
}

// 3.3-7: with free_idle_chunk, the free of the last block releases the chunk.
TEST_F(AutoGrowthTest, Rule7FreeIdleChunkGivesTheChunkBackAtOnce) {
  TestPlaceOptions options = WithChunks(4);
  options.strategy_options.Edit<AutoGrowthOptions>().free_idle_chunk = true;
  Use(options);
  AllocationPtr first = Get(1000);
  AllocationPtr second = Get(1000);
  first.reset();
  EXPECT_EQ(stats().reserved_bytes, Mebibytes(4));
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize), 0U);
  second.reset();
  EXPECT_EQ(stats().reserved_bytes, 0U);
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize), 1U);
  EXPECT_EQ(place_->device().Leaks().allocations, 0U);
  EXPECT_EQ(chain_->hit_path(), nullptr);
}

// 3.3-8, 3.3-9: only fully free chunks are released.
TEST_F(AutoGrowthTest, Rule8ReleaseGivesOnlyIdleChunksBack) {
  Use(WithChunks(4));
  AllocationPtr kept = Get(1000);
  Get(Mebibytes(8)).reset();
  EXPECT_EQ(stats().idle_bytes, Mebibytes(8));
  EXPECT_EQ(chain_->Release(), Mebibytes(8));
  EXPECT_EQ(stats().reserved_bytes, Mebibytes(4));
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize), 1U);
  kept.reset();
  EXPECT_EQ(chain_->Release(), Mebibytes(4));
}

// 3.3-11.
TEST_F(AutoGrowthTest, Rule11CountsHitsMissesSplitsAndCoalesces) {
  Use(WithChunks(1));
  AllocationPtr first = Get(1000);
  AllocationPtr second = Get(1000);
  second.reset();
  const Stats counted = stats();
  EXPECT_EQ(counted.cache_misses, 1U);
  EXPECT_EQ(counted.cache_hits, 1U);
  EXPECT_EQ(counted.splits, 2U);
  EXPECT_EQ(counted.coalesces, 1U);
  EXPECT_EQ(counted.chunks, 1U);
  EXPECT_EQ(counted.in_use_bytes, 1024U);
  EXPECT_EQ(counted.reserved_bytes, Mebibytes(1));
}

// Layers above first probe without growth. A probe is not a request.
TEST_F(AutoGrowthTest, Rule11AProbeThatFindsNothingIsNoMiss) {
  Use(WithChunks(1));
  Failure failure;
  EXPECT_EQ(chain_->AllocateOrNull(Request{1000, 0, kNoGrowth}, failure),
            nullptr);
  EXPECT_EQ(stats().cache_misses, 0U);
  const AllocationPtr grown = Get(1000);
  EXPECT_EQ(stats().cache_misses, 1U);
  const AllocationPtr found =
      chain_->AllocateOrNull(Request{1000, 0, kNoGrowth}, failure);
  EXPECT_EQ(stats().cache_hits, 1U);
}

TEST_F(AutoGrowthTest, AHitMakesNoHeapCallAndNoDeviceCall) {
  TestPlaceOptions options;
  options.decorators = DecoratorOptions();
  Use(options);
  Get(Mebibytes(4)).reset();
  std::vector<AllocationPtr> live;
  live.reserve(100);
  const std::uint64_t calls = place_->DeviceCalls();
  const HeapCallCounter heap;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) live.push_back(Get(Mebibytes(1)));
    if (round == 0) break;
  }
  live.clear();
  const std::uint64_t growing = heap.calls();
  EXPECT_GT(growing, 0U);
  EXPECT_GT(place_->DeviceCalls(), calls);
  // From the second round of these sizes on, the chunks and records exist.
  const auto play = [&] {
    for (int i = 0; i < 45; ++i) {
      live.push_back(Get(Mebibytes(1) + static_cast<std::size_t>(i)));
    }
    while (!live.empty()) live.pop_back();
  };
  for (int round = 0; round < 20; ++round) play();
  const std::uint64_t cached_calls = place_->DeviceCalls();
  const HeapCallCounter cached;
  for (int round = 0; round < 20; ++round) play();
  EXPECT_EQ(cached.calls(), 0U);
  EXPECT_EQ(place_->DeviceCalls(), cached_calls);
}

// More blocks in one chunk than the slab has records in stock: the strategy
// allocates records instead of memory.
TEST_F(AutoGrowthTest, LackOfRecordsIsNoReasonToGrow) {
  Use(WithChunks(4));
  // The stock of the slab is empty.
  RecordSlab::List stock;
  RecordSlab::Instance().FillFromStock(stock, SIZE_MAX);
  std::vector<AllocationPtr> live;
  for (std::size_t i = 0; i < Mebibytes(4) / 512; ++i) live.push_back(Get(512));
  EXPECT_EQ(Growths(), 1U);
  live.clear();
  RecordSlab::Instance().Drain(stock);
  EXPECT_TRUE(strategy().IsConsistent());
}

TEST_F(AutoGrowthTest, TheHitPathTakesAndGivesWhatIsCached) {
  Use(WithChunks(1));
  HitPath* hits = chain_->hit_path();
  ASSERT_NE(hits, nullptr);
  const auto take = [hits](std::size_t bytes) {
    const std::lock_guard<ChainLock> guard(*hits->hit_lock());
    return hits->Take(bytes);
  };
  EXPECT_EQ(take(1000), nullptr);
  Get(1000).reset();
  Block* block = take(1000);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->size, 1024U);
  EXPECT_NE(block->flags & kBlockLive, 0);
  EXPECT_EQ(take(Mebibytes(1)), nullptr);
  EXPECT_EQ(take(SIZE_MAX), nullptr);
  {
    const std::lock_guard<ChainLock> guard(*hits->hit_lock());
    hits->Give(block);
  }
  EXPECT_EQ(stats().in_use_bytes, 0U);
  EXPECT_TRUE(strategy().IsConsistent());
}

// An earlier fault: each took a whole chunk: 40 times the memory for small
// blocks.
TEST_F(AutoGrowthTest, LongLivedBlocksShareChunks) {
  for (const std::size_t bytes :
       {Kibibytes(4), Kibibytes(700), Mebibytes(1), Mebibytes(1) + 256,
        Mebibytes(2), Mebibytes(5) - 1, Kibibytes(6912), Mebibytes(10) + 256,
        Mebibytes(11), Mebibytes(12)}) {
    TestPlaceOptions options;
    options.memory_bytes = Gibibytes(1);
    Use(options);
    std::vector<AllocationPtr> live;
    for (int i = 0; i < 40; ++i) live.push_back(Get(bytes, kLongLived));
    const std::size_t least = stats().in_use_bytes;
    EXPECT_LE(static_cast<double>(stats().reserved_bytes),
              1.1 * static_cast<double>(least) + Mebibytes(32))
        << bytes;
    EXPECT_TRUE(strategy().IsConsistent());
  }
}

TEST_F(AutoGrowthTest, LongLivedBlocksStayOutOfOtherChunks) {
  Use(TestPlaceOptions());
  Get(Mebibytes(12)).reset();
  const AllocationPtr before = Get(Mebibytes(3));
  const AllocationPtr stays = Get(Mebibytes(2), kLongLived);
  const AllocationPtr other = Get(Mebibytes(2));
  const AllocationPtr small = Get(1000, kLongLived);
  EXPECT_EQ(Growths(), 2U);
  EXPECT_NE(stays->base(), before->base());
  EXPECT_NE(stays->base(), other->base());
  EXPECT_EQ(small->base(), stays->base());
}

TEST_F(AutoGrowthTest, ALongLivedBlockIsCutWhenThereIsNoOtherMemory) {
  TestPlaceOptions options = WithChunks(0);
  options.memory_bytes = Mebibytes(10);
  Use(options);
  Get(Mebibytes(10)).reset();
  EXPECT_NE(Get(Mebibytes(2), kLongLived | kNoRetry), nullptr);
  EXPECT_NE(Get(Mebibytes(2), kLongLived | kNoGrowth), nullptr);
}

TEST_F(AutoGrowthTest, NoGrowthServesFromEitherPool) {
  Use(TestPlaceOptions());
  Get(Mebibytes(4)).reset();
  EXPECT_NE(Get(1000, kNoGrowth), nullptr);
  EXPECT_EQ(Growths(), 1U);
  EXPECT_THROW(Get(Mebibytes(21), kNoGrowth), BadAlloc);
  EXPECT_EQ(Growths(), 1U);
}

TEST_F(AutoGrowthTest, ADifferentPoolServesWhenTheSystemRefuses) {
  TestPlaceOptions options;
  options.memory_bytes = Mebibytes(20);
  Use(options);
  const AllocationPtr kept = Get(Mebibytes(4));
  // All frames are in the chunk of 20 MiB. Its rest serves a small request.
  EXPECT_EQ(Get(1000)->base(), kept->base());
}

// A chunk of the host is aligned to 64 bytes unless more is requested.
TEST_F(AutoGrowthTest, ChunksAreAlignedAsBlocksMustBe) {
  TestPlaceOptions options = WithChunks(0);
  options.kind = PlaceKind::kHost;
  Use(options);
  std::vector<AllocationPtr> live;
  for (std::size_t i = 1; i < 40; ++i) {
    live.push_back(Get(i * 300));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(live.back()->data()) % 256, 0U);
  }
}

TEST_F(AutoGrowthTest, StaysConsistentInRandomUse) {
  for (const std::uint64_t chunks : {0U, 4U}) {
    Use(WithChunks(chunks));
    std::mt19937_64 random(chunks);
    std::vector<AllocationPtr> live;
    for (int i = 0; i < 1500; ++i) {
      if (!live.empty() && random() % 2 == 0) {
        std::swap(live[random() % live.size()], live.back());
        live.pop_back();
      } else if (random() % 40 == 0) {
        chain_->Release();
      } else {
        live.push_back(Get(1 + random() % (1U << (6 + random() % 15))));
      }
      ASSERT_TRUE(strategy().IsConsistent()) << "operation " << i;
    }
  }
}

TEST_F(AutoGrowthTest, TheErrorCarriesTheNumbersOfEveryLayer) {
  TestPlaceOptions options;
  options.memory_bytes = Mebibytes(8);
  options.decorators = DecoratorOptions();
  Use(options);
  const AllocationPtr live = Get(Mebibytes(5));
  try {
    Get(Mebibytes(4));
    FAIL() << "8 MiB cannot hold 9";
  } catch (const OutOfMemory& error) {
    std::vector<std::string> layers;
    for (const OutOfMemory::LayerReport& report : error.layers()) {
      layers.push_back(report.layer);
    }
    EXPECT_THAT(layers,
                ElementsAre("stat", "retry", "cuda_graph", "stream_safe",
                            "aligned", "auto_growth", "chunk_pool", "device"));
    EXPECT_EQ(error.layers().front().stats.requested_bytes, Mebibytes(5));
    const Failure& failure = error.failure();
    EXPECT_EQ(failure.requested_bytes, Mebibytes(4));
    EXPECT_EQ(failure.rounded_bytes, Mebibytes(4));
    EXPECT_EQ(failure.in_use_bytes, Mebibytes(5));
    EXPECT_EQ(failure.largest_free_bytes, Mebibytes(1));
    EXPECT_EQ(failure.reserved_bytes, Mebibytes(6));
    EXPECT_EQ(failure.device_free_bytes, Mebibytes(2));
    EXPECT_EQ(failure.device_total_bytes, Mebibytes(8));
  }
}

}  // namespace
}  // namespace strata
