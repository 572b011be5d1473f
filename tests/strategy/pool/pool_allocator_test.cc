// How the strategy pool caches and releases pieces. The rules are those of
// tf_bfc.md §2, PoolAllocator.

#include "strata/strategy/pool/pool_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

class PoolAllocatorTest : public ::testing::Test {
 protected:
  struct Settings {
    std::uint64_t size_limit = 100;
    bool auto_resize = false;
    std::string rounder = "none";
    std::uint64_t cached_limit_bytes = 0;
    PlaceKind kind = PlaceKind::kPinned;
    std::string progress = "inline";
  };

  void Use(const Settings& settings) {
    TestPlaceOptions options;
    options.strategy = "pool";
    options.kind = settings.kind;
    options.progress = settings.progress;
    options.strategy_options.Edit<PoolOptions>().pool_size_limit =
        settings.size_limit;
    options.strategy_options.Edit<PoolOptions>().pool_auto_resize =
        settings.auto_resize;
    options.strategy_options.Edit<PoolOptions>().pool_rounder =
        settings.rounder;
    options.strategy_options.Edit<PoolOptions>().pool_cached_limit_bytes =
        settings.cached_limit_bytes;
    chain_ = TestChain();
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
  }
  AllocationPtr Get(std::size_t bytes) { return chain_->Allocate(bytes); }
  // Allocates and frees. Returns the address.
  void* Touch(std::size_t bytes) { return Get(bytes)->data(); }
  // The strategy, at places without a view for each stream.
  PoolAllocator& strategy() {
    Allocator* layer = chain_.strategy.get();
    if (std::string(layer->name()) == "stream_view") {
      layer = layer->underlying();
    }
    return dynamic_cast<PoolAllocator&>(*layer);
  }
  Stats stats() { return strategy().stats(); }
  std::uint64_t SystemCalls() {
    return place_->device().CallCount(DeviceCall::kMallocHost);
  }

  std::unique_ptr<TestPlace> place_;
  TestChain chain_;
};

// "exact-size multimap": only an equal size is reused.
TEST_F(PoolAllocatorTest, ReusesAPieceForTheSameSizeOnly) {
  Use({});
  void* first = Touch(1000);
  EXPECT_EQ(Get(1000)->data(), first);
  EXPECT_EQ(SystemCalls(), 1U);
  const AllocationPtr smaller = Get(999);
  EXPECT_NE(smaller->data(), first);
  EXPECT_EQ(SystemCalls(), 2U);
  EXPECT_EQ(smaller->size(), 999U);
}

TEST_F(PoolAllocatorTest, ReusesThePieceFreedLast) {
  Use({});
  AllocationPtr first = Get(1000);
  AllocationPtr second = Get(1000);
  void* last = second->data();
  first.reset();
  second.reset();
  EXPECT_EQ(Get(1000)->data(), last);
}

// "size rounded (NoopRounder)".
TEST_F(PoolAllocatorTest, RoundsNothingByDefault) {
  Use({});
  EXPECT_EQ(Get(1001)->size(), 1001U);
}

// "size rounded (Pow2Rounder)".
TEST_F(PoolAllocatorTest, RoundsToPowersOfTwoIfAsked) {
  Use({.rounder = "pow2"});
  for (const auto& [asked, given] : {std::pair<std::size_t, std::size_t>{1, 1},
                                     {3, 4},
                                     {1024, 1024},
                                     {1025, 2048}}) {
    const AllocationPtr allocation = Get(asked);
    EXPECT_EQ(allocation->size(), given) << asked;
    EXPECT_EQ(allocation->requested_bytes(), asked);
  }
  Touch(700);
  EXPECT_EQ(stats().cache_hits, 1U);  // the piece of 1024 bytes
}

TEST_F(PoolAllocatorTest, RefusesAnUnknownRounder) {
  EXPECT_THROW(Use({.rounder = "odd"}), std::invalid_argument);
}

