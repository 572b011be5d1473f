// Rules P1-P8 of cuda_semantics.md §3, against streams that the test runs.

#include "strata/platform/sim/pools/stream_pool.h"

#include <cstddef>
#include <limits>
#include <vector>

#include "strata/tests/platform/sim/pools/stream_pool_fixture.h"

namespace strata::sim {
namespace {

class StreamPoolTest : public StreamPoolFixture {};

TEST_F(StreamPoolTest, BlocksAreAlignedApartAndInTheWindowOfPools) {  // P1
  const DevicePtr first = Alloc(1, a_);
  const DevicePtr second = Alloc(513, b_);
  EXPECT_EQ(first % kPoolBlockBytes, 0u);
  EXPECT_EQ(second, first + 512);
  EXPECT_EQ(Alloc(1, a_), second + 1024);
  EXPECT_EQ(DeviceOfPoolAddress(first), 0);
  EXPECT_EQ(DeviceOfAddress(first), -1);
}

TEST_F(StreamPoolTest, SameStreamGetsItsBlockBack) {  // P4, T49
  AllowReuse(&pool(), false, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  EXPECT_EQ(Alloc(kMiB, a_), ptr);
}

TEST_F(StreamPoolTest, WithoutAttributesAnIdleStreamsBlockStaysItsOwn) {  // T50
  AllowReuse(&pool(), false, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  order_.Complete(a_);
  EXPECT_TRUE(GetsOther(ptr, kMiB, b_));
  EXPECT_EQ(Alloc(kMiB, a_), ptr);
}

TEST_F(StreamPoolTest, OpportunisticTakesWhatIsDone) {  // T51
  AllowReuse(&pool(), false, true, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  order_.Complete(a_);
  EXPECT_EQ(Alloc(kMiB, b_), ptr);
}

TEST_F(StreamPoolTest, OpportunisticLeavesWhatIsPending) {  // T51
  AllowReuse(&pool(), false, true, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  EXPECT_TRUE(GetsOther(ptr, kMiB, b_));
}

TEST_F(StreamPoolTest, FollowTakesWhatTheStreamWaitsFor) {  // T52
  AllowReuse(&pool(), true, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  order_.Wait(b_, order_.Last(a_));
  EXPECT_EQ(Alloc(kMiB, b_), ptr);
}

TEST_F(StreamPoolTest, FollowLeavesWhatWasFreedAfterTheWait) {  // P4
  AllowReuse(&pool(), true, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  order_.Wait(b_, order_.Last(a_));
  FreeAsync(ptr, a_);
  EXPECT_TRUE(GetsOther(ptr, kMiB, b_));
}

TEST_F(StreamPoolTest, WithoutFollowAWaitIsNotEnough) {  // T52
  AllowReuse(&pool(), false, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  order_.Wait(b_, order_.Last(a_));
  EXPECT_TRUE(GetsOther(ptr, kMiB, b_));
}

TEST_F(StreamPoolTest, InternalDependencyOrdersTheStreamAfterTheFree) {  // T53
  StreamPool* small = table_.Find(table_.Create(kFrameBytes, ShareType::kNone));
  AllowReuse(small, false, false, true);
  const DevicePtr ptr = AllocFrom(small, kFrameBytes, a_);
  FreeAsync(ptr, a_);
  const StreamPoint freed = order_.Last(a_);
  EXPECT_EQ(AllocFrom(small, kFrameBytes, b_), ptr);
  EXPECT_EQ(order_.waits(), 1);
  EXPECT_TRUE(order_.IsBefore(freed, b_));
}

TEST_F(StreamPoolTest, WithoutInternalDependenciesAFullPoolFails) {  // T53
  StreamPool* small = table_.Find(table_.Create(kFrameBytes, ShareType::kNone));
  AllowReuse(small, true, true, false);
  FreeAsync(AllocFrom(small, kFrameBytes, a_), a_);
  EXPECT_EQ(AllocFrom(small, kFrameBytes, b_), 0u);
  EXPECT_EQ(order_.waits(), 0);
}

TEST_F(StreamPoolTest, PoolGrowsBeforeItInsertsAWait) {  // P4
  const DevicePtr ptr = Alloc(kPoolGrowthBytes, a_);
  FreeAsync(ptr, a_);
  EXPECT_TRUE(GetsOther(ptr, kPoolGrowthBytes, b_));
  EXPECT_EQ(order_.waits(), 0);
}

TEST_F(StreamPoolTest, WaitsOnlyForWhatTheStreamMayNotHaveAlready) {
  StreamPool* small = table_.Find(table_.Create(kFrameBytes, ShareType::kNone));
  const DevicePtr low = AllocFrom(small, kMiB, a_);
  const DevicePtr high = AllocFrom(small, kMiB, b_);
  FreeAsync(low, a_);
  FreeAsync(high, b_);
  EXPECT_EQ(AllocFrom(small, kFrameBytes, b_), low);
  EXPECT_EQ(order_.waits(), 1);
}

TEST_F(StreamPoolTest, RowOfBlocksCarriesThePointsOfAll) {  // M10
  StreamPool* small = table_.Find(table_.Create(kFrameBytes, ShareType::kNone));
  AllowReuse(small, true, false, false);
  const DevicePtr low = AllocFrom(small, kMiB, a_);
  const DevicePtr high = AllocFrom(small, kMiB, b_);
  FreeAsync(low, a_);
  FreeAsync(high, b_);
  order_.Wait(c_, order_.Last(a_));
  EXPECT_EQ(AllocFrom(small, kFrameBytes, c_), 0u);
  order_.Wait(c_, order_.Last(b_));
  EXPECT_EQ(AllocFrom(small, kFrameBytes, c_), low);
}

TEST_F(StreamPoolTest, NeighboursOfOneStreamAreOneBlockOfTheLaterFree) {  // M10
  AllowReuse(&pool(), true, false, false);
  const DevicePtr low = Alloc(kMiB, a_);
  const DevicePtr high = Alloc(kMiB, a_);
  FreeAsync(low, a_);
  const StreamPoint low_freed = order_.Last(a_);
  FreeAsync(high, a_);
  order_.Wait(b_, low_freed);
  EXPECT_TRUE(GetsOther(low, kMiB, b_));
  order_.Wait(b_, order_.Last(a_));
  EXPECT_EQ(Alloc(2 * kMiB, b_), low);
}

// Otherwise freed blocks of a stream would be split into ever smaller ones.
TEST_F(StreamPoolTest, OwnNeighboursStayWholeWhereASmallerBlockServes) {  // D16
  AllowReuse(&pool(), false, false, false);
  const DevicePtr low = Alloc(kMiB, a_);
  const DevicePtr high = Alloc(2 * kMiB, a_);
  Alloc(kMiB, a_);
  const DevicePtr smaller = Alloc(kMiB + kMiB / 2, a_);
  Alloc(kMiB, a_);
  FreeAsync(high, a_);
  FreeAsync(smaller, a_);
  FreeAsync(low, a_);
  EXPECT_EQ(Alloc(kMiB, a_), smaller);
  EXPECT_EQ(Alloc(3 * kMiB, a_), low);
}

TEST_F(StreamPoolTest, SmallestRowServesBeforeOthers) {  // D16
  StreamPool* small =
      table_.Find(table_.Create(5 * kFrameBytes, ShareType::kNone));
  std::vector<DevicePtr> blocks(10);
  for (DevicePtr& block : blocks) block = AllocFrom(small, kMiB, a_);
  for (const std::size_t i : {0u, 1u, 2u, 4u, 5u, 7u, 8u, 9u}) {
    FreeAsync(blocks[i], i % 2 == 0 ? a_ : b_);
  }
  order_.Complete(a_);
  order_.Complete(b_);
  EXPECT_EQ(AllocFrom(small, 2 * kMiB, c_), blocks[4]);
}

TEST_F(StreamPoolTest, SplitBlockKeepsItsPointInBothParts) {  // M10
  StreamPool* small = table_.Find(table_.Create(kFrameBytes, ShareType::kNone));
  AllowReuse(small, false, true, false);
  const DevicePtr ptr = AllocFrom(small, kFrameBytes, a_);
  FreeAsync(ptr, a_);
  EXPECT_EQ(AllocFrom(small, kMiB, a_), ptr);
  EXPECT_EQ(AllocFrom(small, kMiB, b_), 0u);
  order_.Complete(a_);
  EXPECT_EQ(AllocFrom(small, kMiB, b_), ptr + kMiB);
}

TEST_F(StreamPoolTest, FreeInAnotherStreamBindsTheBlockToThatStream) {  // P2
  AllowReuse(&pool(), false, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, b_);
  EXPECT_TRUE(GetsOther(ptr, kMiB, a_));
  EXPECT_EQ(Alloc(kMiB, b_), ptr);
}

TEST_F(StreamPoolTest, StreamsWithEqualUidsOnTwoDevicesDiffer) {  // S6
  AllowReuse(&pool(), false, false, false);
  const Stream legacy0 = FakeStreamOrder::MakeStream(kLegacyStreamUid, 0);
  const Stream legacy1 = FakeStreamOrder::MakeStream(kLegacyStreamUid, 1);
  const DevicePtr ptr = Alloc(kMiB, legacy0);
  FreeAsync(ptr, legacy0);
  EXPECT_TRUE(GetsOther(ptr, kMiB, legacy1));
}

TEST_F(StreamPoolTest, BlockFreedAtOnceIsAnyStreams) {  // P2, H3
  AllowReuse(&pool(), false, false, false);
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeNow(ptr);
  EXPECT_EQ(Alloc(kMiB, b_), ptr);
}

TEST_F(StreamPoolTest, OnlyTheStartOfALiveBlockCanBeFreed) {  // P2
  const DevicePtr ptr = Alloc(kMiB, a_);
  EXPECT_FALSE(table_.Free(ptr + 512, std::nullopt, order_));
  FreeNow(ptr);
  EXPECT_FALSE(table_.Free(ptr, std::nullopt, order_));
}

TEST_F(StreamPoolTest, AbsurdSizeFails) {  // P3
  EXPECT_EQ(Alloc(std::numeric_limits<std::uint64_t>::max(), a_), 0u);
  EXPECT_EQ(Alloc(kFrames * kFrameBytes + 1, a_), 0u);
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(StreamPoolTest, GrowsByItsStepOrByTheRequest) {  // D16
  Alloc(1, a_);
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  Alloc(kPoolGrowthBytes + 1, a_);
  EXPECT_EQ(TakenBytes(), 2 * kPoolGrowthBytes + kFrameBytes);
}

TEST_F(StreamPoolTest, GrowsByTheRequestWhenItsStepDoesNotFit) {  // D16
  FrameShare others;
  const std::uint64_t left = 2 * kFrameBytes;
  ASSERT_EQ(memory_.TakeFrames(kFrames * kFrameBytes - left, &others),
            Status::kSuccess);
  EXPECT_NE(Alloc(kMiB, a_), 0u);
  EXPECT_EQ(memory_.free_bytes(), kFrameBytes);
}

TEST_F(StreamPoolTest, LimitIsInWholeFramesAndNeverExceeded) {
  StreamPool* small =
      table_.Find(table_.Create(kFrameBytes + 1, ShareType::kNone));
  EXPECT_NE(AllocFrom(small, 2 * kFrameBytes, a_), 0u);
  EXPECT_EQ(AllocFrom(small, 1, a_), 0u);
  EXPECT_EQ(TakenBytes(), 2 * kFrameBytes);
}

TEST_F(StreamPoolTest, BestFitPrefersTheSmallestThenTheLowest) {  // D16
  const DevicePtr large = Alloc(4096, a_);
  Alloc(512, a_);
  const DevicePtr low = Alloc(1024, a_);
  Alloc(512, a_);
  const DevicePtr high = Alloc(1024, a_);
  Alloc(512, a_);
  FreeNow(large);
  FreeNow(high);
  FreeNow(low);
  EXPECT_EQ(Alloc(1024, a_), low);
  EXPECT_EQ(Alloc(1024, a_), high);
  EXPECT_EQ(Alloc(1024, a_), large);
}

TEST_F(StreamPoolTest, SynchronizeReleasesDownToTheThreshold) {  // P6, T54
  const DevicePtr first = Alloc(kPoolGrowthBytes, a_);
  const DevicePtr second = Alloc(kPoolGrowthBytes, a_);
  FreeAsync(first, a_);
  FreeAsync(second, a_);
  order_.Complete(a_);
  Set(&pool(), PoolAttribute::kReleaseThreshold, kPoolGrowthBytes + 1);
  Synchronize();
  EXPECT_EQ(TakenBytes(), 2 * kPoolGrowthBytes);
  Set(&pool(), PoolAttribute::kReleaseThreshold, kPoolGrowthBytes);
  Synchronize();
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  Set(&pool(), PoolAttribute::kReleaseThreshold, 0);
  Synchronize();
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(StreamPoolTest, WaitedForBlockIsForEveryStream) {  // P5, T50
  AllowReuse(&pool(), false, false, false);
  Set(&pool(), PoolAttribute::kReleaseThreshold, ~std::uint64_t{0});
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeAsync(ptr, a_);
  order_.Complete(a_);
  Synchronize(b_);
  EXPECT_TRUE(GetsOther(ptr, kMiB, b_));
  Synchronize(a_);
  EXPECT_EQ(Alloc(kMiB, b_), ptr);
}

TEST_F(StreamPoolTest, WaitedForNeighboursAreOneBlock) {  // P5
  AllowReuse(&pool(), false, false, false);
  Set(&pool(), PoolAttribute::kReleaseThreshold, ~std::uint64_t{0});
  const DevicePtr low = Alloc(kMiB, a_);
  const DevicePtr middle = Alloc(kMiB, b_);
  const DevicePtr high = Alloc(kMiB, c_);
  ASSERT_NE(Alloc(kPoolGrowthBytes - 3 * kMiB, a_), 0u);
  FreeAsync(low, a_);
  FreeAsync(middle, b_);
  FreeAsync(high, c_);
  order_.Complete(a_);
  Synchronize(a_);
  Synchronize(c_);
  EXPECT_TRUE(GetsOther(low, 3 * kMiB, a_));
  Synchronize(b_);
  EXPECT_EQ(Alloc(3 * kMiB, a_), low);
}

TEST_F(StreamPoolTest, SynchronizeReleasesOnlyWhatWasWaitedFor) {  // P5, P6
  AllowReuse(&pool(), false, false, false);
  const DevicePtr waited = Alloc(kPoolGrowthBytes, a_);
  const DevicePtr done = Alloc(kPoolGrowthBytes, b_);
  FreeAsync(waited, a_);
  FreeAsync(done, b_);
  order_.Complete(a_);
  order_.Complete(b_);
  Synchronize(a_);
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  EXPECT_TRUE(table_.AccessOf(done, 1, 0).has_value());
  Synchronize(b_);
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(StreamPoolTest, SynchronizeReleasesWhatOpportunisticReuseSeesDone) {
  AllowReuse(&pool(), false, true, false);
  FreeAsync(Alloc(kMiB, b_), b_);
  order_.Complete(b_);
  Synchronize(a_);
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(StreamPoolTest, PendingWorkKeepsAChunk) {  // P6, P8
  FreeAsync(Alloc(kMiB, a_), a_);
  Synchronize();
  pool().TrimTo(0, order_);
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  order_.Complete(a_);
  Synchronize();
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(StreamPoolTest, LiveBlockKeepsItsChunkOnly) {  // P8
  const DevicePtr low = Alloc(kPoolGrowthBytes, a_);
  const DevicePtr high = Alloc(512, a_);
  FreeNow(low);
  pool().TrimTo(0, order_);
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  EXPECT_TRUE(table_.IsLive(high, 512));
  EXPECT_FALSE(table_.AccessOf(low, 1, 0).has_value());
}

TEST_F(StreamPoolTest, TrimNeverDropsBelowWhatItKeeps) {  // P8
  FreeNow(Alloc(kMiB, a_));
  pool().TrimTo(1, order_);
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
}

TEST_F(StreamPoolTest, ReleasedAddressesStayUnusedForLong) {  // D2
  const DevicePtr ptr = Alloc(kMiB, a_);
  FreeNow(ptr);
  pool().TrimTo(0, order_);
  EXPECT_GE(Alloc(kMiB, a_), ptr + kPoolGrowthBytes);
}

TEST_F(StreamPoolTest, UsedCountsRoundedBlocksAtTheCall) {  // P7
  const DevicePtr ptr = Alloc(1, a_);
  Alloc(1000, a_);
  EXPECT_EQ(Get(pool(), PoolAttribute::kUsedCurrent), 512u + 1024u);
  FreeAsync(ptr, a_);
  EXPECT_EQ(Get(pool(), PoolAttribute::kUsedCurrent), 1024u);
  EXPECT_EQ(Get(pool(), PoolAttribute::kUsedHigh), 512u + 1024u);
}

TEST_F(StreamPoolTest, ReservedCountsChunks) {  // P7
  FreeNow(Alloc(1, a_));
  EXPECT_EQ(Get(pool(), PoolAttribute::kReservedCurrent), kPoolGrowthBytes);
  pool().TrimTo(0, order_);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReservedCurrent), 0u);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReservedHigh), kPoolGrowthBytes);
}

TEST_F(StreamPoolTest, PeaksCanOnlyBeReset) {  // P7, T55
  const DevicePtr ptr = Alloc(1024, a_);
  Alloc(512, a_);
  FreeNow(ptr);
  for (const auto attribute :
       {PoolAttribute::kUsedHigh, PoolAttribute::kReservedHigh}) {
    EXPECT_EQ(pool().SetAttribute(attribute, 1), Status::kInvalidValue);
    EXPECT_EQ(pool().SetAttribute(attribute, 0), Status::kSuccess);
  }
  EXPECT_EQ(Get(pool(), PoolAttribute::kUsedHigh), 512u);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReservedHigh), kPoolGrowthBytes);
}

TEST_F(StreamPoolTest, CurrentValuesAreReadOnly) {  // P7
  for (const auto attribute :
       {PoolAttribute::kUsedCurrent, PoolAttribute::kReservedCurrent,
        static_cast<PoolAttribute>(99)}) {
    EXPECT_EQ(pool().SetAttribute(attribute, 0), Status::kInvalidValue);
  }
}

TEST_F(StreamPoolTest, UnknownAttributeIsNotRead) {
  std::uint64_t value = 77;
  EXPECT_EQ(pool().GetAttribute(static_cast<PoolAttribute>(0), &value),
            Status::kInvalidValue);
  EXPECT_EQ(value, 77u);
}

TEST_F(StreamPoolTest, DefaultsAreThoseOfCuda) {  // P4, P6
  EXPECT_EQ(Get(pool(), PoolAttribute::kReuseFollowEventDependencies), 1u);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReuseAllowOpportunistic), 1u);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReuseAllowInternalDependencies), 1u);
  EXPECT_EQ(Get(pool(), PoolAttribute::kReleaseThreshold), 0u);
}

TEST_F(StreamPoolTest, OwnerHasAccessAndOthersWhatTheyAreGiven) {  // P10
  EXPECT_EQ(pool().AccessOf(0), Access::kReadWrite);
  EXPECT_EQ(pool().AccessOf(1), Access::kNone);
  pool().SetAccess(1, Access::kRead);
  EXPECT_EQ(pool().AccessOf(1), Access::kRead);
  EXPECT_EQ(pool().AccessOf(2), Access::kNone);
}

}  // namespace
}  // namespace strata::sim
