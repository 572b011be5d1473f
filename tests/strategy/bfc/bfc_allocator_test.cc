// Results of BfcAllocator for a sequence of requests: tf_bfc.md R1 to R13, R24
// to R30, R42, R47 to R49, R58. Growth is in bfc_growth_test.cc, stamps are in
// bfc_stamps_test.cc.

#include "strata/strategy/bfc/bfc_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "strata/strategy/bfc/options.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

TEST(BfcAllocatorTest, SizesAreWholeGranules) {  // R1
  BfcPool pool(BfcWhole(kMiB));
  for (const std::size_t bytes : {1U, 255U, 256U, 257U, 1000U}) {
    const Allocation* taken = pool.Take(bytes);
    EXPECT_EQ(taken->size(), AlignUp(bytes, 256));
    EXPECT_EQ(BfcPool::Offset(taken) % 256, 0);
    EXPECT_EQ(taken->requested_bytes(), bytes);
  }
}

TEST(BfcAllocatorTest, NoBytesLeaveNoTrace) {  // R2
  BfcPool pool(BfcWhole(kMiB));
  const AllocationPtr none = pool.bfc().Allocate(0);
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(pool.bfc().GetNumbers().num_allocs, 0U);
  EXPECT_EQ(pool.system().calls(), 0U);
  EXPECT_EQ(BfcAllocator::AllocationId(*pool.Take(1)), 1);
}

TEST(BfcAllocatorTest, NothingIsTakenBeforeTheFirstRequest) {  // R15
  BfcPool pool(BfcWhole(kMiB));
  EXPECT_EQ(pool.system().calls(), 0U);
  pool.Take(1);
  EXPECT_EQ(pool.RegionBytes(), std::vector<std::size_t>{kMiB});
}

TEST(BfcAllocatorTest, SmallestThatFitsThenLowest) {  // R6, R8
  BfcPool pool(BfcWhole(kMiB));
  const auto taken = pool.TakeMany({1024, 256, 512, 256, 512, 256, 768, 256});
  for (const std::size_t i : {4U, 0U, 6U, 2U}) pool.Free(taken[i]);
  EXPECT_EQ(BfcPool::Offset(pool.Take(400)), 1280);  // the lower of two 512
  EXPECT_EQ(BfcPool::Offset(pool.Take(512)), 2048);  // the higher one
  EXPECT_EQ(BfcPool::Offset(pool.Take(512)), 2816);  // 768 is not split
  EXPECT_EQ(BfcPool::Offset(pool.Take(1000)), 0);
}

TEST(BfcAllocatorTest, SplitFromTwiceTheRequestOn) {  // R10, R11
  BfcPool pool(BfcWhole(kMiB));
  Allocation* hole = pool.Take(2048);
  pool.Take(256);
  pool.Free(hole);
  Allocation* whole = pool.Take(1025);
  EXPECT_EQ(whole->size(), 2048U);
  pool.Free(whole);
  EXPECT_EQ(pool.Take(1024)->size(), 1024U);
  EXPECT_EQ(BfcPool::Offset(pool.Take(1024)), 1024);  // the rest stayed free
}

TEST(BfcAllocatorTest, SplitIf128MiBWouldBeWasted) {  // R10
  BfcPool pool(BfcWhole(Mebibytes(384)));
  Allocation* most = pool.Take(Mebibytes(256));
  EXPECT_EQ(most->size(), Mebibytes(256));
  pool.Free(most);
  EXPECT_EQ(pool.Take(Mebibytes(256) + 1)->size(), Mebibytes(384));
}

TEST(BfcAllocatorTest, TheFractionOfTheLimitSaysWhatMayBeWasted) {  // R10
  BfcOptions options = BfcWhole(kMiB);
  options.fragmentation_fraction = 0.25;
  BfcPool pool(options);
  Allocation* taken = pool.Take(kMiB / 4 * 3);
  EXPECT_EQ(taken->size(), kMiB / 4 * 3);
  pool.Free(taken);
  EXPECT_EQ(pool.Take(kMiB / 4 * 3 + 1)->size(), kMiB);
}

TEST(BfcAllocatorTest, ATinyFractionSplitsOffWholeGranulesOnly) {
  BfcOptions options = BfcWhole(kMiB);
  options.fragmentation_fraction = 1e-12;
  BfcPool pool(options);
  pool.Free(pool.Take(kMiB));
  EXPECT_EQ(pool.Take(kMiB - 256)->size(), kMiB - 256);
  EXPECT_EQ(pool.Take(256)->size(), 256U);
}

