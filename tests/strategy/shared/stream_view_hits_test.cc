// The hit path of a stream's view: requests that bypass the layers, with
// deferred and other blocks.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/strategy/shared/stream_view_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using StreamViewHitsTest = StreamViewTest;

// While one stream is the only one in use, the front of its chain need not
// walk.
TEST_F(StreamViewHitsTest, AStreamAloneHasAHitPath) {
  a_->Allocate(4096).reset();
  HitPath* const path = a_->hit_path();
  ASSERT_NE(path, nullptr);
  const std::uint64_t calls = place_.DeviceCalls();
  {
    const std::lock_guard<ChainLock> guard(*path->hit_lock());
    Block* const block = path->Take(4000);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->requested, 4000U);
    EXPECT_TRUE(path->Give(block));
  }
  EXPECT_EQ(place_.DeviceCalls(), calls);
  EXPECT_EQ(a_->stats().allocations, 2U);
  EXPECT_EQ(a_->stats().frees, 2U);
  EXPECT_EQ(a_->stats().requested_bytes, 0U);
  EXPECT_EQ(strategy_->stats().in_use_bytes, 0U);
}

TEST_F(StreamViewHitsTest, TheFirstRequestOfAStreamIsNoHit) {
  a_->Allocate(4096).reset();
  HitPath* const path = b_->hit_path();
  const std::lock_guard<ChainLock> guard(*path->hit_lock());
  EXPECT_EQ(path->Take(4096), nullptr);
}

TEST_F(StreamViewHitsTest, AnotherStreamWaitsForWhatAHitGave) {
  Block* block = a_->Allocate(4096).release()->block();
  const void* const data = block->data;
  Work(*a_);
  {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    EXPECT_TRUE(a_->hit_path()->Give(block));
  }
  const AllocationPtr other = b_->Allocate(4096);
  EXPECT_EQ(other->data(), data);
  EXPECT_EQ(Waits(), 1U);
}

// DESIGN §4: a block freed on stream A stays in A's list, reusable at once.
TEST_F(StreamViewHitsTest, AHitDefersAFreeAndTakesADeferredBlock) {
  UseBoth();
  Block* const block = a_->Allocate(4096).release()->block();
  const void* const data = block->data;
  Work(*a_);
  const std::uint64_t calls = place_.DeviceCalls();
  {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    EXPECT_TRUE(a_->hit_path()->Give(block));
  }
  EXPECT_TRUE(place_.frees()->any());
  EXPECT_EQ(a_->stats().live_allocations(), 0U);
  EXPECT_NE(b_->Allocate(4096)->data(), data);
  {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    Block* const again = a_->hit_path()->Take(4000);
    ASSERT_EQ(again, block);
    EXPECT_EQ(again->requested, 4000U);
  }
  EXPECT_EQ(a_->stats().requested_bytes, 4000U);
  // B has searched for it.
  EXPECT_GE(place_.DeviceCalls(), calls);
  a_->DoFree(block->allocation());
}

// The lock may be in use for hits all the time, or a thread may own it.
TEST_F(StreamViewHitsTest, WhoDrainsTakesNoLockOfAStream) {
  UseBoth();
  device().StepAll();
  place_.frees()->Await();
  a_->Allocate(Mebibytes(20)).reset();
  std::promise<void> is_held;
  std::promise<void> is_over;
  std::thread holder([&] {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    is_held.set_value();
    is_over.get_future().wait();
  });
  is_held.get_future().wait();
  EXPECT_GE(place_.frees()->Drain(), Mebibytes(20));
  EXPECT_FALSE(place_.frees()->any());
  is_over.set_value();
  holder.join();
}

// A destroyed view leaves its deferred blocks.
TEST_F(StreamViewHitsTest, DeferredBlocksOutliveTheirView) {
  UseBoth();
  a_->Allocate(Mebibytes(20)).reset();
  Work(*a_);
  a_.reset();
  EXPECT_GE(place_.frees()->deferred().bytes, Mebibytes(20));
  device().StepAll();
  EXPECT_GE(place_.frees()->Await(), Mebibytes(20));
  EXPECT_EQ(place_.frees()->deferred().blocks, 0U);
}

// A stream that reuses its only block repeatedly does not touch the place. Only
// the next check clears the deferred state.
TEST_F(StreamViewHitsTest, WhatIsTakenBackIsNotDeferred) {
  UseBoth();
  device().StepAll();
  place_.frees()->Await();
  EXPECT_FALSE(place_.frees()->any());
  AllocationPtr block = a_->Allocate(Mebibytes(20));
  block.reset();
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  EXPECT_EQ(place_.frees()->deferred().bytes, Mebibytes(20));
  block = a_->Allocate(Mebibytes(20));
  EXPECT_EQ(place_.frees()->deferred().blocks, 0U);
  EXPECT_EQ(place_.frees()->deferred().bytes, 0U);
  EXPECT_TRUE(place_.frees()->any());
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  EXPECT_FALSE(place_.frees()->any());
}

// DESIGN §4: a block from a hit becomes available to others when A's event is
// complete.
TEST_F(StreamViewHitsTest, AnotherStreamGetsTheBlockThatAHitDeferred) {
  UseBoth();
  const std::uint64_t waits = Waits();
  Block* const block = a_->Allocate(Mebibytes(20)).release()->block();
  const void* const data = block->data;
  Work(*a_);
  {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    EXPECT_TRUE(a_->hit_path()->Give(block));
  }
  const AllocationPtr other = b_->Allocate(Mebibytes(20));
  EXPECT_NE(other->data(), data);
  device().StepAll();
  const AllocationPtr again = b_->Allocate(Mebibytes(20));
  EXPECT_EQ(again->data(), data);
  EXPECT_EQ(Waits(), waits);
}

