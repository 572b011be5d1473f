// The front cache of a BfcAllocator: freed blocks that stay whole if the
// placement is free to choose, and the other requests that may use them
// (hotpath.md §6).

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/base/size.h"
#include "strata/strategy/bfc/options.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

constexpr std::size_t kPiece = Kibibytes(64);

// The result of the options, with one region of 1 MiB.
BfcOptions ReadWhole(StrategyOptions options) {
  options.Edit<BfcFlags>().bfc_memory_limit_bytes = kMiB;
  options.Edit<BfcFlags>().bfc_allow_growth = false;
  return ReadBfcOptions(options);
}

BfcOptions FastWhole(StrategyOptions options = {}) {
  options.Edit<BfcFlags>().bfc_placement = "fast";
  return ReadWhole(options);
}

std::uint64_t SplitsOfTenPairs(const BfcOptions& options) {
  BfcPool pool(options);
  for (int i = 0; i < 10; ++i) pool.Free(pool.Take(1000));
  EXPECT_EQ(pool.bfc().stats().cache_hits, 9U);
  return pool.bfc().stats().splits;
}

TEST(BfcFrontCacheTest, ABlockOfASizeThatComesAgainStaysWhole) {
  StrategyOptions options;
  EXPECT_EQ(SplitsOfTenPairs(FastWhole(options)), 2U);
  options.Edit<FrontCacheOptions>().front_cache = "speed";
  EXPECT_EQ(SplitsOfTenPairs(FastWhole(options)), 8U);
  options.Edit<FrontCacheOptions>().front_cache = "off";
  EXPECT_EQ(SplitsOfTenPairs(FastWhole(options)), 10U);
}

// Their addresses are promised: those of the original, or of the requested end.
TEST(BfcFrontCacheTest, NothingStaysWholeWhereAddressesArePromised) {
  StrategyOptions options;
  EXPECT_EQ(SplitsOfTenPairs(ReadWhole(options)), 10U);
  options.Edit<BfcFlags>().bfc_two_ended = true;
  EXPECT_EQ(SplitsOfTenPairs(FastWhole(options)), 10U);
}

TEST(BfcFrontCacheTest, AnUnknownModeIsRefused) {
  StrategyOptions options;
  options.Edit<FrontCacheOptions>().front_cache = "fast";
  EXPECT_THROW(FastWhole(options), std::invalid_argument);
  // Also if it would have no effect.
  EXPECT_THROW(ReadBfcOptions(options), std::invalid_argument);
}

// One region full of pieces of 64 KiB. The first two are in the cache.
class KeptBfcBlocksTest : public ::testing::Test {
 protected:
  explicit KeptBfcBlocksTest(const BfcOptions& options = FastWhole())
      : pool_(options) {
    for (int i = 0; i < 16; ++i) taken_.push_back(pool_.Take(kPiece));
    pool_.Free(taken_[0]);
    pool_.Free(taken_[1]);
  }

  BfcPool pool_;
  std::vector<Allocation*> taken_;
};

TEST_F(KeptBfcBlocksTest, TheLastFreedIsTheNextHandedOut) {
  Allocation* const first = pool_.Take(kPiece - 255);
  EXPECT_EQ(BfcPool::Offset(first), kPiece);
  EXPECT_EQ(BfcAllocator::RequestedSize(*first), kPiece - 255);
  EXPECT_EQ(BfcAllocator::AllocationId(*first), 17);
  EXPECT_EQ(BfcPool::Offset(pool_.Take(kPiece)), 0);
}

TEST_F(KeptBfcBlocksTest, AHitMakesNoHeapCall) {
  const HeapCallCounter heap;
  Failure failure;
  Allocation* const hit = pool_.bfc().TryAllocate(Request{kPiece}, failure);
  ASSERT_NE(hit, nullptr);
  pool_.bfc().DoFree(hit);
  EXPECT_EQ(heap.calls(), 0U);
}

TEST_F(KeptBfcBlocksTest, AreJoinedForARequestThatNothingElseMeets) {
  EXPECT_EQ(BfcPool::Offset(pool_.Take(2 * kPiece)), 0);
}

TEST_F(KeptBfcBlocksTest, AreJoinedForARequestThatMayNotGrow) {
  EXPECT_EQ(BfcPool::Offset(pool_.Take(Request{2 * kPiece, 0, kNoGrowth})), 0);
}

TEST_F(KeptBfcBlocksTest, AreJoinedForARequestThatIsAligned) {
  EXPECT_EQ(BfcPool::Offset(pool_.Take(Request{kPiece, 512})), 0);
}

TEST_F(KeptBfcBlocksTest, AreFreeInEveryNumber) {
  const Stats stats = pool_.bfc().stats();
  EXPECT_EQ(stats.in_use_bytes, 14 * kPiece);
  EXPECT_EQ(stats.free_blocks, 1U);
  EXPECT_EQ(stats.largest_free_bytes, 2 * kPiece);
  EXPECT_EQ(stats.allocations - stats.frees, 14U);
}

