#include "strata/facade/front.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "strata/facade/place_state.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class FrontTest : public FacadeFixture {
 protected:
  ~FrontTest() override { state_->Close(); }

  int FrontCount() const {
    int count = 0;
    state_->ForEachFront([&](Front&) { ++count; });
    return count;
  }
  // The front of a new stream, which the tables no longer know.
  Front& Retired() {
    const Stream stream = NewStream();
    state_->FrontOf(stream);
    return *state_->TakeOut(stream);
  }

  std::shared_ptr<PlaceState> state_ = std::make_shared<PlaceState>(
      DevicePlace(0), platform_, Options(), ChainContext());
};

TEST_F(FrontTest, DroppedWithoutAllocationsIsGoneAtOnce) {
  Front& front = Retired();
  EXPECT_EQ(FrontCount(), 1);
  front.Drop();
  EXPECT_EQ(FrontCount(), 0);
}

TEST_F(FrontTest, DroppedWithAnAllocationLivesUntilItIsFreed) {
  Front& front = Retired();
  AllocationPtr allocation = front.Allocate(100);
  front.Drop();
  EXPECT_EQ(FrontCount(), 1);
  allocation.reset();
  EXPECT_EQ(FrontCount(), 0);
}

TEST_F(FrontTest, DroppedWhilePinnedLivesUntilItIsUnpinned) {
  Front& front = Retired();
  ASSERT_TRUE(front.TryPin());
  front.Drop();
  EXPECT_EQ(FrontCount(), 1);
  EXPECT_EQ(front.stats().allocations, 0U);  // still there to be asked
  front.Unpin();
  EXPECT_EQ(FrontCount(), 0);
}

TEST_F(FrontTest, DroppedWhileVisitedLivesUntilTheVisitIsOver) {
  Front& dropped = Retired();
  bool was_visited = false;
  state_->ForEachFront([&](Front& front) {
    dropped.Drop();
    was_visited = front.stream() == dropped.stream();
  });
  EXPECT_TRUE(was_visited);
  EXPECT_EQ(FrontCount(), 0);
}

TEST_F(FrontTest, FreesAfterTheDropTakeAnyPath) {
  Front& front = Retired();
  AllocationPtr plain = front.Allocate(100);
  AllocationPtr aligned = front.Allocate(Request{100, 1 << 16});
  AllocationPtr marked = front.Allocate(100);
  front.RecordStream(marked.get(), device().LegacyStream());
  front.Drop();
  plain.reset();
  aligned.reset();
  EXPECT_EQ(FrontCount(), 1);
  marked.reset();
  EXPECT_EQ(FrontCount(), 0);
}

TEST_F(FrontTest, TotalsOfAFrontThatIsGoneStay) {
  Front& front = Retired();
  front.Allocate(1000).reset();
  front.Allocate(Mebibytes(3)).reset();
  const Stats before = state_->SumOfFronts();
  front.Drop();
  const Stats after = state_->SumOfFronts();
  EXPECT_EQ(after.allocations, 2U);
  EXPECT_EQ(after.frees, 2U);
  EXPECT_EQ(after.total_requested_bytes, 1000 + Mebibytes(3));
  EXPECT_EQ(after.peak_in_use_bytes, before.peak_in_use_bytes);
  EXPECT_EQ(state_->LargestPeak(), Mebibytes(3));
}

TEST_F(FrontTest, KeepsItsPlaceAliveWithoutTheFacade) {
  const std::weak_ptr<PlaceState> watch = state_;
  Front& front = Retired();
  AllocationPtr allocation = front.Allocate(100);
  front.Drop();
  state_.reset();
  EXPECT_FALSE(watch.expired());
  allocation.reset();
  EXPECT_TRUE(watch.expired());
  state_ = std::make_shared<PlaceState>(DevicePlace(0), platform_, Options(),
                                        ChainContext());
}

TEST_F(FrontTest, KnowsWhetherItWasUsed) {
  Front& front = state_->FrontOf(device().LegacyStream());
  EXPECT_FALSE(front.was_used());
  front.Allocate(100).reset();
  EXPECT_TRUE(front.was_used());
}

}  // namespace
}  // namespace strata