TEST(BfcAllocatorTest, FreeNeighboursJoinOnBothSides) {  // R29, R30
  BfcPool pool(BfcWhole(1024));
  const auto taken = pool.TakeMany({256, 256, 256, 256});
  pool.Free(taken[0]);
  pool.Free(taken[2]);
  EXPECT_EQ(pool.Take(512), nullptr);
  pool.Free(taken[1]);
  EXPECT_EQ(pool.bfc().GetNumbers().largest_free_block_bytes, 768U);
  EXPECT_EQ(BfcPool::Offset(pool.Take(768)), 0);
}

TEST(BfcAllocatorTest, AlignmentLeavesAFreeBlockBefore) {  // R13
  BfcPool pool(BfcWhole(Mebibytes(4)));
  pool.Take(256);
  const Allocation* aligned = pool.Take(Request{1000, 4096});
  EXPECT_EQ(BfcPool::Offset(aligned), 4096);
  EXPECT_EQ(aligned->size(), 1024U);
  EXPECT_EQ(BfcPool::Offset(pool.Take(3840)), 256);  // the prefix
}

TEST(BfcAllocatorTest, ABlockWithoutRoomForTheAlignmentIsPassedOver) {  // R8
  BfcPool pool(BfcWhole(Mebibytes(4)));
  const auto taken = pool.TakeMany({256, 2048, 256, 8192, 256});
  pool.Free(taken[1]);
  pool.Free(taken[3]);
  EXPECT_EQ(BfcPool::Offset(pool.Take(Request{1536, 4096})), 4096);
}

// The numbers of R14. The region begins 256 bytes behind an aligned address.
TEST(BfcAllocatorTest, AlignmentAtTheEndOfTheLimit) {  // R14
  const auto off_by_256 = [](ScriptedSystem& system) {
    system.next_address = (std::uintptr_t{1} << 40) + 256;
    system.gap_bytes = 0;
  };
  {
    BfcPool pool(BfcWhole(kMiB), off_by_256);
    EXPECT_EQ(pool.Take(Request{kMiB, 4096}), nullptr);
    // A region that cannot serve its request is released.
    EXPECT_EQ(pool.system().held_bytes(), 0U);
  }
  BfcOptions options = BfcWhole(kMiB);
  options.garbage_collection = false;
  BfcPool pool(options, off_by_256);
  pool.Free(pool.Take(256));
  EXPECT_EQ(pool.Take(Request{kMiB, 4096}), nullptr);
  EXPECT_EQ(BfcPool::Offset(pool.Take(Request{kMiB - 4096, 4096})), 4096);
}

TEST(BfcAllocatorTest, GrowthMakesRoomForTheAlignment) {  // W15
  BfcPool pool(BfcLimit(Mebibytes(64)), [](ScriptedSystem& system) {
    system.next_address = (std::uintptr_t{1} << 40) + 256;
  });
  const Allocation* aligned = pool.Take(Request{Mebibytes(2), 4096});
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(BfcPool::Offset(aligned), 4096);
  EXPECT_THAT(pool.system().TakeAsked(), ElementsAre(Mebibytes(4)));
}

TEST(BfcAllocatorTest, RefusesAlignmentsThatAreNone) {
  BfcPool pool(BfcWhole(kMiB));
  EXPECT_EQ(pool.Take(Request{256, 384}), nullptr);
  EXPECT_EQ(pool.failure().reason, Failure::Reason::kBadRequest);
  EXPECT_EQ(pool.Take(Request{256, 2 * kMaxAlignment}), nullptr);
  EXPECT_EQ(pool.failure().reason, Failure::Reason::kBadRequest);
}

TEST(BfcAllocatorTest, NumbersGrowAndAreNeverUsedAgain) {  // R12, R58
  BfcPool pool(BfcWhole(kMiB));
  Allocation* first = pool.Take(300);
  EXPECT_EQ(BfcAllocator::AllocationId(*first), 1);
  EXPECT_EQ(BfcAllocator::RequestedSize(*first), 300U);
  EXPECT_EQ(BfcAllocator::AllocatedSize(*first), 512U);
  pool.Free(first);
  EXPECT_EQ(pool.Take(2 * kMiB), nullptr);
  EXPECT_EQ(BfcAllocator::AllocationId(*pool.Take(300)), 2);
  EXPECT_EQ(BfcAllocator::AllocationId(*pool.Take(300)), 3);
}

// R28, W20: queries and frees use the record of an allocation, so the middle of
// an allocation cannot be passed.
TEST(BfcAllocatorDeathTest, WhatIsNotLiveHasNoNumber) {  // R58
  BfcPool pool(BfcWhole(kMiB));
  Allocation* gone = pool.Take(256);
  pool.Free(gone);
  EXPECT_DEATH(BfcAllocator::AllocationId(*gone), "bfc: double free");
}