TEST_F(KeptBfcBlocksTest, AreFreeInTheNumbersOfTheOriginal) {
  const BfcSnapshot::Numbers numbers = pool_.bfc().GetNumbers();
  EXPECT_EQ(numbers.bytes_in_use, 14 * kPiece);
  EXPECT_EQ(numbers.largest_free_block_bytes, 2 * kPiece);
  EXPECT_EQ(numbers.num_allocs, 16U);
}

TEST_F(KeptBfcBlocksTest, AreFreeInASnapshot) {
  const BfcSnapshot snapshot = pool_.bfc().Snapshot();
  ASSERT_EQ(snapshot.chunks.size(), 15U);
  EXPECT_FALSE(snapshot.chunks[0].in_use);
  EXPECT_EQ(snapshot.chunks[0].size, 2 * kPiece);
}

class FreeBfcBlocks final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& layer,
                   const std::vector<BlockInfo>& blocks) override {
    if (layer.name() != std::string("bfc")) return;
    for (const BlockInfo& block : blocks) {
      if (block.is_free()) bytes.push_back(block.size_bytes);
    }
  }
  std::vector<std::size_t> bytes;
};

TEST_F(KeptBfcBlocksTest, AreListedAsFree) {
  FreeBfcBlocks free;
  pool_.bfc().Accept(free);
  EXPECT_EQ(free.bytes, std::vector<std::size_t>{2 * kPiece});
}

TEST_F(KeptBfcBlocksTest, AreTheLargestThatARefusalCouldHaveHad) {
  EXPECT_EQ(pool_.Take(3 * kPiece), nullptr);
  EXPECT_EQ(pool_.failure().largest_free_bytes, 2 * kPiece);
}

class IdleBfcRegionTest : public KeptBfcBlocksTest {
 protected:
  IdleBfcRegionTest() {
    for (std::size_t i = 2; i < taken_.size(); ++i) pool_.Free(taken_[i]);
  }
};

TEST_F(IdleBfcRegionTest, OfKeptBlocksGoesBack) {
  EXPECT_EQ(pool_.bfc().Release(), kMiB);
  EXPECT_EQ(pool_.system().held_bytes(), 0U);
  EXPECT_TRUE(pool_.bfc().IsConsistent());
}

TEST_F(IdleBfcRegionTest, OfKeptBlocksGoesBackBeforeOthersGrow) {
  EXPECT_EQ(pool_.pool().market().GiveBackBeforeGrowth(kMiB, 2), kMiB);
  EXPECT_EQ(pool_.system().held_bytes(), 0U);
}

TEST_F(IdleBfcRegionTest, OfKeptBlocksIsIdle) {
  EXPECT_EQ(pool_.bfc().stats().idle_bytes, kMiB);
}

// Half a MiB of the first few regions; the other blocks were joined, and are
// split again.
TEST_F(IdleBfcRegionTest, KeepsNoMoreThanTheLimit) {
  for (int i = 0; i < 16; ++i) pool_.Take(kPiece);
  EXPECT_EQ(pool_.bfc().stats().splits, 15U + 7U);
}

// It caches 128 KiB of 18 MiB, and half a MiB of the remaining 2 MiB.
TEST(BfcFrontCacheTest, TheLimitFollowsTheRegionsThatGo) {
  StrategyOptions options;
  options.Edit<BfcFlags>().bfc_placement = "fast";
  options.Edit<BfcFlags>().bfc_memory_limit_bytes = Mebibytes(18);
  BfcPool pool(ReadBfcOptions(options));
  pool.Take(kMiB);
  pool.Free(pool.Take(Mebibytes(12)));
  ASSERT_EQ(pool.bfc().Release(), Mebibytes(16));
  const std::uint64_t before = pool.bfc().stats().splits;
  for (Allocation* piece :
       pool.TakeMany(std::vector<std::size_t>(16, kPiece))) {
    pool.Free(piece);
  }
  pool.TakeMany(std::vector<std::size_t>(16, kPiece));
  EXPECT_EQ(pool.bfc().stats().splits - before, 15U + 7U);
}

TEST(BfcFrontCacheTest, IsEmptiedBeforeRegionsAreExchangedForALargerOne) {
  StrategyOptions options;
  options.Edit<BfcFlags>().bfc_placement = "fast";
  options.Edit<BfcFlags>().bfc_memory_limit_bytes = Mebibytes(4);
  BfcPool pool(ReadBfcOptions(options));
  for (int i = 0; i < 4; ++i) pool.Free(pool.Take(1000));
  ASSERT_EQ(pool.RegionBytes(), std::vector<std::size_t>{Mebibytes(2)});
  pool.Free(pool.Take(1000));
  EXPECT_EQ(pool.Take(Mebibytes(4))->size(), Mebibytes(4));
  EXPECT_EQ(pool.RegionBytes(), std::vector<std::size_t>{Mebibytes(4)});
}

