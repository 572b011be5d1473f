// Placement from two ends: tf_bfc.md R63 to R69.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "strata/strategy/bfc/bfc_allocator.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"

namespace strata {
namespace {

constexpr std::int64_t kPool = 64 * 1024;

BfcOptions TwoEnds() {
  BfcOptions options = BfcWhole(kPool);
  options.has_two_ends = true;
  return options;
}

class TwoEndedPool : public BfcPool {
 public:
  explicit TwoEndedPool(const BfcOptions& options = TwoEnds())
      : BfcPool(options) {}

  Allocation* Low(std::size_t bytes, std::size_t alignment = 0) {
    return Take(Request{bytes, alignment});
  }
  Allocation* High(std::size_t bytes, std::size_t alignment = 0) {
    return Take(Request{bytes, alignment, kUpperEnd});
  }
  // For a block that may be null.
  static std::int64_t FromEnd(const Allocation* allocation) {
    return allocation == nullptr ? -1 : kPool - Offset(allocation);
  }
};

TEST(BfcTwoEndsTest, TheGapIsCarvedExactlyFromBothSides) {  // R63, R65
  TwoEndedPool pool;
  EXPECT_EQ(pool.Offset(pool.Low(300)), 0);
  EXPECT_EQ(pool.FromEnd(pool.High(300)), 512);
  EXPECT_EQ(pool.Offset(pool.Low(256)), 512);
  const Allocation* high = pool.High(1000);
  EXPECT_EQ(pool.FromEnd(high), 512 + 1024);
  EXPECT_EQ(high->size(), 1024U);
  // Without ends, more than half of a region is not split.
  EXPECT_EQ(pool.Low(kPool / 2)->size(), static_cast<std::size_t>(kPool / 2));
}

TEST(BfcTwoEndsTest, AlignmentLeavesAHoleOfTheSameEnd) {  // R65
  TwoEndedPool pool;
  pool.Low(256);
  EXPECT_EQ(pool.Offset(pool.Low(256, 4096)), 4096);
  EXPECT_EQ(pool.Offset(pool.Low(3840)), 256);
  pool.High(256);
  EXPECT_EQ(pool.FromEnd(pool.High(256, 4096)), 4096);
  EXPECT_EQ(pool.FromEnd(pool.High(3584)), 4096 - 256);  // the suffix
  EXPECT_TRUE(pool.bfc().IsConsistent());
}

TEST(BfcTwoEndsTest, AnEndTakesItsOwnHolesOnly) {  // R64
  TwoEndedPool pool;
  Allocation* low_hole = pool.Low(1024);
  pool.Low(256);
  Allocation* high_hole = pool.High(512);
  pool.High(256);
  pool.Free(low_hole);
  pool.Free(high_hole);
  // The better fit belongs to the other end.
  EXPECT_EQ(pool.Offset(pool.Low(512)), 0);
  EXPECT_EQ(pool.FromEnd(pool.High(512)), 512);
  EXPECT_EQ(pool.FromEnd(pool.High(512)), 512 + 256 + 512);
}

TEST(BfcTwoEndsTest, WhatIsFreedBesideTheGapBecomesPartOfIt) {  // R68
  TwoEndedPool pool;
  Allocation* low = pool.Low(1024);
  Allocation* high = pool.High(1024);
  pool.Free(low);
  pool.Free(high);
  // The other end may use all of it now.
  EXPECT_EQ(pool.FromEnd(pool.High(kPool)), kPool);
}

TEST(BfcTwoEndsTest, HolesJoinTheGapInCascade) {  // R68
  TwoEndedPool pool;
  pool.Low(256);
  Allocation* hole = pool.Low(512);
  Allocation* innermost = pool.Low(256);
  pool.Free(hole);
  EXPECT_EQ(pool.High(kPool - 1024 + 256), nullptr);
  pool.Free(innermost);
  EXPECT_EQ(pool.FromEnd(pool.High(kPool - 256)), kPool - 256);
}

TEST(BfcTwoEndsTest, WithoutAGapAFreedBlockInTheMiddleMakesOne) {  // R68
  TwoEndedPool pool;
  Allocation* low = pool.Low(kPool / 2);
  pool.High(kPool / 2);
  EXPECT_EQ(pool.Low(256), nullptr);
  EXPECT_EQ(pool.High(256), nullptr);
  pool.Free(low);
  EXPECT_EQ(pool.FromEnd(pool.High(256)), kPool / 2 + 256);
}

TEST(BfcTwoEndsTest, UpperHolesAreReusedFromTheirHighEnd) {  // R67
  TwoEndedPool pool;
  Allocation* hole = pool.High(4096);
  pool.High(256);
  pool.Free(hole);
  EXPECT_EQ(pool.FromEnd(pool.High(1024)), 1024);
  // 3072 bytes are free. 2048 are more than half: allocated whole.
  const Allocation* whole = pool.High(2048);
  EXPECT_EQ(pool.FromEnd(whole), 4096);
  EXPECT_EQ(whole->size(), 3072U);
}

TEST(BfcTwoEndsTest, AnUpperHoleKeepsALittleBehindAnAlignedBlock) {  // R67
  TwoEndedPool pool;
  Allocation* hole = pool.High(16384 - 256);
  pool.High(256);
  pool.Free(hole);
  // Down to 4096 from the end, with 4096 − 1024 bytes behind it: not little.
  Allocation* aligned = pool.High(1024, 4096);
  EXPECT_EQ(pool.FromEnd(aligned), 4096);
  EXPECT_EQ(aligned->size(), 1024U);
  EXPECT_EQ(pool.FromEnd(pool.High(3072)), 3072);
  // 3072 bytes with 1024 behind them: padding.
  Allocation* padded = pool.High(3072, 4096);
  EXPECT_EQ(pool.FromEnd(padded), 8192);
  EXPECT_EQ(padded->size(), 4096U);
}

TEST(BfcTwoEndsTest, ExactEndsSplitWhateverIsLeft) {  // R66
  BfcOptions options = TwoEnds();
  options.lower.splits_exactly = options.upper.splits_exactly = true;
  TwoEndedPool pool(options);
  Allocation* low = pool.Low(1024);
  pool.Low(256);
  Allocation* high = pool.High(1024);
  pool.High(256);
  pool.Free(low);
  pool.Free(high);
  EXPECT_EQ(pool.Low(768)->size(), 768U);
  const Allocation* taken = pool.High(768);
  EXPECT_EQ(taken->size(), 768U);
  EXPECT_EQ(pool.FromEnd(taken), 768);
  EXPECT_EQ(pool.Offset(pool.Low(256)), 768);
}

TEST(BfcTwoEndsTest, TheHoleOrderDecidesAmongEqualSizes) {  // R66
  for (const bool descends : {false, true}) {
    BfcOptions options = TwoEnds();
    if (descends) {
      options.lower.hole_order = OrderedIndex::AddressOrder::kDescending;
    }
    TwoEndedPool pool(options);
    std::vector<Allocation*> taken;
    for (int i = 0; i < 5; ++i) taken.push_back(pool.Low(512));
    pool.Free(taken[0]);
    pool.Free(taken[2]);
    EXPECT_EQ(pool.Offset(pool.Low(512)), descends ? 1024 : 0);
  }
}

TEST(BfcTwoEndsTest, WithoutTwoEndsTheLowerPolicyHolds) {  // R66
  BfcOptions options = BfcWhole(kPool);
  options.lower.splits_exactly = true;
  BfcPool pool(options);
  EXPECT_EQ(pool.Take(kPool - 256)->size(),
            static_cast<std::size_t>(kPool) - 256);
  EXPECT_EQ(BfcPool::Offset(pool.Take(Request{256, 0, kUpperEnd})),
            kPool - 256);
}

TEST(BfcTwoEndsTest, ThereIsOneRegion) {  // R63
  BfcOptions options = TwoEnds();
  options.garbage_collection = false;
  BfcPool pool(options, [](ScriptedSystem& system) {
    system.capacity_bytes = kPool / 2;
  });
  EXPECT_NE(pool.Take(256), nullptr);
  pool.system().capacity_bytes = 4 * kPool;
  EXPECT_EQ(pool.Take(kPool / 2), nullptr);
  EXPECT_EQ(pool.RegionBytes().size(), 1U);
  EXPECT_STREQ(pool.failure().detail, "two ends have one region between them");
}

// The other end's block is large enough, but not available.
TEST(BfcTwoEndsTest, BlocksAreJoinedUntilTheRequestsOwnEndHasOne) {  // R39, R64
  BfcOptions options = TwoEnds();
  options.counter = std::make_shared<SharedCounter>();
  TwoEndedPool pool(options);
  Allocation* left = pool.Low(4096);
  Allocation* right = pool.Low(4096);
  Allocation* upper = pool.High(8192);
  pool.Low(kPool - 16384);
  for (Allocation* one : {upper, left, right}) pool.Free(one);
  EXPECT_EQ(pool.Offset(pool.Low(8192)), 0);
}

TEST(BfcTwoEndsTest, WithStampsABlockKeepsItsEndUntilItIsSafe) {  // R68
  BfcOptions options = TwoEnds();
  options.counter = std::make_shared<SharedCounter>();
  TwoEndedPool pool(options);
  Allocation* low = pool.Low(1024);
  pool.Free(low);
  Request high{static_cast<std::size_t>(kPool), 0, kUpperEnd};
  high.freed_before = 1;
  pool.bfc().SetSafeFrontier(1);
  EXPECT_EQ(pool.Take(high), nullptr);
  Allocation* again = pool.Low(1024);
  EXPECT_EQ(pool.Offset(again), 0);
  pool.Free(again);
  pool.bfc().SetSafeFrontier(3);
  EXPECT_EQ(pool.FromEnd(pool.Take(high)), kPool);
}

struct Step {
  bool is_upper;
  bool frees;
  std::size_t value;  // request size, or index of the block to free
  std::size_t alignment;
};

std::vector<Step> RandomSteps(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Step> steps;
  for (int i = 0; i < 600; ++i) {
    Step step;
    step.is_upper = random() % 2 == 0;
    step.frees = random() % 2 == 0;
    step.value = 1 + random() % 1500;
    step.alignment = random() % 6 == 0 ? 1024 : 0;
    steps.push_back(step);
  }
  return steps;
}

// The offsets of the requests of one end, with or without requests of the other
// end.
std::vector<std::int64_t> Offsets(const std::vector<Step>& steps, bool upper,
                                  bool with_other_end) {
  TwoEndedPool pool(TwoEnds());
  std::vector<Allocation*> live[2];
  std::vector<std::int64_t> offsets;
  for (const Step& step : steps) {
    if (step.is_upper != upper && !with_other_end) continue;
    std::vector<Allocation*>& own = live[step.is_upper ? 1 : 0];
    if (step.frees || own.size() > 12) {
      if (own.empty()) continue;
      std::swap(own[step.value % own.size()], own.back());
      pool.Free(own.back());
      own.pop_back();
      continue;
    }
    Allocation* taken = step.is_upper ? pool.High(step.value, step.alignment)
                                      : pool.Low(step.value, step.alignment);
    if (taken != nullptr) own.push_back(taken);
    if (step.is_upper == upper) offsets.push_back(pool.Offset(taken));
  }
  EXPECT_TRUE(pool.bfc().IsConsistent());
  return offsets;
}

TEST(BfcTwoEndsTest, EachEndsOffsetsDependOnItsOwnRequestsAlone) {  // R69
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::vector<Step> steps = RandomSteps(seed);
    for (const bool upper : {false, true}) {
      EXPECT_EQ(Offsets(steps, upper, false), Offsets(steps, upper, true))
          << seed;
    }
  }
}

TEST(BfcTwoEndsTest, NoMemoryIsForgotten) {  // R68, W7
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BfcOptions options = TwoEnds();
    const bool stamps = seed % 2 == 0;
    if (stamps) options.counter = std::make_shared<SharedCounter>();
    TwoEndedPool pool(options);
    std::mt19937_64 random(seed);
    std::vector<Allocation*> live;
    for (int i = 0; i < 2000; ++i) {
      if (stamps && random() % 20 == 0) {
        pool.bfc().SetSafeFrontier(random() % (options.counter->Get() + 2));
      }
      if (!live.empty() && random() % 2 == 0) {
        std::swap(live[random() % live.size()], live.back());
        pool.Free(live.back());
        live.pop_back();
      } else {
        Request request{1 + random() % 5000};
        if (random() % 2 == 0) request.flags = kUpperEnd;
        if (random() % 8 == 0) request.alignment = 2048;
        if (stamps && random() % 3 == 0) {
          request.freed_before = options.counter->Get() / 2;
        }
        if (Allocation* one = pool.Take(request)) live.push_back(one);
      }
      if (i % 10 == 0) {
        ASSERT_TRUE(pool.bfc().IsConsistent()) << seed << " " << i;
      }
    }
    for (Allocation* one : live) pool.Free(one);
    pool.bfc().SetSafeFrontier(100'000);
    EXPECT_NE(pool.High(kPool), nullptr) << seed;
  }
}

}  // namespace
}  // namespace strata
