// The rules of rmm_cccl_umpire.md §1.3.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/rmm/rmm_pool_peer.h"

namespace strata::peers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RmmPoolPeerTest : public ::testing::Test {
 protected:
  RmmPoolPeerTest() : device_(Mebibytes(64)), stream_(device_.legacy()) {}

  std::vector<std::uint64_t> ChunksFor(RmmPoolPeer& peer,
                                       const std::vector<std::size_t>& sizes) {
    device_.TakeBytes(DeviceCall::kMemAlloc);
    for (const std::size_t bytes : sizes) last_ = Take(peer, bytes, stream_);
    return device_.TakeBytes(DeviceCall::kMemAlloc);
  }

  PeerTestDevice device_;
  const Stream stream_;
  PeerBlock last_;
};

TEST_F(RmmPoolPeerTest, RoundsTo256Bytes) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = Mebibytes(2)});
  EXPECT_EQ(Take(peer, 1, stream_).bytes, 256U);
  EXPECT_EQ(Take(peer, 257, stream_).bytes, 512U);
  EXPECT_EQ(peer.stats().in_use_bytes, 768U);
}

TEST_F(RmmPoolPeerTest, InitialChunkIsTakenWhenItIsBuilt) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = Mebibytes(8)});
  EXPECT_EQ(peer.stats().reserved_bytes, Mebibytes(8));
  EXPECT_THAT(ChunksFor(peer, {Mebibytes(8)}), IsEmpty());
}

TEST_F(RmmPoolPeerTest, InitialChunkThatDoesNotFitIsRefused) {
  EXPECT_THROW(RmmPoolPeer(device_.device(), {.initial_bytes = Mebibytes(65)}),
               std::bad_alloc);
}

TEST_F(RmmPoolPeerTest, GrowsByWhatItHas) {
  RmmPoolPeer peer(device_.device(), {});
  EXPECT_THAT(ChunksFor(peer, {Mebibytes(2), Mebibytes(1), Mebibytes(2)}),
              ElementsAre(Mebibytes(2), Mebibytes(2), Mebibytes(4)));
  EXPECT_EQ(peer.stats().peak_reserved_bytes, Mebibytes(8));
}

TEST_F(RmmPoolPeerTest, GrowsByHalfOfWhatTheMaximumLeaves) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = Mebibytes(8),
                                      .maximum_bytes = Mebibytes(32)});
  EXPECT_THAT(ChunksFor(peer, {Mebibytes(8), Mebibytes(2)}),
              ElementsAre(Mebibytes(12)));
  EXPECT_THAT(ChunksFor(peer, {Mebibytes(13)}), IsEmpty());
  EXPECT_EQ(last_.address, 0U);
}

TEST_F(RmmPoolPeerTest, RefusedGrowthIsHalvedDownToTheRequest) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = Mebibytes(40)});
  EXPECT_THAT(ChunksFor(peer, {Mebibytes(40), Mebibytes(4)}),
              ElementsAre(Mebibytes(40), Mebibytes(20)));
  EXPECT_NE(last_.address, 0U);
  EXPECT_THAT(ChunksFor(peer, {Mebibytes(25)}),
              ElementsAre(Mebibytes(60), Mebibytes(30), Mebibytes(25)));
  EXPECT_EQ(last_.address, 0U);
}

TEST_F(RmmPoolPeerTest, TakesTheSmallestBlockFromItsLowEnd) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = Mebibytes(2)});
  const PeerBlock large = Take(peer, 4096, stream_);
  const PeerBlock wall = Take(peer, 256, stream_);
  const PeerBlock small = Take(peer, 2048, stream_);
  Take(peer, 256, stream_);
  peer.Free(large);
  peer.Free(small);
  EXPECT_EQ(Take(peer, 1024, stream_).address, small.address);
  EXPECT_EQ(Take(peer, 1024, stream_).address, small.address + 1024);
  EXPECT_EQ(Take(peer, 256, stream_).address, large.address);
  peer.Free(wall);
}

TEST_F(RmmPoolPeerTest, FreeNeighboursJoin) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = 1024});
  const PeerBlock low = Take(peer, 256, stream_);
  const PeerBlock middle = Take(peer, 512, stream_);
  const PeerBlock high = Take(peer, 256, stream_);
  peer.Free(low);
  peer.Free(high);
  peer.Free(middle);
  EXPECT_EQ(Take(peer, 1024, stream_).address, low.address);
}

TEST(RmmFreeListTest, ChunksStayApartAlthoughTheyTouch) {
  RmmFreeList list;
  list.Insert({0x1000, 0x1000, /*is_head=*/true});
  list.Insert({0x2000, 0x1000, /*is_head=*/true});
  EXPECT_EQ(list.blocks().size(), 2U);
  list.Insert({0x3000, 0x1000, /*is_head=*/false});
  EXPECT_EQ(list.blocks().size(), 2U);
  EXPECT_EQ(list.TakeBestFit(0x2000).address, 0x2000U);
  EXPECT_EQ(list.TakeBestFit(0x2000).address, 0U);
}

TEST_F(RmmPoolPeerTest, EveryFreeRecordsTheEventOfItsStream) {
  RmmPoolPeer peer(device_.device(), {});
  for (int i = 0; i < 3; ++i) peer.Free(Take(peer, 100, stream_));
  EXPECT_EQ(device_.Count(DeviceCall::kEventRecord), 3U);
  EXPECT_EQ(device_.Count(DeviceCall::kEventCreate), 1U);
}

TEST_F(RmmPoolPeerTest, BlockOfAnotherStreamIsTakenAfterAWait) {
  RmmPoolPeer peer(device_.device(), {});
  const PeerBlock first = Take(peer, Mebibytes(2), stream_);
  peer.Free(first);
  const Stream other = device_.NewStream();
  EXPECT_EQ(Take(peer, Mebibytes(1), other).address, first.address);
  EXPECT_EQ(device_.Count(DeviceCall::kStreamWaitEvent), 1U);
  // The rest of it stays with the stream that freed it.
  EXPECT_EQ(Take(peer, Mebibytes(1), stream_).address,
            first.address + Mebibytes(1));
  EXPECT_EQ(device_.Count(DeviceCall::kStreamWaitEvent), 1U);
  EXPECT_EQ(device_.Count(DeviceCall::kMemAlloc), 1U);
}

TEST_F(RmmPoolPeerTest, ListsOfOtherStreamsAreTakenOverBeforeItGrows) {
  RmmPoolPeer peer(device_.device(), {.initial_bytes = Mebibytes(2)});
  const Stream other = device_.NewStream();
  const PeerBlock low = Take(peer, Mebibytes(1), stream_);
  const PeerBlock high = Take(peer, Mebibytes(1), other);
  peer.Free(low);
  peer.Free(high);
  EXPECT_EQ(Take(peer, Mebibytes(2), other).address, low.address);
  EXPECT_EQ(device_.Count(DeviceCall::kMemAlloc), 1U);
}

TEST_F(RmmPoolPeerTest, NothingGoesBackToTheDevice) {
  RmmPoolPeer peer(device_.device(), {});
  peer.Free(Take(peer, Mebibytes(40), stream_));
  EXPECT_EQ(Take(peer, Mebibytes(50), stream_).address, 0U);
  EXPECT_EQ(device_.Count(DeviceCall::kMemFree), 0U);
}

}  // namespace
}  // namespace strata::peers
