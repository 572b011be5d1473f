// How BfcAllocator reserves and releases memory: tf_bfc.md R15 to R26, R31 to
// R34, R44, W4 to W6, with their worked examples number for number.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <ostream>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/strategy/bfc/bfc_allocator.h"
#include "strata/strategy/shared/shared_order.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BfcGrowthTest, RegionsDoubleUpToTheLimit) {  // R15, R19, R22
  BfcPool pool(BfcLimit(64 * kMiB));
  for (int i = 0; i < 64; ++i) ASSERT_NE(pool.Take(kMiB), nullptr);
  EXPECT_EQ(pool.Take(kMiB), nullptr);
  EXPECT_THAT(pool.system().TakeAsked(),
              ElementsAre(2 * kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB, 32 * kMiB,
                          2 * kMiB));
  EXPECT_EQ(pool.hint_bytes(), 128 * kMiB);
}

TEST(BfcGrowthTest, ALimitThatIsNoMultipleOfTheGranuleIsCut) {  // R16, R22
  BfcPool pool(BfcLimit(10 * kMiB + 100));
  for (int i = 0; i < 10; ++i) ASSERT_NE(pool.Take(kMiB), nullptr);
  EXPECT_EQ(pool.Take(kMiB), nullptr);
  EXPECT_THAT(pool.system().TakeAsked(),
              ElementsAre(2097152, 4194304, 4194304));
  EXPECT_EQ(pool.hint_bytes(), 16 * kMiB);
}

TEST(BfcGrowthTest, ALargeFirstRequestGetsItsWholeRegion) {  // R17, R22
  BfcPool pool(BfcLimit(Gibibytes(1)));
  EXPECT_EQ(pool.Take(100 * kMiB)->size(), 128 * kMiB);
  EXPECT_EQ(pool.hint_bytes(), 128 * kMiB);
  EXPECT_EQ(pool.Take(100 * kMiB)->size(), 128 * kMiB);
  EXPECT_THAT(pool.system().TakeAsked(), ElementsAre(128 * kMiB, 128 * kMiB));
  EXPECT_EQ(pool.hint_bytes(), 256 * kMiB);
}

TEST(BfcGrowthTest, ARefusedRegionIsAskedForATenthSmaller) {  // R18, R23
  BfcPool pool(BfcWhole(Gibibytes(1)), [](ScriptedSystem& system) {
    system.capacity_bytes = 600 * kMiB;
  });
  EXPECT_NE(pool.Take(4096), nullptr);
  EXPECT_THAT(pool.system().TakeAsked(),
              ElementsAre(1073741824, 966367744, 869731072, 782758144,
                          704482304, 634034176, 570630912));
}

struct RefusalCase {
  BfcOptions options;
  std::size_t request;
  std::size_t calls;
};

std::ostream& operator<<(std::ostream& out, const RefusalCase& one) {
  return out << one.calls << " calls";
}

class BfcRefusalTest : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(BfcRefusalTest, GivesUpOnceTheRequestWouldNotFit) {  // R18, R23, W4
  BfcPool pool(GetParam().options,
               [](ScriptedSystem& system) { system.most_bytes = 0; });
  EXPECT_EQ(pool.Take(GetParam().request), nullptr);
  EXPECT_EQ(pool.system().calls(), GetParam().calls);
  EXPECT_EQ(pool.failure().reason, Failure::Reason::kDeviceMemory);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, BfcRefusalTest,
    ::testing::Values(RefusalCase{BfcWhole(Gibibytes(1)), 4096, 123},
                      RefusalCase{BfcLimit(Gibibytes(1)), 4096, 64},
                      RefusalCase{BfcWhole(Gibibytes(80)), 256, 179},
                      // W4: the original spins forever.
                      RefusalCase{BfcWhole(2304), 256, 9}));

TEST(BfcGrowthTest, TheOldWayAsksForLessOnceInItsLife) {  // R18
  BfcOptions options = BfcLimit(Gibibytes(1));
  options.backpedal = BfcBackpedal::kOnce;
  BfcPool pool(options,
               [](ScriptedSystem& system) { system.most_bytes = kMiB; });
  EXPECT_NE(pool.Take(kMiB / 4), nullptr);
  EXPECT_EQ(pool.system().TakeAsked().size(), 8U);  // 2 MiB · 0.9^7
  EXPECT_NE(pool.Take(kMiB / 2), nullptr);
  EXPECT_EQ(pool.Take(kMiB / 2), nullptr);
  EXPECT_THAT(pool.system().TakeAsked(), ElementsAre(4 * kMiB));
}