// "16-B prefix in memory": here the record replaces the prefix, so the user
// gets the whole memory of the system.
TEST_F(PoolAllocatorTest, KeepsNothingInTheMemoryItself) {
  Use({});
  const AllocationPtr allocation = Get(4096);
  EXPECT_EQ(allocation->data(), allocation->base());
  EXPECT_EQ(place_->pool()->reserved_bytes(), 4096U);
}

// "limit 0 = bypass (counters stay 0)".
TEST_F(PoolAllocatorTest, ALimitOfZeroKeepsNothingAndCountsNothing) {
  Use({.size_limit = 0, .auto_resize = true});
  Touch(1000);
  Touch(1000);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
  EXPECT_EQ(SystemCalls(), 2U);
  EXPECT_EQ(stats().cache_hits, 0U);
  EXPECT_EQ(stats().cache_misses, 0U);
  EXPECT_EQ(strategy().evictions(), 0U);
  EXPECT_EQ(strategy().size_limit(), 0U);
}

// "free → evict LRU while size ≥ limit".
// A caller took a piece that it cannot use. Meanwhile, another free filled the
// cache.
TEST_F(PoolAllocatorTest, APieceThatIsPutBackIsKeptBeyondTheLimit) {
  Use({.size_limit = 1, .kind = PlaceKind::kHost});
  AllocationPtr one = Get(1000);
  AllocationPtr other = Get(1000);
  one.reset();
  HitPath& hits = *strategy().hit_path();
  Block* const taken = hits.Take(1000);
  ASSERT_NE(taken, nullptr);
  other.reset();
  hits.PutBack(taken);
  EXPECT_TRUE(strategy().IsConsistent());
  EXPECT_EQ(strategy().stats().in_use_bytes, 0U);
  EXPECT_NE(Get(1000), nullptr);
}

TEST_F(PoolAllocatorTest, GivesUpWhatWasKeptLongest) {
  Use({.size_limit = 2});
  AllocationPtr one = Get(100);
  AllocationPtr two = Get(200);
  AllocationPtr three = Get(300);
  two.reset();
  one.reset();
  three.reset();  // evicts 200
  EXPECT_EQ(strategy().evictions(), 1U);
  EXPECT_EQ(stats().free_blocks, 2U);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 400U);
  const std::uint64_t calls = SystemCalls();
  Touch(100);
  Touch(300);
  EXPECT_EQ(SystemCalls(), calls);
  Touch(200);
  EXPECT_EQ(SystemCalls(), calls + 1);
}

TEST_F(PoolAllocatorTest, AHitMakesAPieceYoungAgain) {
  Use({.size_limit = 2});
  AllocationPtr one = Get(100);
  AllocationPtr two = Get(200);
  one.reset();
  two.reset();
  Touch(100);
  Touch(300);  // evicts 200, not 100
  const std::uint64_t calls = SystemCalls();
  Touch(100);
  EXPECT_EQ(SystemCalls(), calls);
}

TEST_F(PoolAllocatorTest, ALimitOnBytesGivesUpTheOldestToo) {
  Use({.cached_limit_bytes = 1000});
  AllocationPtr one = Get(600);
  AllocationPtr two = Get(300);
  AllocationPtr three = Get(200);
  one.reset();
  two.reset();
  three.reset();  // evicts 600
  EXPECT_EQ(stats().idle_bytes, 500U);
  EXPECT_EQ(strategy().evictions(), 1U);
}

TEST_F(PoolAllocatorTest, APieceAboveTheLimitOnBytesDisplacesNoOther) {
  Use({.cached_limit_bytes = 1000});
  Touch(900);
  Touch(1001);
  EXPECT_EQ(stats().idle_bytes, 900U);
  EXPECT_EQ(strategy().evictions(), 0U);
}

// Frees one piece of each of `sizes` sizes, one after the other.
void Cycle(TestChain& chain, std::size_t sizes, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (std::size_t size = 1; size <= sizes; ++size) {
      chain->Allocate(size * 64).reset();
    }
  }
}

