// naive_best_fit over a place: sizes, chunks, huge blocks. Rule numbers are
// those of paddle.md §3.4.

#include "strata/strategy/buddy/naive_best_fit_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/visitor.h"
#include "strata/base/size.h"
#include "strata/tests/strategy/buddy/naive_best_fit_fixture.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rule 1, §3.2-6: the memory contains no header, so only rounding adds bytes,
// and addresses are aligned (the original's are 64 mod 256).
TEST_F(NaiveBestFitTest, Rule1ResultsAreRoundedTo256AndAligned) {
  Use(64, Chunks(1, 1));
  std::vector<AllocationPtr> live;
  for (const std::size_t bytes : {1U, 256U, 257U, 4096U}) {
    live.push_back(Get(bytes));
    EXPECT_EQ(live.back()->size(), AlignUp(bytes, 256));
    EXPECT_EQ(live.back()->requested_bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(live.back()->data()) % 256, 0U);
  }
}

TEST_F(NaiveBestFitTest, Rule1HostAndPinnedBlocksAreLarger) {
  Use(64, StrategyOptions(), PlaceKind::kHost);
  EXPECT_EQ(Get(1)->size(), Kibibytes(4));
  Use(64, StrategyOptions(), PlaceKind::kPinned);
  EXPECT_EQ(Get(1)->size(), Kibibytes(64));
}

// Rule 2, but the blocks are counted.
TEST_F(NaiveBestFitTest, Rule2HugeBlocksAreTheSystemsOwnAndCounted) {
  Use(64, Chunks(4, 4));
  const AllocationPtr small = Get(1000);
  AllocationPtr largest = Get(Mebibytes(4));
  EXPECT_EQ(naive_->huge_count(), 0U);
  AllocationPtr huge = Get(Mebibytes(4) + 1);
  EXPECT_EQ(naive_->huge_count(), 1U);
  EXPECT_EQ(huge->base(), huge->data());
  EXPECT_EQ(huge->requested_bytes(), Mebibytes(4) + 1);
  EXPECT_THAT(chunks_,
              ElementsAre(Mebibytes(4), Mebibytes(4), Mebibytes(4) + 256));
  EXPECT_EQ(naive_->stats().in_use_bytes,
            1024 + Mebibytes(4) + Mebibytes(4) + 256);
  EXPECT_EQ(naive_->stats().chunks, 3U);
  // Freed at once to the system, after the work that used it.
  const auto waits = place_->device().CallCount(DeviceCall::kStreamSynchronize);
  huge.reset();
  EXPECT_EQ(place_->device().CallCount(DeviceCall::kStreamSynchronize),
            waits + 1);
  EXPECT_EQ(place_->pool()->reserved_bytes(), Mebibytes(8));
  EXPECT_EQ(naive_->huge_count(), 0U);
  EXPECT_EQ(naive_->stats().in_use_bytes, 1024 + Mebibytes(4));
}

// Rule 4, with rule 5: a fraction of the memory available at that time.
TEST_F(NaiveBestFitTest, Rule4ChunksAreFractionsOfWhatIsAvailable) {
  Use(256, StrategyOptions());
  const std::size_t first = Fraction(Available());
  const AllocationPtr small = Get(1000);
  EXPECT_THAT(chunks_, ElementsAre(first));
  const AllocationPtr most = Get(first - 1024);
  const std::size_t second = Fraction(Available());
  EXPECT_LT(second, first);
  const AllocationPtr next = Get(1000);
  EXPECT_THAT(chunks_, ElementsAre(first, second));
}

TEST_F(NaiveBestFitTest, Rule4TheFlagsInMebibytesReplaceTheFraction) {
  Use(256, Chunks(8, 16));
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 3; ++i) live.push_back(Get(Mebibytes(8)));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(8), Mebibytes(16)));
  // Nothing is held any more: the next chunk is a first one.
  live.clear();
  EXPECT_EQ(naive_->Release(), Mebibytes(24));
  live.push_back(Get(1000));
  EXPECT_EQ(chunks_.back(), Mebibytes(8));
}

TEST_F(NaiveBestFitTest, Rule4ALargerRequestGetsAChunkOfItsSize) {
  Use(256, Chunks(8, 16));
  const AllocationPtr first = Get(Mebibytes(12));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(12)));
}

TEST_F(NaiveBestFitTest, Rule4TheHostsChunkIsFixed) {
  StrategyOptions options;
  options.Edit<BuddyOptions>().initial_cpu_memory_in_mb = 3;
  Use(64, options, PlaceKind::kHost);
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 3; ++i) live.push_back(Get(Mebibytes(2)));
  EXPECT_THAT(chunks_, ElementsAre(Mebibytes(3), Mebibytes(3), Mebibytes(3)));
}