// DESIGN §5: one event per batch, and no device call under a lock.
TEST_F(StreamViewHitsTest, AHitLeavesTheEventOfABatchToAWalk) {
  UseBoth();
  device().StepAll();
  place_.frees()->Await();
  Work(*a_);
  const std::uint64_t before = device().CallCount(DeviceCall::kEventRecord);
  int walks = 0;
  for (int i = 0; i < 640; ++i) {
    Block* const block = a_->Allocate(4096).release()->block();
    bool is_given = false;
    {
      const std::uint64_t calls = place_.DeviceCalls();
      const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
      is_given = a_->hit_path()->Give(block);
      EXPECT_EQ(place_.DeviceCalls(), calls);
    }
    if (is_given) continue;
    ++walks;
    a_->DoFree(block->allocation());
  }
  EXPECT_EQ(walks, 10);
  EXPECT_EQ(device().CallCount(DeviceCall::kEventRecord) - before, 10U);
}

TEST_F(StreamViewHitsTest, WhileCapturesAreAnnouncedEveryCallWalks) {
  Block* const block = a_->Allocate(4096).release()->block();
  UseBoth();
  place_.timelines()->gate().Announce();
  {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    EXPECT_EQ(a_->hit_path()->Take(4096), nullptr);
    EXPECT_FALSE(a_->hit_path()->Give(block));
  }
  EXPECT_EQ(a_->stats().live_allocations(), 1U);
  a_->DoFree(block->allocation());
  place_.timelines()->gate().Withdraw();
}

// No thread would drain it.
TEST_F(StreamViewHitsTest, NoHitDefersAFreeOnceTheFacadeHasClosed) {
  UseBoth();
  Block* const block = a_->Allocate(4096).release()->block();
  place_.frees()->Close();
  {
    const std::lock_guard<ChainLock> guard(*a_->hit_path()->hit_lock());
    EXPECT_FALSE(a_->hit_path()->Give(block));
  }
  a_->DoFree(block->allocation());
}

// The stream that freed the block is destroyed, but its work may be pending.
TEST_F(StreamViewHitsTest, AHitDoesNotOvertakeAStreamThatIsGone) {
  auto a =
      std::make_unique<StreamView>(strategy_, order_, place_.NewChainStream());
  StreamView b(strategy_, order_, place_.NewChainStream());
  const AllocationPtr first = b.Allocate(256);
  AllocationPtr block = a->Allocate(4096);
  const void* const data = block->data();
  Work(*a);
  block.reset();
  a.reset();
  const auto hit = [&b] {
    const std::lock_guard<ChainLock> guard(*b.hit_path()->hit_lock());
    return b.hit_path()->Take(4096);
  };
  EXPECT_EQ(hit(), nullptr);
  EXPECT_EQ(b.stats().live_allocations(), 1U);
  const std::uint64_t waits = Waits();
  block = b.Allocate(4096);
  EXPECT_EQ(block->data(), data);
  EXPECT_GT(Waits(), waits);
  block.reset();
  Block* const again = hit();
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->data, data);
  b.DoFree(again->allocation());
}

// Hits of one stream, while others are created and destroyed, frees are drained
// and statistics are read.
class StreamViewThreadsTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Strategies, StreamViewThreadsTest,
                         ::testing::Values("bfc", "naive_best_fit", "pool",
                                           "thread_local"));

TEST_P(StreamViewThreadsTest, HitsAndOtherStreamsShareTheStrategy) {
  constexpr int kRounds = 200;
  constexpr std::size_t kBytes = 4096;
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb = 8;
  PoolPlace place;
  StrategySource source(GetParam(), place.pool(), options, place.frees());
  const std::shared_ptr<Allocator> a = source.For(place.NewChainStream());
  a->Allocate(kBytes).reset();
  std::atomic<bool> stop{false};
  std::thread hits([&] {
    HitPath& path = *a->hit_path();
    while (!stop) {
      std::vector<Block*> taken;
      for (int i = 0; i < 8; ++i) {
        const std::lock_guard<ChainLock> guard(*path.hit_lock());
        if (Block* const block = path.Take(kBytes)) taken.push_back(block);
      }
      for (Block* const block : taken) {
        bool is_given = false;
        {
          const std::lock_guard<ChainLock> guard(*path.hit_lock());
          is_given = path.Give(block);
        }
        if (!is_given) a->DoFree(block->allocation());
      }
      a->Allocate(kBytes).reset();
    }
  });
  std::thread looks([&] {
    while (!stop) {
      const Stats stats = source.shared()->stats();
      EXPECT_LE(stats.largest_free_bytes, stats.reserved_bytes);
      source.shared()->Release();
      place.frees()->Drain();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const std::shared_ptr<Allocator> b = source.For(place.NewChainStream());
    const AllocationPtr first = b->Allocate(kBytes);
    const AllocationPtr second = b->Allocate(2 * kBytes);
    EXPECT_NE(first->data(), second->data());
  }
  stop = true;
  hits.join();
  looks.join();
  place.frees()->Close();
  EXPECT_EQ(source.shared()->stats().in_use_bytes, 0U);
}

}  // namespace
}  // namespace strata