// "Auto-resize every 1000 evictions: if evicted/put > 0.002 and
// allocated/(allocated+got) > 0.002: limit = … 1.1×limit, counters reset".
TEST_F(PoolAllocatorTest, TheLimitGrowsByATenthAfterAThousandEvictions) {
  Use({.size_limit = 200, .auto_resize = true});
  // Every free after the first 200 evicts a piece: 201 sizes in LRU order.
  Cycle(chain_, 201, 5);
  EXPECT_EQ(strategy().evictions(), 5U * 201 - 200);
  EXPECT_EQ(strategy().size_limit(), 200U);
  Cycle(chain_, 201, 1);
  EXPECT_EQ(strategy().size_limit(), 220U);
  EXPECT_TRUE(strategy().IsConsistent());
}

// "limit = limit<100 ? 100".
TEST_F(PoolAllocatorTest, ASmallLimitGrowsToAHundred) {
  Use({.size_limit = 3, .auto_resize = true});
  Cycle(chain_, 50, 20);
  EXPECT_EQ(strategy().size_limit(), 3U);
  Cycle(chain_, 50, 1);
  EXPECT_EQ(strategy().size_limit(), 100U);
}

TEST_F(PoolAllocatorTest, TheLimitStaysIfItMayNotGrow) {
  Use({.size_limit = 3, .auto_resize = false});
  Cycle(chain_, 50, 60);
  EXPECT_GT(strategy().evictions(), 2000U);
  EXPECT_EQ(strategy().size_limit(), 3U);
}

// "evicted/put > 0.002": rare evictions are acceptable.
TEST_F(PoolAllocatorTest, TheLimitStaysWhileEvictionsAreRare) {
  Use({.size_limit = 1, .auto_resize = true, .kind = PlaceKind::kHost});
  // Two evictions in 1200 frees.
  for (int i = 0; i < 520; ++i) {
    for (int j = 0; j < 1199; ++j) Touch(64);
    Touch(128);
  }
  EXPECT_GT(strategy().evictions(), 1000U);
  EXPECT_EQ(strategy().size_limit(), 1U);
}

// Frees `count` pieces of new sizes, each after 599 hits.
void TouchFreshSizes(TestChain& chain, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    for (int j = 0; j < 599; ++j) chain->Allocate(64).reset();
    chain->Allocate(100'000 + 64 * i).reset();
  }
}

// Rare "evicted/put" alone keeps the limit, although many live pieces were
// misses.
TEST_F(PoolAllocatorTest, TheLimitStaysWhileEvictionsAreRareAndMissesAreNot) {
  Use({.size_limit = 100, .auto_resize = true, .kind = PlaceKind::kHost});
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 5000; ++i) live.push_back(Get(32));
  TouchFreshSizes(chain_, 1200);
  EXPECT_GT(strategy().evictions(), 1000U);
  EXPECT_EQ(strategy().size_limit(), 100U);
  live.clear();
}

