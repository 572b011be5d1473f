#include "strata/facade/chains/front.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/diagnostics/debug_fill.h"
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
  // The front of a new stream, removed from the tables.
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

// The last free of an orphan must not go into the front cache, because that
// path does not check whether it is the last.
TEST_F(FrontTest, DroppedAndWithoutAFillAgainItIsGoneWithItsLastFree) {
  Front& front = Retired();
  // After these, the front cache keeps blocks of this size.
  for (int i = 0; i < 4; ++i) front.Allocate(1000).reset();
  AllocationPtr allocation = front.Allocate(1000);
  front.Drop();
  front.set_debug_fill(nullptr);
  allocation.reset();
  EXPECT_EQ(FrontCount(), 0);
}

TEST_F(FrontTest, DroppedWhilePinnedLivesUntilItIsUnpinned) {
  Front& front = Retired();
  ASSERT_TRUE(front.TryPin());
  front.Drop();
  EXPECT_EQ(FrontCount(), 1);
  EXPECT_EQ(front.stats().allocations, 0U);  // still exists, for queries
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

// Not only a fill that the place sets, which the front knows from the start.
TEST_F(FrontTest, AFillThatIsSetLaterReachesHits) {
  Front& front = state_->FrontOf(device().LegacyStream());
  // The second request is a hit of the front cache.
  for (int i = 0; i < 4; ++i) front.Allocate(1000).reset();
  int fills = 0;
  device().SetCallObserver([&](const CallRecord& call) {
    if (call.call == DeviceCall::kMemsetAsync) ++fills;
  });
  const DebugFill fill(&device(), static_cast<unsigned char>(0xAB), false);
  AllocationPtr(front.Alloc(front.state(), 1000, ThisThread())).reset();
  EXPECT_EQ(fills, 0);
  front.set_debug_fill(&fill);
  AllocationPtr(front.Alloc(front.state(), 1000, ThisThread())).reset();
  EXPECT_EQ(fills, 1);
  front.set_debug_fill(nullptr);
  AllocationPtr(front.Alloc(front.state(), 1000, ThisThread())).reset();
  EXPECT_EQ(fills, 1);
  device().SetCallObserver(nullptr);
}

// The counts of a hit equal the counts of the layers for a walk.
TEST_F(FrontTest, CountsHitsAsWalks) {
  Front& front = state_->FrontOf(device().LegacyStream());
  for (int i = 0; i < 4; ++i)
    AllocationPtr(front.Alloc(front.state(), 1000, ThisThread())).reset();
  const Stats before = front.stats();
  AllocationPtr hit(front.Alloc(front.state(), 1000, ThisThread()));
  AllocationPtr walk = front.Allocate(Request{1000, 1 << 16});
  EXPECT_EQ(front.stats().allocations, before.allocations + 2);
  EXPECT_EQ(front.stats().requested_bytes, 2000U);
  EXPECT_EQ(front.stats().in_use_bytes,
            hit->block()->size + walk->block()->size);
  hit.reset();
  walk.reset();
  const Stats after = front.stats();
  EXPECT_EQ(after.frees, before.frees + 2);
  EXPECT_EQ(after.requested_bytes, 0U);
  EXPECT_EQ(after.in_use_bytes, 0U);
  EXPECT_EQ(after.total_requested_bytes, before.total_requested_bytes + 2000);
}

// A request of 0 bytes gets no memory, even if a block is cached.
TEST_F(FrontTest, NoBytesAreNoHit) {
  Front& front = state_->FrontOf(device().LegacyStream());
  for (int i = 0; i < 4; ++i)
    AllocationPtr(front.Alloc(front.state(), 1, ThisThread())).reset();
  const std::uint64_t allocations = front.stats().allocations;
  const AllocationPtr none(front.Alloc(front.state(), 0, ThisThread()));
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(front.stats().allocations, allocations);
}

}  // namespace
}  // namespace strata
