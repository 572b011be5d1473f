#include "strata/allocation/streams/later_free.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class LaterFreesTest : public ::testing::Test {
 protected:
  Allocation* Take() {
    Failure failure;
    return place_.pool()->TryAllocate(Request{Mebibytes(1)}, failure);
  }

  PoolPlace place_;
  CaptureGate& gate_ = place_.timelines()->gate();
  std::shared_ptr<LaterFrees> later_ =
      std::make_shared<LaterFrees>(place_.pool());
};

TEST_F(LaterFreesTest, FreesAtOnceWhenNothingIsAnnounced) {
  later_->Add(gate_, Take());
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

// An earlier fault: without host memory for its record, a block was logged and
// never reused.
TEST_F(LaterFreesTest, WaitsForTheLastCaptureWithoutHostMemory) {
  const std::vector<Allocation*> freed = {Take(), Take(), Take()};
  gate_.Announce();
  gate_.Announce();
  const HeapCallCounter heap;
  for (Allocation* allocation : freed) later_->Add(gate_, allocation);
  EXPECT_EQ(heap.calls(), 0U);
  gate_.Withdraw();
  gate_.EndPostponed();
  EXPECT_EQ(place_.pool()->reserved_bytes(), Mebibytes(3));
  gate_.Withdraw();
  gate_.EndPostponed();
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

TEST_F(LaterFreesTest, OutlivesItsOwnerWhileSomethingWaits) {
  const std::weak_ptr<LaterFrees> watch = later_;
  gate_.Announce();
  later_->Add(gate_, Take());
  later_.reset();
  EXPECT_FALSE(watch.expired());
  gate_.Withdraw();
  gate_.EndPostponed();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

TEST_F(LaterFreesTest, ServesOneCaptureAfterAnother) {
  for (int round = 0; round < 3; ++round) {
    Allocation* allocation = Take();
    gate_.Announce();
    later_->Add(gate_, allocation);
    EXPECT_EQ(place_.pool()->reserved_bytes(), Mebibytes(1));
    gate_.Withdraw();
    gate_.EndPostponed();
    EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
  }
}

using LaterFreesDeathTest = LaterFreesTest;

TEST_F(LaterFreesDeathTest, WhatWaitsCannotBeFreedAgain) {
  Allocation* allocation = Take();
  allocation->block()->owner = place_.pool().get();
  gate_.Announce();
  later_->Add(gate_, allocation);
  EXPECT_DEATH(AllocationPtr{allocation}.reset(), "double free");
  gate_.Withdraw();
  gate_.EndPostponed();
}

// cuda_semantics.md C16, C19: FreeHost may wait for the device.
TEST_F(LaterFreesTest, LockedPagesGoToTheDriverLater) {
  PoolPlaceOptions options;
  options.kind = PlaceKind::kPinned;
  const PoolPlace pinned(options);
  Failure failure;
  Allocation* allocation = pinned.pool()->TryAllocate(Request{4096}, failure);
  ASSERT_NE(allocation, nullptr);
  const TimelineTable& timelines = *pinned.timelines();
  CaptureGate& gate = pinned.timelines()->gate();
  EXPECT_FALSE(MustFreeLater(timelines, *pinned.pool(), *allocation->block()));
  gate.Announce();
  EXPECT_TRUE(MustFreeLater(timelines, *pinned.pool(), *allocation->block()));
  gate.Withdraw();
  pinned.pool()->DoFree(allocation);
}

}  // namespace
}  // namespace strata