// The first region is full. Four neighbours are freed, and all are cached.
TEST(BfcFrontCacheTest, IsEmptiedBeforeThePoolGrows) {
  StrategyOptions options;
  options.Edit<BfcFlags>().bfc_placement = "fast";
  options.Edit<BfcFlags>().bfc_memory_limit_bytes = Mebibytes(16);
  BfcPool pool(ReadBfcOptions(options));
  std::vector<Allocation*> taken =
      pool.TakeMany(std::vector<std::size_t>(32, kPiece));
  for (int i = 4; i < 8; ++i) pool.Free(taken[static_cast<std::size_t>(i)]);
  EXPECT_EQ(BfcPool::Offset(pool.Take(4 * kPiece)), 4 * kPiece);
  EXPECT_EQ(pool.RegionBytes(), std::vector<std::size_t>{Mebibytes(2)});
}

// All pieces have one size, so the same blocks are in use.
BfcSnapshot AfterPieces(const std::string& mode) {
  StrategyOptions options;
  options.Edit<FrontCacheOptions>().front_cache = mode;
  options.Edit<BfcFlags>().bfc_keep_annotations = true;
  BfcPool pool(FastWhole(options));
  for (std::size_t count = 1; count <= 12; ++count) {
    for (Allocation* piece :
         pool.TakeMany(std::vector<std::size_t>(count, kPiece - 100))) {
      pool.Free(piece);
    }
  }
  pool.TakeMany(std::vector<std::size_t>(3, kPiece));
  EXPECT_TRUE(pool.bfc().IsConsistent());
  return pool.bfc().Snapshot();
}

TEST(BfcFrontCacheTest, CountsWhatIsCountedWithoutIt) {
  const BfcSnapshot without = AfterPieces("off");
  const BfcSnapshot with = AfterPieces("speed");
  EXPECT_EQ(with.action_count, without.action_count);
  EXPECT_EQ(with.numbers.num_allocs, without.numbers.num_allocs);
  EXPECT_EQ(with.numbers.bytes_in_use, without.numbers.bytes_in_use);
  EXPECT_EQ(with.numbers.peak_bytes_in_use, without.numbers.peak_bytes_in_use);
  EXPECT_EQ(with.numbers.largest_alloc_size,
            without.numbers.largest_alloc_size);
  ASSERT_EQ(with.size_history.size(), without.size_history.size());
  for (std::size_t i = 0; i < with.size_history.size(); ++i) {
    EXPECT_EQ(with.size_history[i].action_count,
              without.size_history[i].action_count);
    EXPECT_EQ(with.size_history[i].in_use_bytes,
              without.size_history[i].in_use_bytes)
        << i;
  }
}

// Few sizes, so that many blocks are cached. No query runs until the end.
std::uint64_t SplitsOfRandomUse(const std::string& mode) {
  StrategyOptions options;
  options.Edit<BfcFlags>().bfc_placement = "fast";
  options.Edit<BfcFlags>().bfc_memory_limit_bytes = Mebibytes(8);
  options.Edit<FrontCacheOptions>().front_cache = mode;
  BfcPool pool(ReadBfcOptions(options));
  const std::vector<std::size_t> sizes{200, 3000, kPiece, 5 * kPiece};
  std::mt19937_64 random(5);
  std::vector<Allocation*> live;
  std::uint64_t in_use = 0;
  for (int i = 0; i < 4000; ++i) {
    if (!live.empty() && random() % 9 < 4) {
      std::swap(live[random() % live.size()], live.back());
      in_use -= live.back()->size();
      pool.Free(live.back());
      live.pop_back();
    } else if (random() % 500 == 0) {
      pool.bfc().Release();
    } else if (Allocation* taken = pool.Take(sizes[random() % sizes.size()])) {
      in_use += taken->size();
      live.push_back(taken);
    }
    if (i % 10 == 0) {
      EXPECT_TRUE(pool.bfc().IsConsistent()) << i;
    }
  }
  const Stats stats = pool.bfc().stats();
  EXPECT_EQ(stats.in_use_bytes, in_use);
  EXPECT_EQ(stats.allocations - stats.frees, live.size());
  EXPECT_TRUE(pool.bfc().IsConsistent());
  return stats.splits;
}

TEST(BfcFrontCacheTest, BlocksTileTheirRegionsWhileSomeAreKept) {
  const std::uint64_t without = SplitsOfRandomUse("off");
  EXPECT_LT(SplitsOfRandomUse("memory"), without);
  EXPECT_LT(SplitsOfRandomUse("speed"), without);
}

TEST(BfcFrontCacheTest, AnnotationsAreThoseOfTheRequestThatHasTheBlock) {
  StrategyOptions options;
  options.Edit<BfcFlags>().bfc_keep_annotations = true;
  BfcPool pool(FastWhole(options));
  for (int i = 0; i < 4; ++i) pool.Free(pool.Take(1000));
  EXPECT_TRUE(pool.bfc().Snapshot().chunks[0].annotation.empty());
  {
    const ScopedAnnotation layer("layer");
    pool.Free(pool.Take(1000));
    pool.Take(1000);
  }
  EXPECT_EQ(pool.bfc().Snapshot().chunks[0].annotation, "layer");
}

}  // namespace
}  // namespace strata