TEST(BfcGrowthTest, NothingAboveTheLimitIsAskedFor) {  // R16
  BfcPool pool(BfcLimit(4 * kMiB));
  EXPECT_EQ(pool.Take(4 * kMiB + 1), nullptr);
  EXPECT_EQ(pool.failure().reason, Failure::Reason::kLimit);
  EXPECT_EQ(pool.failure().limit_bytes, 4 * kMiB);
  EXPECT_THAT(pool.system().TakeAsked(), IsEmpty());
}

TEST(BfcGrowthTest, WithoutGrowthThereIsOneRegion) {  // R21
  BfcPool pool(BfcWhole(4 * kMiB));
  EXPECT_NE(pool.Take(3 * kMiB), nullptr);
  EXPECT_EQ(pool.Take(2 * kMiB), nullptr);
  EXPECT_THAT(pool.system().TakeAsked(), ElementsAre(4 * kMiB));
}

// W5: the original doubles its hint until it is 0, and then loops forever. With
// a system of at most 1 MiB per call, 43 requests succeed, and the 44th never
// returns.
TEST(BfcGrowthTest, TheHintDoesNotWrapWhenRegionsStaySmall) {  // W5
  BfcPool pool(BfcLimit(Gibibytes(1)),
               [](ScriptedSystem& system) { system.most_bytes = kMiB; });
  for (int i = 0; i < 200; ++i) ASSERT_NE(pool.Take(kMiB / 2), nullptr) << i;
  EXPECT_EQ(pool.hint_bytes(), Gibibytes(2));
}

// Allocates multiples of `granularity` bytes.
class CoarseSystem final : public Decorator {
 public:
  CoarseSystem(std::shared_ptr<Allocator> system, std::size_t granularity)
      : Decorator(std::move(system)), granularity_(granularity) {}
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    Request larger = request;
    larger.bytes = AlignUp(request.bytes, granularity_);
    return Decorator::TryAllocate(larger, failure);
  }
  const char* name() const override { return "coarse"; }

 private:
  const std::size_t granularity_;
};

TEST(BfcGrowthTest, WhatTheSystemGivesMoreIsUsed) {  // R20, W6
  auto pool = std::make_shared<ChunkPool>(
      std::make_shared<CoarseSystem>(std::make_shared<ScriptedSystem>(),
                                     2 * kMiB),
      0, nullptr);
  BfcAllocator bfc(pool, std::make_shared<ChainStream>(), BfcWhole(3 * kMiB));
  Failure failure;
  Allocation* one = bfc.TryAllocate(Request{2 * kMiB}, failure);
  EXPECT_EQ(bfc.GetNumbers().pool_bytes, 4 * kMiB);
  EXPECT_EQ(bfc.GetNumbers().peak_pool_bytes, 4 * kMiB);
  Allocation* two = bfc.TryAllocate(Request{2 * kMiB}, failure);
  EXPECT_NE(two, nullptr);
  // The rest of the limit is 0, not 2^64 − 1 MiB.
  EXPECT_EQ(bfc.TryAllocate(Request{256}, failure), nullptr);
  EXPECT_EQ(pool->reserved_bytes(), 4 * kMiB);
  bfc.DoFree(one);
  bfc.DoFree(two);
}

TEST(BfcGrowthTest, IdleRegionsAreExchangedForALargerOne) {  // R32, R34
  BfcPool pool(BfcLimit(16 * kMiB));
  for (Allocation* one : pool.TakeMany({2 * kMiB, 2 * kMiB, 4 * kMiB})) {
    pool.Free(one);
  }
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(2 * kMiB, 4 * kMiB, 8 * kMiB));
  EXPECT_NE(pool.Take(12 * kMiB), nullptr);
  EXPECT_THAT(pool.system().TakeAsked(),
              ElementsAre(2 * kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB));
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(16 * kMiB));
  EXPECT_EQ(pool.hint_bytes(), 32 * kMiB);
}

TEST(BfcGrowthTest, RegionsStayIfAllOfThemWouldNotDo) {  // R32
  BfcPool pool(BfcLimit(16 * kMiB));
  pool.Take(2 * kMiB);
  pool.Free(pool.Take(4 * kMiB));
  EXPECT_EQ(pool.Take(15 * kMiB), nullptr);
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(2 * kMiB, 4 * kMiB));
}

