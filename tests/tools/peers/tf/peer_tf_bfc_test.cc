// The rules of tf_bfc.md; its worked examples R22, R23, R34 and R40, number for
// number.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/tf/tf_bfc_peer.h"

namespace strata::peers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class TfBfcPeerTest : public ::testing::Test {
 protected:
  TfBfcPeerTest() : device_(Gibibytes(2)) {}

  // The sizes of the regions that `peer` requests while it serves `requests`.
  std::vector<std::uint64_t> Growth(TfBfcPeer& peer,
                                    const std::vector<std::size_t>& requests) {
    device_.TakeBytes(DeviceCall::kMemAlloc);
    for (const std::size_t bytes : requests) {
      last_ = peer.AllocateRaw(bytes, 0);
      if (last_ != 0) served_.push_back(last_);
    }
    return device_.TakeBytes(DeviceCall::kMemAlloc);
  }

  PeerTestDevice device_;
  DevicePtr last_ = 0;
  std::vector<DevicePtr> served_;
};

TEST_F(TfBfcPeerTest, RegionsDoubleUpToTheLimit) {  // R22
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Mebibytes(64)});
  EXPECT_THAT(Growth(peer, std::vector<std::size_t>(65, Mebibytes(1))),
              ElementsAre(Mebibytes(2), Mebibytes(4), Mebibytes(8),
                          Mebibytes(16), Mebibytes(32), Mebibytes(2)));
  EXPECT_EQ(served_.size(), 64U);
  EXPECT_EQ(peer.growth_hint_bytes(), Mebibytes(128));
}

TEST_F(TfBfcPeerTest, LimitThatIsNoMultipleOfTheUnitIsRoundedDown) {  // R22
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Mebibytes(10) + 100});
  EXPECT_THAT(Growth(peer, std::vector<std::size_t>(11, Mebibytes(1))),
              ElementsAre(2097152, 4194304, 4194304));
  EXPECT_EQ(served_.size(), 10U);
  EXPECT_EQ(peer.growth_hint_bytes(), Mebibytes(16));
}

TEST_F(TfBfcPeerTest, LargeFirstRequestRaisesTheRegionAndIsNotSplit) {  // R22
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Gibibytes(1)});
  EXPECT_THAT(Growth(peer, {Mebibytes(100)}), ElementsAre(Mebibytes(128)));
  EXPECT_EQ(peer.growth_hint_bytes(), Mebibytes(128));
  EXPECT_EQ(peer.stats().in_use_bytes, Mebibytes(128));
  EXPECT_THAT(Growth(peer, {Mebibytes(100)}), ElementsAre(Mebibytes(128)));
  EXPECT_EQ(peer.growth_hint_bytes(), Mebibytes(256));
}

TEST_F(TfBfcPeerTest, RefusedRegionIsAskedForATenthSmaller) {  // R23
  PeerTestDevice small(Mebibytes(600));
  TfBfcPeer peer(small.device(),
                 {.memory_limit_bytes = Gibibytes(1), .allow_growth = false});
  EXPECT_NE(peer.AllocateRaw(4096, 0), 0U);
  EXPECT_THAT(small.TakeBytes(DeviceCall::kMemAlloc),
              ElementsAre(1073741824, 966367744, 869731072, 782758144,
                          704482304, 634034176, 570630912));
}

TEST_F(TfBfcPeerTest, GivesUpWhenLessThanTheRequestWouldBeAskedFor) {  // R23
  struct Case {
    TfBfcOptions options;
    std::size_t request;
    std::uint64_t calls;
  };
  const TfBfcOptions one_gib{.memory_limit_bytes = Gibibytes(1),
                             .allow_growth = false};
  const TfBfcOptions growing{.memory_limit_bytes = Gibibytes(1)};
  const TfBfcOptions eighty_gib{.memory_limit_bytes = Gibibytes(80),
                                .allow_growth = false};
  device_.device().AddFault({.call = DeviceCall::kMemAlloc});
  for (const Case& refused : {Case{one_gib, 4096, 123}, Case{growing, 4096, 64},
                              Case{eighty_gib, 256, 179}}) {
    TfBfcPeer peer(device_.device(), refused.options);
    const std::uint64_t before = device_.Count(DeviceCall::kMemAlloc);
    EXPECT_EQ(peer.AllocateRaw(refused.request, 0), 0U);
    EXPECT_EQ(device_.Count(DeviceCall::kMemAlloc) - before, refused.calls);
  }
}