TEST(BfcAllocatorTest, CountsWhatTheOriginalCounts) {  // R12, R47, R48
  BfcPool pool(BfcWhole(8192));
  Allocation* odd = pool.Take(100);
  Allocation* large = pool.Take(1025);
  pool.Free(odd);
  BfcSnapshot::Numbers numbers = pool.bfc().GetNumbers();
  EXPECT_EQ(numbers.num_allocs, 2U);
  EXPECT_EQ(numbers.bytes_in_use, 1280U);  // the chunk, not the request
  EXPECT_EQ(numbers.peak_bytes_in_use, 1536U);
  EXPECT_EQ(numbers.peak_allocated_bytes, 1536U);
  EXPECT_EQ(numbers.largest_alloc_size, 1280U);
  EXPECT_EQ(numbers.bytes_limit, 8192U);
  EXPECT_EQ(numbers.pool_bytes, 8192U);
  EXPECT_EQ(numbers.peak_pool_bytes, 8192U);
  EXPECT_EQ(numbers.bytes_reserved, 0U);
  EXPECT_EQ(numbers.largest_free_block_bytes, 8192U - 1536U);

  pool.bfc().ClearStats();  // R49
  numbers = pool.bfc().GetNumbers();
  EXPECT_EQ(numbers.num_allocs, 0U);
  EXPECT_EQ(numbers.bytes_in_use, 1280U);
  EXPECT_EQ(numbers.peak_bytes_in_use, 1280U);
  EXPECT_EQ(numbers.peak_allocated_bytes, 1280U);
  EXPECT_EQ(numbers.largest_alloc_size, 0U);
  EXPECT_EQ(numbers.pool_bytes, 8192U);
  EXPECT_EQ(numbers.bytes_limit, 8192U);
  pool.Free(large);
}

TEST(BfcAllocatorTest, TheLayersCountersAreExact) {
  BfcPool pool(BfcWhole(8192));
  Allocation* one = pool.Take(100);
  pool.Take(1025);
  pool.Free(one);
  EXPECT_EQ(pool.Take(kMiB), nullptr);
  const Stats stats = pool.bfc().stats();
  EXPECT_EQ(stats.allocations, 2U);
  EXPECT_EQ(stats.frees, 1U);
  EXPECT_EQ(stats.failures, 1U);
  EXPECT_EQ(stats.requested_bytes, 1025U);
  EXPECT_EQ(stats.total_requested_bytes, 1125U);
  EXPECT_EQ(stats.in_use_bytes, 1280U);
  EXPECT_EQ(stats.peak_in_use_bytes, 1536U);
  EXPECT_EQ(stats.reserved_bytes, 8192U);
  EXPECT_EQ(stats.chunks, 1U);
  EXPECT_EQ(stats.free_blocks, 2U);
  EXPECT_EQ(stats.limit_bytes, 8192U);
  // The first one grew the pool, the last one failed.
  EXPECT_EQ(stats.cache_hits, 1U);
  EXPECT_EQ(stats.cache_misses, 2U);
}

TEST(BfcAllocatorTest, AHitCallsNoHeap) {
  BfcPool pool(BfcWhole(Mebibytes(4)));
  std::vector<Allocation*> taken(200);
  Failure failure;
  taken[0] = pool.bfc().TryAllocate(Request{256}, failure);
  pool.bfc().DoFree(taken[0]);
  const HeapCallCounter heap;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      taken[i] = pool.bfc().TryAllocate(Request{256 * (1 + i % 7)}, failure);
    }
    for (std::size_t i = 0; i < taken.size(); i += 2) {
      pool.bfc().DoFree(taken[i]);
    }
    for (std::size_t i = 1; i < taken.size(); i += 2) {
      pool.bfc().DoFree(taken[i]);
    }
  }
  // At most pages of records, which are kept forever.
  EXPECT_LE(heap.calls(), 1U);
}

TEST(BfcAllocatorTest, TheHitPathServesAsAWalkDoes) {
  BfcPool pool(BfcWhole(kMiB));
  pool.Free(pool.Take(1));
  HitPath* path = pool.bfc().hit_path();
  ASSERT_NE(path, nullptr);
  {
    Block* block = path->Take(300);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->size, 512U);
    EXPECT_EQ(BfcAllocator::AllocationId(*block->allocation()), 2);
    EXPECT_EQ(path->Take(2 * kMiB), nullptr);
    path->Give(block);
  }
  EXPECT_EQ(pool.bfc().stats().frees, 2U);
  // The walk counts requests that the hit path did not serve.
  EXPECT_EQ(pool.bfc().stats().cache_hits, 1U);
  EXPECT_EQ(pool.bfc().stats().cache_misses, 1U);
  EXPECT_EQ(pool.bfc().GetNumbers().bytes_in_use, 0U);
}

