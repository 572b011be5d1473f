// The rules of paddle.md §3.3 and §3.6.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "strata/allocation/size.h"
#include "strata/tests/tools/peer_fixture.h"
#include "strata/tools/peers/paddle_peer.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PaddlePeerTest : public ::testing::Test {
 protected:
  PaddlePeerTest() : device_(Mebibytes(64)), stream_(device_.legacy()) {}

  PeerTestDevice device_;
  const Stream stream_;
};

TEST_F(PaddlePeerTest, ChunkIsAsLargeAsItsRequestRoundedTo256) {
  PaddlePeer peer(device_.device(), 0);
  peer.Free(Take(peer, 1000, stream_));
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc), ElementsAre(1024));
  EXPECT_EQ(peer.stats().reserved_bytes, 1024U);
}

TEST_F(PaddlePeerTest, ChunkHasAtLeastTheSizeOfTheFlag) {
  PaddlePeer peer(device_.device(), Mebibytes(4) - 1);
  peer.Free(Take(peer, 1000, stream_));
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc),
              ElementsAre(Mebibytes(4)));
}

TEST_F(PaddlePeerTest, TakesTheHighEndOfTheSmallestBlock) {
  PaddlePeer peer(device_.device(), 0);
  const PeerBlock large = Take(peer, 8192, stream_);
  const PeerBlock small = Take(peer, 4096, stream_);
  peer.Free(large);
  peer.Free(small);
  const PeerBlock high = Take(peer, 256, stream_);
  EXPECT_EQ(high.address, small.address + 4096 - 256);
  const PeerBlock rest = Take(peer, 4096 - 256, stream_);
  EXPECT_EQ(rest.address, small.address);
  peer.Free(high);
  peer.Free(rest);
  EXPECT_EQ(device_.Count(DeviceCall::kMemAlloc), 2U);
}

TEST_F(PaddlePeerTest, FreeNeighboursOfAChunkJoin) {
  PaddlePeer peer(device_.device(), 0);
  const PeerBlock whole = Take(peer, 1024, stream_);
  peer.Free(whole);
  std::vector<PeerBlock> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(Take(peer, 256, stream_));
  for (const std::size_t i : {0U, 2U, 1U, 3U}) peer.Free(parts[i]);
  const PeerBlock again = Take(peer, 1024, stream_);
  EXPECT_EQ(again.address, whole.address);
  peer.Free(again);
}

TEST_F(PaddlePeerTest, StreamsHaveChunksOfTheirOwn) {
  PaddlePeer peer(device_.device(), 0);
  peer.Free(Take(peer, 1024, stream_));
  peer.Free(Take(peer, 1024, device_.NewStream()));
  EXPECT_EQ(device_.Count(DeviceCall::kMemAlloc), 2U);
}

TEST_F(PaddlePeerTest, ExhaustionGivesIdleChunksBackAndRetriesTheSameSize) {
  PaddlePeer peer(device_.device(), 0);
  const PeerBlock held = Take(peer, Mebibytes(4), stream_);
  peer.Free(Take(peer, Mebibytes(40), stream_));
  device_.TakeBytes(DeviceCall::kMemAlloc);
  const PeerBlock block = Take(peer, Mebibytes(60), stream_);
  EXPECT_NE(block.address, 0U);
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc),
              ElementsAre(Mebibytes(60), Mebibytes(60)));
  EXPECT_EQ(peer.stats().reserved_bytes, Mebibytes(64));
  peer.Free(held);
  peer.Free(block);
}

TEST_F(PaddlePeerTest, ChunkWithABlockInUseDoesNotGoBack) {
  PaddlePeer peer(device_.device(), Mebibytes(40));
  const PeerBlock held = Take(peer, 256, stream_);
  EXPECT_EQ(Take(peer, Mebibytes(40), stream_).address, 0U);
  EXPECT_EQ(device_.Count(DeviceCall::kMemFree), 0U);
  peer.Free(held);
}

TEST_F(PaddlePeerTest, ExhaustionGivesIdleChunksOfOtherStreamsBack) {
  PaddlePeer peer(device_.device(), 0);
  peer.Free(Take(peer, Mebibytes(40), device_.NewStream()));
  const PeerBlock block = Take(peer, Mebibytes(40), device_.NewStream());
  EXPECT_NE(block.address, 0U);
  peer.Free(block);
}

TEST_F(PaddlePeerTest, ReusesABlockWithoutADeviceCall) {
  PaddlePeer peer(device_.device(), 0);
  peer.Free(Take(peer, Mebibytes(4), stream_));
  device_.TakeBytes(DeviceCall::kMemAlloc);
  peer.Free(Take(peer, Mebibytes(3), stream_));
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc), IsEmpty());
}

}  // namespace
}  // namespace strata