TEST_F(TfBfcPeerTest, IdleRegionsAreExchangedForALargerOne) {  // R34
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Mebibytes(16)});
  EXPECT_THAT(Growth(peer, {Mebibytes(2), Mebibytes(2), Mebibytes(4)}),
              ElementsAre(Mebibytes(2), Mebibytes(4), Mebibytes(8)));
  for (const DevicePtr address : served_) peer.DeallocateRaw(address);
  EXPECT_THAT(Growth(peer, {Mebibytes(12)}), ElementsAre(Mebibytes(16)));
  EXPECT_NE(last_, 0U);
  EXPECT_THAT(peer.RegionBytes(), ElementsAre(Mebibytes(16)));
  EXPECT_EQ(peer.stats().reserved_bytes, Mebibytes(16));
  EXPECT_EQ(peer.growth_hint_bytes(), Mebibytes(32));
}

TEST_F(TfBfcPeerTest, RegionsStayIfAllOfThemWouldNotDo) {  // R32
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Mebibytes(16)});
  const DevicePtr held = peer.AllocateRaw(Mebibytes(2), 0);
  peer.DeallocateRaw(peer.AllocateRaw(Mebibytes(4), 0));
  EXPECT_EQ(peer.AllocateRaw(Mebibytes(15), 0), 0U);
  EXPECT_THAT(peer.RegionBytes(), ElementsAre(Mebibytes(2), Mebibytes(4)));
  peer.DeallocateRaw(held);
}

TEST_F(TfBfcPeerTest, WithoutGarbageCollectionRegionsStay) {  // R31
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Mebibytes(16),
                                    .garbage_collection = false});
  peer.DeallocateRaw(peer.AllocateRaw(Mebibytes(2), 0));
  EXPECT_EQ(peer.AllocateRaw(Mebibytes(16), 0), 0U);
  EXPECT_THAT(peer.RegionBytes(), ElementsAre(Mebibytes(2)));
}

TEST_F(TfBfcPeerTest, CountsThePeakAndTheLargestChunk) {  // R47
  TfBfcPeer peer(device_.device(), {});
  const PeerBlock large = Take(peer, 5000, device_.legacy());
  const PeerBlock small = Take(peer, 256, device_.legacy());
  peer.Free(large);
  EXPECT_EQ(peer.stats().in_use_bytes, small.bytes);
  EXPECT_EQ(peer.peaks().in_use_bytes, large.bytes + small.bytes);
  EXPECT_EQ(peer.peaks().allocation_bytes, large.bytes);
  peer.Free(small);
}

TEST_F(TfBfcPeerTest, SmallestChunkWinsAndTheLowestOfEqualOnes) {  // R8
  TfBfcPeer peer(device_.device(), {});
  std::vector<DevicePtr> blocks;
  for (const std::size_t bytes : {1024U, 256U, 512U, 256U, 512U, 256U}) {
    blocks.push_back(peer.AllocateRaw(bytes, 0));
  }
  for (const std::size_t i : {4U, 0U, 2U}) peer.DeallocateRaw(blocks[i]);
  EXPECT_EQ(peer.AllocateRaw(400, 0), blocks[2]);
  EXPECT_EQ(peer.AllocateRaw(512, 0), blocks[4]);
}

TEST_F(TfBfcPeerTest, ChunkIsSplitFromTwiceTheRequestOn) {  // R10, R11
  TfBfcPeer peer(device_.device(), {});
  peer.DeallocateRaw(peer.AllocateRaw(1, 0));
  EXPECT_EQ(Take(peer, Mebibytes(1) + 1, device_.legacy()).bytes, Mebibytes(2));
  EXPECT_EQ(Take(peer, Mebibytes(1), device_.legacy()).bytes, Mebibytes(1));
}

TEST_F(TfBfcPeerTest, ChunkIsSplitIfItWouldWaste128MiB) {  // R10
  TfBfcPeer peer(device_.device(),
                 {.memory_limit_bytes = Mebibytes(384), .allow_growth = false});
  const PeerBlock block = Take(peer, Mebibytes(256), device_.legacy());
  EXPECT_EQ(block.bytes, Mebibytes(256));
}