TEST(BfcAllocatorTest, FastPlacementServesTheSameRequests) {
  BfcOptions options = BfcWhole(Mebibytes(2));
  options.placement = BfcPlacement::kFast;
  BfcPool pool(options);
  const auto taken = pool.TakeMany({1024, 256, 512, 256});
  pool.Free(taken[2]);
  EXPECT_EQ(BfcPool::Offset(pool.Take(400)), 1280);
  EXPECT_EQ(BfcPool::Offset(pool.Take(Request{256, 4096})), 4096);
  EXPECT_TRUE(pool.bfc().IsConsistent());
}

TEST(BfcAllocatorTest, FastPlacementGrowsByWhatAlignmentMayTake) {
  BfcOptions options = BfcLimit(Mebibytes(64));
  options.placement = BfcPlacement::kFast;
  BfcPool pool(options);
  const Allocation* aligned = pool.Take(Request{Mebibytes(2), 4096});
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned->data()) % 4096, 0U);
  EXPECT_THAT(pool.system().TakeAsked(), ElementsAre(Mebibytes(4)));
  // A limit without room for it is respected.
  options.memory_limit_bytes = Mebibytes(2);
  BfcPool small(options);
  EXPECT_EQ(small.Take(Request{Mebibytes(2), 4096}), nullptr);
  EXPECT_EQ(small.system().calls(), 0U);
}

// Offsets are visible to users, so they must not change between versions.
// FNV-1a over the offsets of the first 10 000 operations.
TEST(BfcAllocatorTest, PlacementIsTheSameInEveryVersion) {
  BfcPool pool(BfcLimit(Mebibytes(512)));
  std::mt19937_64 random(20151109);
  std::vector<Allocation*> slots(500);
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (int i = 0; i < 10'000; ++i) {
    Allocation*& slot = slots[random() % slots.size()];
    if (slot != nullptr) {
      pool.Free(slot);
      slot = nullptr;
      continue;
    }
    const std::size_t bytes =
        1 + random() % (std::size_t{1} << (6 + random() % 17));
    slot = pool.Take(bytes);
    const auto offset = static_cast<std::uint64_t>(BfcPool::Offset(slot));
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ ((offset >> shift) & 0xFF)) * 0x100000001B3U;
    }
  }
  EXPECT_EQ(hash, 5032880389446143796U);
}

// R5 after every operation, beside a model of the live blocks only.
TEST(BfcAllocatorTest, BlocksTileTheirRegionsWhateverHappens) {  // R5
  for (const std::string cache : {"", "off", "memory", "speed"}) {
    StrategyOptions options;
    options.Edit<BfcFlags>().bfc_memory_limit_bytes = Mebibytes(24);
    if (!cache.empty()) {
      options.Edit<BfcFlags>().bfc_placement = "fast";
      options.Edit<FrontCacheOptions>().front_cache = cache;
    }
    BfcPool pool(ReadBfcOptions(options));
    std::mt19937_64 random(3);
    std::vector<Allocation*> live;
    std::uint64_t in_use = 0;
    for (int i = 0; i < 4000; ++i) {
      if (!live.empty() && random() % 5 < 2) {
        std::swap(live[random() % live.size()], live.back());
        in_use -= live.back()->size();
        pool.Free(live.back());
        live.pop_back();
      } else if (random() % 500 == 0) {
        pool.bfc().Release();
      } else {
        const std::size_t alignment = std::size_t{1} << (random() % 15);
        if (Allocation* taken = pool.Take(Request{
                1 + random() % (1U << (4 + random() % 18)), alignment})) {
          ASSERT_EQ(reinterpret_cast<std::uintptr_t>(taken->data()) % alignment,
                    0U);
          in_use += taken->size();
          live.push_back(taken);
        }
      }
      ASSERT_EQ(pool.bfc().stats().in_use_bytes, in_use);
      if (i % 20 == 0) {
        ASSERT_TRUE(pool.bfc().IsConsistent());
      }
    }
  }
}

TEST(BfcAllocatorTest, ABlockCostsAtMost128BytesOfMetadata) {
  EXPECT_LE(sizeof(Block) + RecordSlab::kNoteBytes, 128U);
  EXPECT_LE(sizeof(OrderedIndex), Kibibytes(70));
  const std::size_t before = RecordSlab::Noted().taken();
  BfcPool pool(BfcWhole(Mebibytes(4)));
  for (int i = 0; i < 5000; ++i) pool.Take(256);
  EXPECT_LE(RecordSlab::Noted().taken() - before, 5000U + 1100U);
}

}  // namespace
}  // namespace strata