// Rule 5, lazily: building makes no device query.
TEST_F(NaiveBestFitTest, Rule5BuildingMakesNoDeviceCall) {
  Use(64, StrategyOptions());
  EXPECT_EQ(place_->DeviceCalls(), 1U);  // the stream
  Get(1000).reset();
  const auto calls = place_->DeviceCalls();
  Get(1000).reset();
  EXPECT_EQ(place_->DeviceCalls(), calls);
}

TEST_F(NaiveBestFitTest, NoGrowthAsksTheSystemNothing) {
  Use(64, StrategyOptions());
  const auto calls = place_->DeviceCalls();
  Failure failure;
  EXPECT_EQ(naive_->AllocateOrNull(Request{1000, 0, kNoGrowth}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(place_->DeviceCalls(), calls);
  Get(1000).reset();
  EXPECT_NE(naive_->AllocateOrNull(Request{1000, 0, kNoGrowth}, failure),
            nullptr);
}

TEST_F(NaiveBestFitTest, AlignmentAbove256IsRefused) {
  Use(64, StrategyOptions());
  EXPECT_EQ(naive_->max_alignment(), 256U);
  EXPECT_THROW(naive_->Allocate(Request{1000, 512}), std::invalid_argument);
}

TEST_F(NaiveBestFitTest, BadOptionsAreRefusedWhenBuilding) {
  PoolPlace place;
  StrategyOptions options;
  options.Edit<BuddyOptions>().fraction_of_gpu_memory_to_use = 2;
  try {
    const NaiveBestFitAllocator bad(place.pool(), place.NewChainStream(),
                                    options);
    FAIL() << "a fraction of 2 is not one";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("fraction_of_gpu_memory_to_use"));
  }
}

class BlockLister final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& /*layer*/,
                   const std::vector<BlockInfo>& blocks) override {
    for (const BlockInfo& block : blocks) {
      if (!block.is_free()) in_use.insert(block.data);
    }
  }
  std::set<void*> in_use;
};

TEST_F(NaiveBestFitTest, AVisitorSeesHugeBlocksToo) {
  Use(64, Chunks(1, 1));
  std::vector<AllocationPtr> live;
  std::set<void*> expected;
  for (const std::size_t bytes :
       {std::size_t{1000}, Mebibytes(3), Kibibytes(900), Mebibytes(4)}) {
    live.push_back(Get(bytes));
    expected.insert(live.back()->data());
  }
  EXPECT_EQ(naive_->huge_count(), 2U);
  BlockLister lister;
  naive_->Accept(lister);
  EXPECT_EQ(lister.in_use, expected);
  live[1].reset();  // the huge block allocated first
  BlockLister after;
  naive_->Accept(after);
  EXPECT_EQ(after.in_use.size(), 3U);
}

TEST_F(NaiveBestFitTest, ServesThreadsTogether) {
  Use(64, Chunks(1, 1));
  LiveRanges ranges;
  const auto work = [&](unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<AllocationPtr> mine;
    for (int i = 0; i < 400; ++i) {
      if (random() % 50 == 0) naive_->Release();
      if (!mine.empty() && (random() % 2 == 0 || mine.size() > 15)) {
        std::swap(mine[random() % mine.size()], mine.back());
        EXPECT_TRUE(ranges.Remove(*mine.back()));
        mine.pop_back();
        continue;
      }
      Failure failure;
      // Some are huge.
      const std::size_t bytes = 1 + random() % (1U << (4 + random() % 18));
      AllocationPtr one = naive_->AllocateOrNull(Request{bytes}, failure);
      if (one == nullptr) {
        EXPECT_TRUE(failure.IsExhaustion());
        continue;
      }
      ASSERT_TRUE(ranges.Add(*one));
      mine.push_back(std::move(one));
    }
    for (const AllocationPtr& left : mine) EXPECT_TRUE(ranges.Remove(*left));
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(naive_->IsConsistent());
  EXPECT_EQ(naive_->stats().in_use_bytes, 0U);
  naive_->Release();
  EXPECT_EQ(place_->device().Leaks().allocations, 0U);
}

using NaiveBestFitDeathTest = NaiveBestFitTest;

// Rule 9.
TEST_F(NaiveBestFitDeathTest, Rule9FreeingTwiceNamesTheBlock) {
  Use(64, Chunks(1, 1));
  const AllocationPtr low = Get(4096);
  Allocation* twice = Get(4096).release();
  const AllocationPtr high = Get(4096);
  AllocationPtr(twice).reset();
  EXPECT_DEATH(naive_->DoFree(twice),
               "naive_best_fit: double free of 0x[0-9a-f]+ \\(4.0 KiB on "
               "device:0\\), which is .*kept whole there");
}

}  // namespace
}  // namespace strata