TEST_F(TfBfcPeerTest, FreeNeighboursJoinAndStreamsShareThePool) {  // R29, R30
  TfBfcPeer peer(device_.device(), {.memory_limit_bytes = Mebibytes(2)});
  const Stream other = device_.NewStream();
  const PeerBlock low = Take(peer, Mebibytes(1), device_.legacy());
  const PeerBlock high = Take(peer, Mebibytes(1), other);
  peer.Free(low);
  peer.Free(high);
  EXPECT_EQ(Take(peer, Mebibytes(2), other).address, low.address);
}

class TfBfcStampsTest : public ::testing::Test {
 protected:
  // A pool full of blocks of 256 bytes.
  explicit TfBfcStampsTest(std::size_t pool_bytes = 1024)
      : device_(Mebibytes(64)),
        peer_(device_.device(), {.memory_limit_bytes = pool_bytes,
                                 .allow_growth = false,
                                 .timestamps = true}) {
    for (std::size_t i = 0; i < pool_bytes / 256; ++i) {
      blocks_.push_back(peer_.AllocateRaw(256, 0));
    }
  }

  void Free(const std::vector<std::size_t>& order) {
    for (const std::size_t i : order) peer_.DeallocateRaw(blocks_[i]);
  }
  // The offset in the pool, or -1 if there is none.
  std::int64_t Offset(std::size_t bytes, std::uint64_t freed_before) {
    const DevicePtr address = peer_.AllocateRaw(bytes, freed_before);
    return address == 0 ? -1 : static_cast<std::int64_t>(address - blocks_[0]);
  }

  PeerTestDevice device_;
  TfBfcPeer peer_;
  std::vector<DevicePtr> blocks_;
};

TEST_F(TfBfcStampsTest, ChunkFreedEarlyEnoughIsTaken) {  // R40
  Free({0, 1});
  EXPECT_EQ(Offset(256, 1), 0);
}

TEST_F(TfBfcStampsTest, ChunkFreedTooLateIsPassedOver) {  // R40
  Free({1, 0});
  EXPECT_EQ(Offset(256, 1), 256);
}

TEST_F(TfBfcStampsTest, ChunksAreNotJoinedForARequestWithAStamp) {  // R40
  Free({0, 1});
  EXPECT_EQ(Offset(512, 1), -1);
  EXPECT_EQ(Offset(512, 2), -1);
}

TEST_F(TfBfcStampsTest, ChunksAreJoinedForARequestWithoutAStamp) {  // R40
  Free({0, 1});
  EXPECT_EQ(Offset(512, 0), 0);
}

TEST_F(TfBfcStampsTest, ChunksFreedBeforeTheFrontierAreJoined) {  // R40
  Free({0, 1});
  peer_.SetSafeFrontier(2);
  EXPECT_EQ(Offset(512, 2), -1);
  peer_.SetSafeFrontier(3);
  peer_.SetSafeFrontier(1);  // it does not go backward
  EXPECT_EQ(Offset(512, 2), 0);
}

class TfBfcLargerStampsTest : public TfBfcStampsTest {
 protected:
  TfBfcLargerStampsTest() : TfBfcStampsTest(2048) {}
};

TEST_F(TfBfcLargerStampsTest, OnlyAsManyChunksAreJoinedAsItTakes) {  // R40
  Free({0, 1, 2, 4, 5});
  EXPECT_EQ(Offset(512, 0), 0);
  EXPECT_THAT(peer_.Waiting(),
              ElementsAre(Pair(blocks_[0] + 512, 3), Pair(blocks_[0] + 1024, 4),
                          Pair(blocks_[0] + 1280, 5)));
}

TEST_F(TfBfcLargerStampsTest, NothingWaitsOnceTheFrontierHasPassed) {  // R38
  Free({0, 1, 2, 4, 5});
  peer_.SetSafeFrontier(6);
  EXPECT_EQ(Offset(768, 0), 0);
  EXPECT_THAT(peer_.Waiting(), IsEmpty());
}

}  // namespace
}  // namespace strata::peers