TEST(BfcGrowthTest, RegionsGoEvenIfTheSystemThenRefuses) {  // R33
  BfcPool pool(BfcLimit(16 * kMiB));
  pool.Free(pool.Take(2 * kMiB));
  pool.system().most_bytes = kMiB;
  EXPECT_EQ(pool.Take(15 * kMiB), nullptr);
  EXPECT_THAT(pool.RegionBytes(), IsEmpty());
}

TEST(BfcGrowthTest, WithoutCollectionRegionsStay) {  // R31
  BfcOptions options = BfcLimit(16 * kMiB);
  options.garbage_collection = false;
  BfcPool pool(options);
  pool.Free(pool.Take(2 * kMiB));
  EXPECT_EQ(pool.Take(16 * kMiB), nullptr);
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(2 * kMiB));
}

TEST(BfcGrowthTest, RegionsThatFollowEachOtherJoinIfAsked) {  // R24, R25
  BfcOptions options = BfcLimit(16 * kMiB);
  options.coalesce_regions = true;
  BfcPool pool(options, [](ScriptedSystem& system) { system.gap_bytes = 0; });
  Allocation* low = pool.Take(2 * kMiB);
  Allocation* tail = pool.Take(kMiB);  // in the next 4 MiB
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(6 * kMiB));
  EXPECT_TRUE(pool.bfc().IsConsistent());
  pool.Free(low);
  pool.Free(tail);
  // One block across both pieces of the region.
  Allocation* across = pool.Take(5 * kMiB);
  EXPECT_EQ(BfcPool::Offset(across), 0);
  EXPECT_EQ(BfcPool::Offset(across), BfcPool::Offset(across));
  EXPECT_EQ(across->base(), across->data());
  EXPECT_EQ(pool.system().held_bytes(), 6 * kMiB);
  pool.Free(across);
  EXPECT_EQ(pool.bfc().Release(), 6 * kMiB);
  EXPECT_EQ(pool.system().held_bytes(), 0U);
}

TEST(BfcGrowthTest, TheFreeTailOfARegionJoinsTheNextOne) {  // R24
  BfcOptions options = BfcLimit(16 * kMiB);
  options.coalesce_regions = true;
  BfcPool pool(options, [](ScriptedSystem& system) { system.gap_bytes = 0; });
  pool.Take(kMiB);
  // 1 MiB of the first region and 4 MiB of the second one.
  EXPECT_EQ(BfcPool::Offset(pool.Take(3 * kMiB)),
            static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(pool.bfc().Snapshot().chunks.size(), 2U);
}

TEST(BfcGrowthTest, RegionsApartStayApart) {  // R24
  BfcOptions options = BfcLimit(16 * kMiB);
  options.coalesce_regions = true;
  BfcPool pool(options);
  pool.TakeMany({2 * kMiB, 2 * kMiB});
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(2 * kMiB, 4 * kMiB));
}

TEST(BfcGrowthTest, ReleaseGivesIdleRegionsBack) {
  BfcPool pool(BfcLimit(64 * kMiB));
  Allocation* low = pool.Take(2 * kMiB);
  Allocation* middle = pool.Take(4 * kMiB);
  pool.Take(8 * kMiB);
  pool.Free(low);
  EXPECT_EQ(pool.bfc().Release(), 2 * kMiB);
  pool.Free(middle);
  EXPECT_EQ(pool.bfc().Release(), 4 * kMiB);
  EXPECT_EQ(pool.bfc().Release(), 0U);
  EXPECT_THAT(pool.RegionBytes(), ElementsAre(8 * kMiB));
}

// The original releases memory only for a larger region.
TEST(BfcGrowthTest, GivingBackAgainAndAgainTakesNoMore) {
  BfcPool pool(BfcLimit(1024 * kMiB));
  for (int i = 0; i < 20; ++i) {
    Allocation* block = pool.Take(kMiB);
    EXPECT_THAT(pool.RegionBytes(), ElementsAre(2 * kMiB));
    pool.Free(block);
    EXPECT_EQ(pool.bfc().Release(), 2 * kMiB);
  }
  // Likewise if a block stays live.
  pool.Take(2 * kMiB);
  for (int i = 0; i < 20; ++i) {
    Allocation* block = pool.Take(kMiB);
    EXPECT_THAT(pool.RegionBytes(), ElementsAre(2 * kMiB, 4 * kMiB));
    pool.Free(block);
    EXPECT_EQ(pool.bfc().Release(), 4 * kMiB);
  }
}

