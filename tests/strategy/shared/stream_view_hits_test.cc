// The hit path of a stream's view: requests that bypass the layers, with parked
// and other blocks.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "strata/tests/strategy/shared/stream_view_fixture.h"

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
    const HitGuard guard(*path);
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
  const HitGuard guard(*path);
  EXPECT_EQ(path->Take(4096), nullptr);
}

TEST_F(StreamViewHitsTest, AnotherStreamWaitsForWhatAHitGave) {
  Block* block = a_->Allocate(4096).release()->block();
  const void* const data = block->data;
  Work(*a_);
  {
    const HitGuard guard(*a_->hit_path());
    EXPECT_TRUE(a_->hit_path()->Give(block));
  }
  const AllocationPtr other = b_->Allocate(4096);
  EXPECT_EQ(other->data(), data);
  EXPECT_EQ(Waits(), 1U);
}

// DESIGN §4: a block freed on stream A stays in A's list, reusable at once.
TEST_F(StreamViewHitsTest, AHitParksAndTakesWhatIsParked) {
  UseBoth();
  Block* const block = a_->Allocate(4096).release()->block();
  const void* const data = block->data;
  Work(*a_);
  const std::uint64_t calls = place_.DeviceCalls();
  {
    const HitGuard guard(*a_->hit_path());
    EXPECT_TRUE(a_->hit_path()->Give(block));
  }
  EXPECT_TRUE(place_.frees()->any());
  EXPECT_EQ(a_->stats().live_allocations(), 0U);
  EXPECT_NE(b_->Allocate(4096)->data(), data);
  {
    const HitGuard guard(*a_->hit_path());
    Block* const again = a_->hit_path()->Take(4000);
    ASSERT_EQ(again, block);
    EXPECT_EQ(again->requested, 4000U);
  }
  EXPECT_EQ(a_->stats().requested_bytes, 4000U);
  // B has searched for it.
  EXPECT_GE(place_.DeviceCalls(), calls);
  a_->DoFree(block->allocation());
}

// A hit holds the lock of its stream, and takes no other lock for parked
// blocks. So no drain runs while it is held, even if the work is complete.
TEST_F(StreamViewHitsTest, TheLockOfAStreamGuardsWhatItParked) {
  UseBoth();
  Block* const block = a_->Allocate(Mebibytes(20)).release()->block();
  std::atomic<bool> is_draining{false};
  std::thread other;
  {
    const HitGuard guard(*a_->hit_path());
    const std::uint64_t in_use = strategy_->stats().in_use_bytes;
    EXPECT_TRUE(a_->hit_path()->Give(block));
    other = std::thread([&] {
      device().StepAll();
      is_draining = true;
      place_.frees()->Drain();
    });
    while (!is_draining) std::this_thread::yield();
    for (int i = 0; i < 5000; ++i) {
      std::this_thread::yield();
      // For the strategy, parked blocks are in use.
      EXPECT_EQ(strategy_->stats().in_use_bytes, in_use) << i;
    }
    EXPECT_EQ(a_->hit_path()->Take(Mebibytes(20)), block);
    EXPECT_TRUE(a_->hit_path()->Give(block));
  }
  other.join();
  place_.frees()->Await();
  EXPECT_LT(strategy_->stats().in_use_bytes, Mebibytes(20));
}

// The lock may be in use for hits all the time, or a thread may own it.
TEST_F(StreamViewHitsTest, WhoDrainsTakesNoLockOfAStreamThatParkedNothing) {
  UseBoth();
  device().StepAll();
  place_.frees()->Await();
  b_->Allocate(Mebibytes(20)).reset();
  std::promise<void> is_held;
  std::promise<void> is_over;
  std::thread holder([&] {
    const HitGuard guard(*a_->hit_path());
    is_held.set_value();
    is_over.get_future().wait();
  });
  is_held.get_future().wait();
  const std::size_t bytes = place_.frees()->Drain();
  device().StepAll();
  EXPECT_GE(bytes + place_.frees()->Await(), Mebibytes(20));
  EXPECT_FALSE(place_.frees()->any());
  is_over.set_value();
  holder.join();
}

// A destroyed view leaves its parked blocks.
TEST_F(StreamViewHitsTest, WhatAViewParkedOutlivesIt) {
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
TEST_F(StreamViewHitsTest, AnotherStreamHasWhatAHitParkedOnceTheWorkIsDone) {
  UseBoth();
  const std::uint64_t waits = Waits();
  Block* const block = a_->Allocate(Mebibytes(20)).release()->block();
  const void* const data = block->data;
  Work(*a_);
  {
    const HitGuard guard(*a_->hit_path());
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
  a_->Allocate(4096).reset();
  const std::uint64_t before = device().CallCount(DeviceCall::kEventRecord);
  int walks = 0;
  for (int i = 0; i < 640; ++i) {
    Block* const block = a_->Allocate(4096).release()->block();
    bool is_given = false;
    {
      const std::uint64_t calls = place_.DeviceCalls();
      const HitGuard guard(*a_->hit_path());
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

// Blocks that a hit took from the strategy could not be parked, because only
// walks had reserved room.
TEST_F(StreamViewHitsTest, AHitTakesNoMoreThanCanBeParked) {
  UseBoth();
  {
    // Free memory of the strategy, ordered behind both streams.
    const AllocationPtr both = a_->Allocate(Mebibytes(1));
  }
  device().StepAll();
  place_.frees()->Await();
  std::vector<Block*> held;
  for (int i = 0; i < 40; ++i) {
    Block* block = nullptr;
    {
      const HitGuard guard(*a_->hit_path());
      block = a_->hit_path()->Take(4096);
    }
    if (block == nullptr) block = a_->Allocate(4096).release()->block();
    held.push_back(block);
  }
  const std::size_t before = place_.frees()->deferred().blocks;
  for (Block* const block : held) a_->DoFree(block->allocation());
  EXPECT_EQ(place_.frees()->deferred().blocks, before + 40);
}

TEST_F(StreamViewHitsTest, WhileCapturesAreAnnouncedEveryCallWalks) {
  Block* const block = a_->Allocate(4096).release()->block();
  UseBoth();
  place_.timelines()->gate().Announce();
  {
    const HitGuard guard(*a_->hit_path());
    EXPECT_EQ(a_->hit_path()->Take(4096), nullptr);
    EXPECT_FALSE(a_->hit_path()->Give(block));
  }
  EXPECT_EQ(a_->stats().live_allocations(), 1U);
  a_->DoFree(block->allocation());
  place_.timelines()->gate().Withdraw();
}

// No thread would drain it.
TEST_F(StreamViewHitsTest, NoHitParksOnceTheFacadeHasLetGo) {
  UseBoth();
  Block* const block = a_->Allocate(4096).release()->block();
  place_.frees()->Close();
  {
    const HitGuard guard(*a_->hit_path());
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
    const HitGuard guard(*b.hit_path());
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

}  // namespace
}  // namespace strata
