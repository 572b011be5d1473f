// Rules P9, P11 and P12 of cuda_semantics.md §3.

#include "strata/platform/sim/pools/pool_table.h"

#include "strata/tests/platform/sim/pools/stream_pool_fixture.h"

namespace strata::sim {
namespace {

class PoolTableTest : public StreamPoolFixture {
 protected:
  MemPool NewPool(std::uint64_t max_bytes = 0) {
    return table_.Create(max_bytes, ShareType::kNone);
  }
};

TEST_F(PoolTableTest, DefaultPoolCannotBeDestroyed) {  // T56
  EXPECT_EQ(table_.Destroy(table_.default_pool(), order_),
            Status::kInvalidValue);
  EXPECT_NE(table_.Find(table_.default_pool()), nullptr);
}

TEST_F(PoolTableTest, PoolCanBeDestroyedOnce) {  // P9
  const MemPool pool = NewPool();
  EXPECT_EQ(table_.Destroy(pool, order_), Status::kSuccess);
  EXPECT_EQ(table_.Destroy(pool, order_), Status::kInvalidValue);
  EXPECT_EQ(table_.Destroy(MemPool{}, order_), Status::kInvalidValue);
}

TEST_F(PoolTableTest, HandlesAreNeverUsedAgain) {
  const MemPool first = NewPool();
  ASSERT_EQ(table_.Destroy(first, order_), Status::kSuccess);
  const MemPool second = NewPool();
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.Find(first), nullptr);
}

TEST_F(PoolTableTest, HandleNamesItsDevice) {
  DeviceMemory memory(3, kFrameBytes);
  const PoolTable table(3, &memory);
  EXPECT_EQ(DeviceOfPool(table.default_pool()), 3);
  EXPECT_EQ(DeviceOfPool(table_.default_pool()), 0);
  EXPECT_EQ(DeviceOfPool(MemPool{}), -1);
  EXPECT_EQ(DeviceOfPool(MemPool{this}), -1);
}

TEST_F(PoolTableTest, DestroyedPoolLivesUntilItsBlocksAreFreed) {  // T56
  const MemPool pool = NewPool();
  const DevicePtr ptr = AllocFrom(table_.Find(pool), kMiB, b_);
  EXPECT_EQ(table_.Destroy(pool, order_), Status::kSuccess);
  EXPECT_TRUE(table_.IsLive(ptr, kMiB));
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  FreeNow(ptr);
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(PoolTableTest, DestroyedPoolLivesUntilItsWorkIsDone) {  // P9
  const MemPool pool = NewPool();
  const DevicePtr ptr = AllocFrom(table_.Find(pool), kMiB, a_);
  FreeAsync(ptr, a_);
  EXPECT_EQ(table_.Destroy(pool, order_), Status::kSuccess);
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  EXPECT_TRUE(table_.AccessOf(ptr, kMiB, 0).has_value());
  order_.Complete(a_);
  Synchronize();
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(PoolTableTest, DestroyReleasesWhateverTheThreshold) {  // P9
  const MemPool pool = NewPool();
  Set(table_.Find(pool), PoolAttribute::kReleaseThreshold, ~std::uint64_t{0});
  FreeNow(AllocFrom(table_.Find(pool), kMiB, b_));
  Synchronize();
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
  EXPECT_EQ(table_.Destroy(pool, order_), Status::kSuccess);
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(PoolTableTest, ImportedHandleNamesThePoolButDoesNotOwnIt) {  // P11
  const MemPool pool = NewPool();
  const MemPool imported = table_.Import(pool);
  EXPECT_NE(imported, pool);
  EXPECT_EQ(table_.Find(imported), table_.Find(pool));
  EXPECT_TRUE(table_.Owns(pool));
  EXPECT_FALSE(table_.Owns(imported));
}

TEST_F(PoolTableTest, PoolLivesWhileAnImportedHandleDoes) {  // P11
  const MemPool pool = NewPool();
  const MemPool imported = table_.Import(pool);
  EXPECT_EQ(table_.Destroy(pool, order_), Status::kSuccess);
  EXPECT_NE(table_.Find(imported), nullptr);
  EXPECT_EQ(table_.Destroy(imported, order_), Status::kSuccess);
  EXPECT_EQ(table_.handle_count(), 0u);
}

TEST_F(PoolTableTest, GrowthTakesIdleChunksOfOtherPools) {  // P12
  FreeNow(Alloc(40 * kFrameBytes, a_));
  StreamPool* other = table_.Find(NewPool());
  EXPECT_NE(AllocFrom(other, 40 * kFrameBytes, b_), 0u);
  EXPECT_EQ(pool().reserved_bytes(), 0u);
}

TEST_F(PoolTableTest, GrowthTakesThePoolsOwnIdleChunksFirst) {  // P12
  StreamPool* other = table_.Find(NewPool());
  FreeNow(AllocFrom(other, kPoolGrowthBytes, a_));
  FreeNow(Alloc(kPoolGrowthBytes, a_));
  const DevicePtr held = Alloc(kPoolGrowthBytes, a_);
  FreeNow(Alloc(kPoolGrowthBytes, a_));
  ASSERT_EQ(memory_.free_bytes(), kPoolGrowthBytes);
  EXPECT_NE(Alloc(2 * kPoolGrowthBytes, b_), 0u);
  EXPECT_EQ(other->reserved_bytes(), kPoolGrowthBytes);
  EXPECT_TRUE(table_.IsLive(held, kPoolGrowthBytes));
}

TEST_F(PoolTableTest, LimitIsMetByReleasingIdleChunks) {  // P12
  StreamPool* small = table_.Find(NewPool(2 * kFrameBytes));
  FrameShare others;  // forces growth by one frame
  ASSERT_EQ(memory_.TakeFrames((kFrames - 1) * kFrameBytes, &others),
            Status::kSuccess);
  const DevicePtr low = AllocFrom(small, kFrameBytes, a_);
  memory_.GiveFrames(others);
  const DevicePtr high = AllocFrom(small, kFrameBytes, a_);
  ASSERT_EQ(small->room_bytes(), 0u);
  FreeNow(low);
  EXPECT_EQ(AllocFrom(small, 2 * kFrameBytes, a_), 0u);
  FreeNow(high);
  EXPECT_NE(AllocFrom(small, 2 * kFrameBytes, a_), 0u);
}

TEST_F(PoolTableTest, HopelessRequestReleasesNothing) {  // P12
  Set(&pool(), PoolAttribute::kReleaseThreshold, ~std::uint64_t{0});
  FreeNow(Alloc(kPoolGrowthBytes, a_));
  FrameShare others;
  ASSERT_EQ(memory_.TakeFrames(memory_.free_bytes(), &others),
            Status::kSuccess);
  EXPECT_EQ(Alloc(kPoolGrowthBytes + 1, b_), 0u);
  EXPECT_FALSE(table_.MakeRoom(kPoolGrowthBytes + 1, order_));
  EXPECT_EQ(pool().reserved_bytes(), kPoolGrowthBytes);
}

TEST_F(PoolTableTest, RoomIsMadeOnlyOfIdleChunks) {  // P12
  FreeAsync(Alloc(kFrames * kFrameBytes, a_), a_);
  EXPECT_FALSE(table_.MakeRoom(kMiB, order_));
  order_.Complete(a_);
  EXPECT_TRUE(table_.MakeRoom(kMiB, order_));
  EXPECT_EQ(TakenBytes(), 0u);
}

TEST_F(PoolTableTest, NoRoomIsMadeWhereThereIsEnough) {
  FreeNow(Alloc(kMiB, a_));
  EXPECT_FALSE(table_.MakeRoom(kMiB, order_));
  EXPECT_EQ(TakenBytes(), kPoolGrowthBytes);
}

TEST_F(PoolTableTest, RangeLeadsToTheFramesOfItsChunk) {
  const DevicePtr first = Alloc(1024, a_);
  const DevicePtr ptr = Alloc(1024, a_);
  const auto begin = table_.Locate(first);
  const auto place = table_.Locate(ptr + 8);
  ASSERT_TRUE(begin && place);
  EXPECT_EQ(place->device, 0);
  EXPECT_EQ(place->run.offset, begin->run.offset + 1024u + 8u);
  EXPECT_EQ(place->run.bytes, kPoolGrowthBytes - 1024u - 8u);
}

TEST_F(PoolTableTest, FreedBlockIsMappedButFitForNoNewWork) {
  const DevicePtr ptr = Alloc(1024, a_);
  EXPECT_TRUE(table_.IsLive(ptr, 1024));
  EXPECT_FALSE(table_.IsLive(ptr, 1025));
  FreeAsync(ptr, a_);
  EXPECT_FALSE(table_.IsLive(ptr, 1));
  EXPECT_TRUE(table_.AccessOf(ptr, 1024, 0).has_value());
}

TEST_F(PoolTableTest, RangeBeyondItsChunkLeadsNowhere) {
  const DevicePtr ptr = Alloc(1024, a_);
  EXPECT_FALSE(table_.AccessOf(ptr, kPoolGrowthBytes + 1, 0).has_value());
  EXPECT_FALSE(table_.AccessOf(ptr - 1, 1, 0).has_value());
  EXPECT_FALSE(table_.AccessOf(ptr + kPoolGrowthBytes, 1, 0).has_value());
}

}  // namespace
}  // namespace strata::sim