TEST(BfcGrowthTest, TheLadderGetsIdleRegions) {
  const auto reclaimer = std::make_shared<Reclaimer>();
  BfcPool pool(BfcLimit(64 * kMiB), {}, reclaimer);
  pool.Free(pool.Take(8 * kMiB));
  Failure failure;
  failure.reason = Failure::Reason::kLimit;
  failure.rounded_bytes = 8 * kMiB;
  reclaimer->Climb(Stream(), failure, [] { return true; });
  EXPECT_EQ(pool.system().held_bytes(), 0U);
}

TEST(BfcGrowthTest, NoGrowthMeansNoCall) {
  BfcPool pool(BfcLimit(64 * kMiB));
  EXPECT_EQ(pool.Take(Request{256, 0, kNoGrowth}), nullptr);
  EXPECT_EQ(pool.failure().reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(pool.system().calls(), 0U);
}

// Each call of the pool fails once, and leaves the earlier state unchanged.
TEST(BfcGrowthTest, ARefusedCallLeavesEverythingAsItWas) {
  BfcOptions options = BfcLimit(64 * kMiB);
  options.backpedal = BfcBackpedal::kOnce;
  for (std::size_t nth = 1; nth <= 6; ++nth) {
    BfcPool pool(options,
                 [nth](ScriptedSystem& system) { system.refused_call = nth; });
    std::size_t in_use = 0;
    for (int i = 0; i < 40; ++i) {
      const BfcSnapshot before = pool.bfc().Snapshot();
      const Allocation* taken = pool.Take(kMiB);
      ASSERT_TRUE(pool.bfc().IsConsistent());
      if (taken == nullptr) {
        const BfcSnapshot after = pool.bfc().Snapshot();
        EXPECT_EQ(after.chunks.size(), before.chunks.size());
        EXPECT_EQ(after.action_count, before.action_count);
        EXPECT_EQ(after.numbers.pool_bytes, before.numbers.pool_bytes);
      } else {
        in_use += taken->size();
      }
      EXPECT_EQ(pool.bfc().GetNumbers().bytes_in_use, in_use);
    }
    EXPECT_GE(in_use, 38 * kMiB);
  }
}

TEST(BfcGrowthTest, TheDevicesMemoryIsTheLimitIfNoneIsGiven) {
  PoolPlaceOptions options;
  options.memory_bytes = 64 * kMiB;
  const PoolPlace place(options);
  BfcOptions whole;
  whole.allow_growth = false;
  BfcAllocator bfc(place.pool(), std::make_shared<SharedOrder>(place.device()),
                   whole);
  EXPECT_EQ(place.DeviceCalls(), 0U);
  Failure failure;
  Allocation* one = bfc.TryAllocate(Request{256}, failure);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(bfc.GetNumbers().bytes_limit, 64 * kMiB);
  EXPECT_EQ(bfc.GetNumbers().pool_bytes, 64 * kMiB);
  EXPECT_EQ(bfc.TryAllocate(Request{64 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.device_total_bytes, 64 * kMiB);
  EXPECT_EQ(failure.device_free_bytes, 0U);
  bfc.DoFree(one);
}

TEST(BfcGrowthTest, ARuleMakesTheLimitOfTheDevicesMemory) {  // R59
  PoolPlaceOptions options;
  options.memory_bytes = 64 * kMiB;
  const PoolPlace place(options);
  BfcOptions half;
  half.limit_of = [](std::size_t free_bytes, std::size_t total_bytes) {
    EXPECT_EQ(HeldLocks(), 0);
    EXPECT_EQ(free_bytes, total_bytes);
    return BfcMemoryLimit{total_bytes / 4, total_bytes / 2};
  };
  BfcAllocator bfc(place.pool(), std::make_shared<SharedOrder>(place.device()),
                   half);
  Failure failure;
  EXPECT_EQ(bfc.TryAllocate(Request{33 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(failure.limit_bytes, 32 * kMiB);
}

TEST(BfcGrowthTest, APoolThatStartsSmallerThanItsLimitCanGrowToIt) {  // R61
  const PoolPlace place;
  BfcOptions part;
  part.allow_growth = false;
  part.limit_of = [](std::size_t /*free_bytes*/, std::size_t /*total_bytes*/) {
    return BfcMemoryLimit{8 * kMiB, 32 * kMiB};
  };
  BfcAllocator bfc(place.pool(), std::make_shared<SharedOrder>(place.device()),
                   part);
  std::vector<Allocation*> live;
  Failure failure;
  while (Allocation* one = bfc.TryAllocate(Request{4 * kMiB}, failure)) {
    live.push_back(one);
  }
  EXPECT_EQ(live.size(), 8U);
  EXPECT_EQ(bfc.Snapshot().regions[0].size, 8 * kMiB);
  for (Allocation* one : live) bfc.DoFree(one);
}

TEST(BfcGrowthTest, ThePoolsLimitIsTheLimitIfNoneIsGiven) {
  PoolPlaceOptions options;
  options.limit_bytes = 10 * kMiB;
  const PoolPlace place(options);
  BfcAllocator bfc(place.pool(), std::make_shared<SharedOrder>(place.device()),
                   BfcOptions());
  EXPECT_EQ(bfc.GetNumbers().bytes_limit, 10 * kMiB);
}

TEST(BfcGrowthTest, ADeviceThatDoesNotAnswerIsAFailureOfTheDevice) {
  const PoolPlace place;
  BfcAllocator bfc(place.pool(), std::make_shared<SharedOrder>(place.device()),
                   BfcOptions());
  place.device().AddFault(FailNth(DeviceCall::kMemGetInfo, 1));
  Failure failure;
  EXPECT_EQ(bfc.TryAllocate(Request{256}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
  EXPECT_EQ(failure.requested_bytes, 256U);
  place.device().ClearFaults();
  Allocation* one = bfc.TryAllocate(Request{256}, failure);
  ASSERT_NE(one, nullptr);
  bfc.DoFree(one);
}

TEST(BfcGrowthTest, MemoryWithoutALimitCannotBeTakenWhole) {
  const auto pool = std::make_shared<ChunkPool>(
      std::make_shared<ScriptedSystem>(), 0, nullptr);
  EXPECT_THROW(BfcAllocator(pool, std::make_shared<ChainStream>(), BfcWhole(0)),
               std::invalid_argument);
}

// One region uses the whole limit. A thread that arrives while another thread
// allocates the region must not fail.
TEST(BfcGrowthThreadsTest, ThreadsThatStartTogetherShareTheOneRegion) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 20; ++round) {
    BfcPool pool(BfcWhole(8 * kMiB));
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    std::atomic<int> served{0};
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        Failure failure;
        Allocation* one = pool.bfc().TryAllocate(Request{kMiB}, failure);
        if (one == nullptr) return;
        ++served;
        pool.bfc().DoFree(one);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(served, kThreads);
    EXPECT_EQ(pool.system().calls(), 1U);
  }
}

TEST(BfcGrowthThreadsTest, TheLimitHoldsWhateverThreadsDo) {
  BfcPool pool(BfcLimit(32 * kMiB));
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&pool, seed] {
      std::minstd_rand random(seed + 1);
      std::vector<Allocation*> live;
      for (int i = 0; i < 1500; ++i) {
        if (random() % 100 == 0) pool.bfc().Release();
        if (!live.empty() && random() % 2 == 0) {
          pool.bfc().DoFree(live.back());
          live.pop_back();
        } else {
          Failure failure;
          if (Allocation* one = pool.bfc().TryAllocate(
                  Request{1 + random() % (3 * kMiB)}, failure)) {
            live.push_back(one);
          }
        }
        EXPECT_LE(pool.system().held_bytes(), 32 * kMiB);
      }
      for (Allocation* one : live) pool.bfc().DoFree(one);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(pool.bfc().IsConsistent());
  EXPECT_EQ(pool.bfc().GetNumbers().bytes_in_use, 0U);
  pool.bfc().Release();
  EXPECT_EQ(pool.system().held_bytes(), 0U);
}

// A visitor of the pool that allocates while its thread grows must not wait for
// itself.
TEST(BfcGrowthThreadsTest, GrowthWithinGrowthIsRefused) {
  BfcPool pool(BfcLimit(64 * kMiB));
  Failure inner;
  pool.pool().AddVisitor(
      [&](void* /*data*/, std::size_t /*bytes*/, int change) {
        if (change < 0) return;
        EXPECT_EQ(pool.bfc().TryAllocate(Request{64 * kMiB}, inner), nullptr);
      });
  EXPECT_NE(pool.Take(256), nullptr);
  EXPECT_EQ(inner.reason, Failure::Reason::kBadRequest);
}

}  // namespace
}  // namespace strata
