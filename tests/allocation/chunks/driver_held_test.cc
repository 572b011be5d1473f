// The chunk pool beside memory that a driver pool holds: claims, statistics and
// the two rungs of the ladder.

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "strata/allocation/chunks/memory_budget.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class FakeHeld final : public MemoryBudget::DriverHeld {
 public:
  std::size_t ReservedBytes() noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    return reserved;
  }
  bool is_own() const noexcept override { return own; }
  std::size_t PeakReservedBytes() noexcept override { return peak; }
  void ResetPeak() noexcept override { peak = reserved; }
  std::size_t IdleBytes() noexcept override { return idle; }
  std::size_t MoveWithinReach(Stream stream) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    mover = stream;
    ++moves;
    return moved;
  }
  std::size_t GiveBack() noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    ++trims;
    const std::size_t given = trims <= trims_that_give ? idle : 0;
    reserved -= given;
    idle -= given;
    return given;
  }

  bool own = true;
  std::size_t reserved = 0;
  std::size_t peak = 0;
  std::size_t idle = 0;
  std::size_t moved = 0;
  int trims_that_give = 1;
  int trims = 0;
  int moves = 0;
  Stream mover;
};

class DriverHeldTest : public ::testing::Test {
 protected:
  DriverHeldTest() {
    held_->reserved = held_->peak = Mebibytes(30);
    held_->idle = Mebibytes(20);
  }

  static PoolPlaceOptions Limited() {
    PoolPlaceOptions options;
    options.limit_bytes = Mebibytes(64);
    return options;
  }

  // Runs the ladder for a request of `bytes` that the limit refused.
  bool Climb(std::size_t bytes, const std::function<bool()>& search) {
    Failure failure;
    failure.reason = Failure::Reason::kLimit;
    failure.limit_bytes = Mebibytes(64);
    failure.reserved_bytes = Mebibytes(64);
    failure.rounded_bytes = bytes;
    return place_.reclaimer()->Climb(stream_, failure, search);
  }

  PoolPlace place_{Limited()};
  ChunkPool& pool_ = *place_.pool();
  std::shared_ptr<FakeHeld> held_ = std::make_shared<FakeHeld>();
  std::shared_ptr<MemoryBudget::DriverHeld> shared_ =
      pool_.budget().ShareDriverHeld([this] { return held_; });
  Stream stream_ = place_.NewStream();
};

TEST_F(DriverHeldTest, IsMadeOnceForThePlace) {
  EXPECT_EQ(pool_.budget().ShareDriverHeld(
                []() -> std::shared_ptr<MemoryBudget::DriverHeld> {
                  ADD_FAILURE() << "there is one already";
                  return nullptr;
                }),
            held_);
}

TEST_F(DriverHeldTest, IsNotKeptAliveByThePool) {
  shared_.reset();
  held_.reset();
  EXPECT_EQ(pool_.reserved_bytes(), 0U);
  const auto next = std::make_shared<FakeHeld>();
  EXPECT_EQ(pool_.budget().ShareDriverHeld([&] { return next; }), next);
}

TEST_F(DriverHeldTest, CountsAsReservedBesideChunks) {
  Failure failure;
  Allocation* chunk = pool_.TryAllocate(Request{Mebibytes(10)}, failure);
  EXPECT_EQ(pool_.reserved_bytes(), Mebibytes(40));
  EXPECT_EQ(pool_.stats().reserved_bytes, Mebibytes(40));
  EXPECT_EQ(pool_.stats().peak_reserved_bytes, Mebibytes(40));
  held_->reserved = Mebibytes(5);
  pool_.DoFree(chunk);
  pool_.ResetPeak();
  EXPECT_EQ(pool_.stats().peak_reserved_bytes, Mebibytes(5));
}

TEST_F(DriverHeldTest, ClaimsShareTheLimitWithChunks) {
  Failure failure;
  Allocation* chunk = pool_.TryAllocate(Request{Mebibytes(40)}, failure);
  EXPECT_TRUE(pool_.budget().Claim(Mebibytes(24), failure));
  EXPECT_FALSE(pool_.budget().Claim(1, failure));
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(failure.limit_bytes, Mebibytes(64));
  EXPECT_EQ(failure.reserved_bytes, Mebibytes(64));
  pool_.DoFree(chunk);
  EXPECT_TRUE(pool_.budget().Claim(Mebibytes(40), failure));
  pool_.budget().Unclaim(Mebibytes(64));
}

TEST_F(DriverHeldTest, ExhaustionFirstMovesWhatAStreamMayWaitFor) {
  held_->moved = Mebibytes(1);
  EXPECT_TRUE(Climb(Mebibytes(20), [&] { return held_->moves == 1; }));
  EXPECT_EQ(held_->mover, stream_);
  EXPECT_EQ(held_->trims, 0);
}

TEST_F(DriverHeldTest, ExhaustionTrims) {
  EXPECT_TRUE(Climb(Mebibytes(20), [&] { return held_->idle == 0; }));
  // Enough without a wait, so the second step is not run.
  EXPECT_EQ(held_->trims, 1);
}

TEST_F(DriverHeldTest, ExhaustionTrimsAgainAfterTheHoldersHaveWaited) {
  held_->trims_that_give = 0;
  EXPECT_FALSE(Climb(Mebibytes(20), [] { return false; }));
  EXPECT_GE(held_->trims, 2);
}

TEST_F(DriverHeldTest, AnImpossibleRequestMovesAndTrimsNothing) {
  held_->moved = Mebibytes(1);
  EXPECT_FALSE(Climb(Mebibytes(21), [] { return true; }));
  EXPECT_EQ(held_->moves, 0);
  EXPECT_EQ(held_->trims, 0);
}

// The limit applied to each separately.
TEST_F(DriverHeldTest, ChunksFitBesideWhatTheDriverHolds) {
  const AllocationPtr chunk = pool_.Allocate(Mebibytes(34));
  EXPECT_EQ(held_->trims, 0);
  // Only with memory that the driver does not need.
  const AllocationPtr next = pool_.Allocate(Mebibytes(20));
  EXPECT_EQ(held_->trims, 1);
  EXPECT_EQ(pool_.reserved_bytes(), Mebibytes(64));
  Failure failure;
  EXPECT_EQ(pool_.TryAllocate(Request{Mebibytes(1)}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
  EXPECT_EQ(failure.reserved_bytes, Mebibytes(64));
}

TEST_F(DriverHeldTest, WhatTheDriverGrewByFitsBesideRanges) {
  EXPECT_TRUE(pool_.budget().FitsBesideRanges());
  const AllocationPtr chunk = pool_.Allocate(Mebibytes(34));
  held_->reserved += Mebibytes(20);
  EXPECT_TRUE(pool_.budget().FitsBesideRanges());
  EXPECT_EQ(held_->trims, 1);
  held_->reserved += Mebibytes(1);
  EXPECT_FALSE(pool_.budget().FitsBesideRanges());
}

// Memory that others hold in a pool of the whole process does not count at the
// place.
TEST_F(DriverHeldTest, ASharedPoolIsNotBounded) {
  held_->own = false;
  const AllocationPtr chunk = pool_.Allocate(Mebibytes(60));
  EXPECT_TRUE(pool_.budget().FitsBesideRanges());
  EXPECT_EQ(held_->trims, 0);
}

TEST_F(DriverHeldTest, WithoutChunksTheDriverIsNotAsked) {
  held_->reserved = Mebibytes(100);
  EXPECT_TRUE(pool_.budget().FitsBesideRanges());
  EXPECT_EQ(held_->trims, 0);
}

}  // namespace
}  // namespace strata