// Rare "allocated/(allocated+got)" alone keeps it: no request misses the
// evicted pieces.
TEST_F(PoolAllocatorTest, TheLimitStaysWhileMissesAreRareAndEvictionsAreNot) {
  Use({.size_limit = 100, .auto_resize = true, .kind = PlaceKind::kHost});
  std::vector<AllocationPtr> live;
  for (std::size_t i = 0; i < 1100; ++i) live.push_back(Get(100'000 + 64 * i));
  // Growth resets the misses.
  while (strategy().size_limit() == 100) Cycle(chain_, 101, 1);
  EXPECT_EQ(strategy().size_limit(), 110U);
  // The rest of that cycle missed too. Compared with these hits, that is
  // negligible.
  for (int i = 0; i < 100'000; ++i) Touch(64);
  const std::uint64_t before = strategy().evictions();
  live.clear();
  EXPECT_GE(strategy().evictions() - before, 1000U);
  EXPECT_EQ(strategy().size_limit(), 110U);
}

// "counters reset": rates at the old limit do not count at the new one.
TEST_F(PoolAllocatorTest, AfterGrowingTheRatesStartAnew) {
  Use({.size_limit = 100, .auto_resize = true, .kind = PlaceKind::kHost});
  while (strategy().size_limit() == 100) Cycle(chain_, 101, 1);
  const std::uint64_t before = strategy().evictions();
  TouchFreshSizes(chain_, 1200);
  EXPECT_GT(strategy().evictions() - before, 1000U);
  EXPECT_EQ(strategy().size_limit(), 110U);
}

// W19 (tf #8560): a working set above the limit must not miss forever.
TEST_F(PoolAllocatorTest, W19AWorkingSetAboveTheLimitIsHeldInTheEnd) {
  Use({.size_limit = 100, .auto_resize = true, .kind = PlaceKind::kHost});
  Cycle(chain_, 400, 60);
  EXPECT_GE(strategy().size_limit(), 400U);
  const std::uint64_t misses = stats().cache_misses;
  Cycle(chain_, 400, 2);
  EXPECT_LE(stats().cache_misses - misses, 400U);
  const std::uint64_t settled = stats().cache_misses;
  Cycle(chain_, 400, 2);
  EXPECT_EQ(stats().cache_misses, settled);
}

// W19 (tf #6111): resizing was logged at each step.
TEST_F(PoolAllocatorTest, W19LogsNothing) {
  Use({.size_limit = 3, .auto_resize = true, .kind = PlaceKind::kHost});
  ::testing::internal::CaptureStderr();
  Cycle(chain_, 300, 40);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(strategy().size_limit(), 3U);
}

// W19 (tf #11915): cached pieces of a pool must not make a request fail.
TEST_F(PoolAllocatorTest, W19ExhaustionTakesWhatIsKept) {
  Use({.kind = PlaceKind::kDevice});
  std::vector<AllocationPtr> live;
  for (std::size_t mib = 1; mib <= 20; ++mib)
    live.push_back(Get(Mebibytes(mib)));
  live.clear();
  EXPECT_EQ(stats().idle_bytes, Mebibytes(210));
  const AllocationPtr large = Get(Mebibytes(250));
  EXPECT_NE(large->data(), nullptr);
  EXPECT_EQ(stats().idle_bytes, 0U);
}

TEST_F(PoolAllocatorTest, AHitNeedsNeitherHeapNorSystem) {
  Use({});
  Touch(1000);
  const std::uint64_t calls = place_->DeviceCalls();
  const HeapCallCounter heap;
  for (int i = 0; i < 100; ++i) {
    Failure failure;
    Allocation* allocation = chain_->TryAllocate(Request{1000}, failure);
    chain_->DoFree(allocation);
  }
  EXPECT_EQ(heap.calls(), 0U);
  EXPECT_EQ(place_->DeviceCalls(), calls);
}

TEST_F(PoolAllocatorTest, AlignsTo256BytesAtEveryPlace) {
  for (const PlaceKind kind : {PlaceKind::kHost, PlaceKind::kPinned,
                               PlaceKind::kDevice, PlaceKind::kManaged}) {
    Use({.kind = kind});
    std::vector<AllocationPtr> live;
    for (const std::size_t bytes : {1U, 17U, 1000U}) {
      live.push_back(Get(bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(live.back()->data()) % 256,
                0U);
    }
    EXPECT_GE(strategy().natural_alignment(), 256U);
  }
}

TEST_F(PoolAllocatorTest, CountsWhatItKeeps) {
  Use({});
  const AllocationPtr live = Get(1000);
  Touch(500);
  const Stats now = stats();
  EXPECT_EQ(now.allocations, 2U);
  EXPECT_EQ(now.frees, 1U);
  EXPECT_EQ(now.in_use_bytes, 1000U);
  EXPECT_EQ(now.peak_in_use_bytes, 1500U);
  EXPECT_EQ(now.idle_bytes, 500U);
  EXPECT_EQ(now.reserved_bytes, 1500U);
  EXPECT_EQ(now.free_blocks, 1U);
  EXPECT_EQ(now.largest_free_bytes, 500U);
  EXPECT_EQ(now.chunks, 2U);
  EXPECT_EQ(now.cache_misses, 2U);
}

class BlockLog final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& /*layer*/,
                   const std::vector<BlockInfo>& seen) override {
    blocks.insert(blocks.end(), seen.begin(), seen.end());
  }
  std::vector<BlockInfo> blocks;
};

TEST_F(PoolAllocatorTest, ShowsEveryPieceInAddressOrder) {
  Use({});
  const AllocationPtr live = Get(1000);
  void* kept = Touch(500);
  BlockLog log;
  strategy().Accept(log);
  ASSERT_EQ(log.blocks.size(), 2U);
  EXPECT_LT(log.blocks[0].data, log.blocks[1].data);
  for (const BlockInfo& block : log.blocks) {
    EXPECT_EQ(block.is_free(), block.data == kept);
    EXPECT_EQ(block.size_bytes, block.is_free() ? 500U : 1000U);
    EXPECT_EQ(block.chunk_base, block.data);
  }
}

TEST_F(PoolAllocatorTest, ARefusedMissChangesNothing) {
  Use({});
  Touch(1000);
  const Stats before = stats();
  place_->device().AddFault(FailNth(DeviceCall::kMallocHost, 1));
  Failure failure;
  EXPECT_EQ(chain_->AllocateOrNull(Request{2000, 0, kNoRetry}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kHostMemory);
  EXPECT_EQ(failure.requested_bytes, 2000U);
  EXPECT_EQ(stats().in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(stats().idle_bytes, before.idle_bytes);
  EXPECT_EQ(stats().failures, before.failures + 1);
  EXPECT_TRUE(strategy().IsConsistent());
}

TEST_F(PoolAllocatorTest, RandomOperationsKeepItConsistent) {
  for (const std::uint64_t cached_limit : {0U, 20'000U}) {
    Use({.size_limit = 7,
         .auto_resize = true,
         .rounder = cached_limit == 0 ? "none" : "pow2",
         .cached_limit_bytes = cached_limit,
         .kind = PlaceKind::kHost});
    std::mt19937_64 random(3);
    LiveRanges ranges;
    std::vector<AllocationPtr> live;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t what = random() % 1000;
      if (what == 0) {
        chain_->Release();
        ASSERT_EQ(stats().idle_bytes, 0U);
      } else if (!live.empty() && (live.size() > 40 || what < 500)) {
        std::swap(live[random() % live.size()], live.back());
        ASSERT_TRUE(ranges.Remove(*live.back()));
        live.pop_back();
      } else {
        live.push_back(Get(1 + random() % 60 * (1 + random() % 60)));
        ASSERT_TRUE(ranges.Add(*live.back()));
      }
      if (i % 500 == 0) {
        ASSERT_TRUE(strategy().IsConsistent()) << i;
      }
      ASSERT_TRUE(cached_limit == 0 || stats().idle_bytes <= cached_limit);
    }
  }
}

TEST_F(PoolAllocatorTest, ThreadsShareIt) {
  Use({.size_limit = 10, .auto_resize = true, .kind = PlaceKind::kHost});
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([this, id] {
      std::mt19937_64 random(id);
      std::vector<AllocationPtr> live;
      for (int i = 0; i < 3000; ++i) {
        if (!live.empty() && random() % 2 == 0) {
          live.pop_back();
        } else {
          live.push_back(Get(64 * (1 + random() % 50)));
          *static_cast<std::uint64_t*>(live.back()->data()) = id;
        }
        if (i % 700 == 0) chain_->Release();
        for (const AllocationPtr& one : live) {
          ASSERT_EQ(*static_cast<std::uint64_t*>(one->data()), id);
        }
        if (live.size() > 20) live.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(strategy().IsConsistent());
  EXPECT_EQ(stats().live_allocations(), 0U);
  chain_->Release();
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

}  // namespace
}  // namespace strata
