// The rules of pytorch.md §2.1 to §2.6.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/pytorch/address_table.h"
#include "strata/tools/peers/pytorch/pytorch_peer.h"

namespace strata::peers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PytorchPeerTest : public ::testing::Test {
 protected:
  PytorchPeerTest()
      : device_(Mebibytes(64)),
        stream_(device_.legacy()),
        peer_(std::in_place, device_.device()) {}

  // The segments that a request of `bytes` in a new stream allocates.
  std::vector<std::uint64_t> SegmentsFor(std::size_t bytes) {
    device_.TakeBytes(DeviceCall::kMemAlloc);
    Take(*peer_, bytes, device_.NewStream());
    return device_.TakeBytes(DeviceCall::kMemAlloc);
  }

  PeerTestDevice device_;
  const Stream stream_;
  std::optional<PytorchPeer> peer_;
};

TEST_F(PytorchPeerTest, RoundsTo512Bytes) {
  EXPECT_EQ(Take(*peer_, 1, stream_).bytes, 512U);
  EXPECT_EQ(Take(*peer_, 513, stream_).bytes, 1024U);
  EXPECT_EQ(peer_->stats().in_use_bytes, 1536U);
}

// §5: each count for all blocks, and for the blocks of the pool.
TEST_F(PytorchPeerTest, CountsWhatIsActiveAndWhatWasAskedFor) {
  const PeerBlock small = Take(*peer_, 1000, stream_);
  const PeerBlock large = Take(*peer_, Mebibytes(2) - 100, stream_);
  peer_->Free(small);
  const PytorchStats stats = peer_->pytorch_stats();
  EXPECT_EQ(stats.active_bytes(PytorchStats::kSmall).current, 0);
  EXPECT_EQ(stats.active_bytes(PytorchStats::kSmall).peak, 1024);
  EXPECT_EQ(stats.requested_bytes(PytorchStats::kSmall).freed, 1000);
  EXPECT_EQ(stats.requested_bytes(PytorchStats::kLarge).current,
            Mebibytes(2) - 100);
  EXPECT_EQ(peer_->stats().in_use_bytes, large.bytes);
  EXPECT_EQ(peer_->stats().allocations, 2U);
}

TEST_F(PytorchPeerTest, CountsFreePartsOfSegmentsThatArePartlyInUse) {
  constexpr PytorchStats::Pool kSmall = PytorchStats::kSmall;
  const auto parts = [this] {
    const PytorchStats stats = peer_->pytorch_stats();
    return std::pair(stats.inactive_split(kSmall).current,
                     stats.inactive_split_bytes(kSmall).current);
  };
  constexpr std::int64_t kSegment = Mebibytes(2);
  const PeerBlock first = Take(*peer_, 512, stream_);
  EXPECT_EQ(parts(), std::pair(std::int64_t{1}, kSegment - 512));
  const PeerBlock second = Take(*peer_, 512, stream_);
  peer_->Free(first);
  EXPECT_EQ(parts(), std::pair(std::int64_t{2}, kSegment - 512));
  const PeerBlock again = Take(*peer_, 512, stream_);
  EXPECT_EQ(parts(), std::pair(std::int64_t{1}, kSegment - 1024));
  peer_->Free(again);
  peer_->Free(second);
  EXPECT_EQ(parts(), std::pair(std::int64_t{0}, std::int64_t{0}));
}

TEST_F(PytorchPeerTest, SegmentIsOf2MiBForSmallBlocks) {
  EXPECT_THAT(SegmentsFor(Mebibytes(1)), ElementsAre(Mebibytes(2)));
}

TEST_F(PytorchPeerTest, SegmentIsOf20MiBBelow10MiB) {
  EXPECT_THAT(SegmentsFor(Mebibytes(1) + 1), ElementsAre(Mebibytes(20)));
  EXPECT_THAT(SegmentsFor(Mebibytes(10) - 512), ElementsAre(Mebibytes(20)));
}

TEST_F(PytorchPeerTest, SegmentIsAMultipleOf2MiBFrom10MiBOn) {
  EXPECT_THAT(SegmentsFor(Mebibytes(10)), ElementsAre(Mebibytes(10)));
  EXPECT_THAT(SegmentsFor(Mebibytes(10) + 1), ElementsAre(Mebibytes(12)));
}

TEST_F(PytorchPeerTest, SmallBlocksAreSplitFrom512BytesOn) {
  const PeerBlock first = Take(*peer_, 512, stream_);
  EXPECT_EQ(Take(*peer_, Mebibytes(1), stream_).address, first.address + 512);
  EXPECT_EQ(Take(*peer_, Mebibytes(1) - 1024, stream_).bytes,
            Mebibytes(1) - 1024);
  EXPECT_EQ(Take(*peer_, 512, stream_).address,
            first.address + Mebibytes(2) - 512);
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(2));
}

TEST_F(PytorchPeerTest, LargeBlocksAreSplitOnlyIfMoreThan1MiBIsLeft) {
  EXPECT_EQ(Take(*peer_, Mebibytes(19), device_.NewStream()).bytes,
            Mebibytes(20));
  EXPECT_EQ(Take(*peer_, Mebibytes(19) - 512, stream_).bytes,
            Mebibytes(19) - 512);
}

TEST_F(PytorchPeerTest, TakesTheSmallestBlockFromItsLowEnd) {
  std::vector<PeerBlock> blocks;
  for (const std::size_t kibibytes : {300U, 1U, 100U, 1U, 200U, 1U}) {
    blocks.push_back(Take(*peer_, Kibibytes(kibibytes), stream_));
  }
  for (const std::size_t i : {0U, 2U, 4U}) peer_->Free(blocks[i]);
  EXPECT_EQ(Take(*peer_, Kibibytes(150), stream_).address, blocks[4].address);
  EXPECT_EQ(Take(*peer_, Kibibytes(50), stream_).address,
            blocks[4].address + Kibibytes(150));
}

TEST_F(PytorchPeerTest, FreeNeighboursJoin) {
  const PeerBlock low = Take(*peer_, Mebibytes(1), stream_);
  const PeerBlock high = Take(*peer_, Mebibytes(1), stream_);
  peer_->Free(low);
  peer_->Free(high);
  const PeerBlock small = Take(*peer_, 512, stream_);
  EXPECT_EQ(small.address, low.address);
  peer_->Free(small);
  EXPECT_EQ(device_.Count(DeviceCall::kMemAlloc), 1U);
}

TEST_F(PytorchPeerTest, SmallRequestsLeaveTheLargePoolAlone) {
  peer_->Free(Take(*peer_, Mebibytes(4), stream_));
  Take(*peer_, Mebibytes(1), stream_);
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc),
              ElementsAre(Mebibytes(20), Mebibytes(2)));
}

TEST_F(PytorchPeerTest, StreamsHaveBlocksOfTheirOwn) {
  peer_->Free(Take(*peer_, Mebibytes(4), stream_));
  Take(*peer_, Mebibytes(4), device_.NewStream());
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc),
              ElementsAre(Mebibytes(20), Mebibytes(20)));
}

TEST_F(PytorchPeerTest, ExhaustionGivesIdleSegmentsOfEveryStreamBack) {
  const PeerBlock held = Take(*peer_, 512, stream_);
  peer_->Free(Take(*peer_, Mebibytes(30), device_.NewStream()));
  peer_->Free(Take(*peer_, Mebibytes(20), stream_));
  EXPECT_NE(Take(*peer_, Mebibytes(62), stream_).address, 0U);
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(64));
  peer_->Free(held);
}

TEST_F(PytorchPeerTest, SegmentWithABlockInUseDoesNotGoBack) {
  const PeerBlock held = Take(*peer_, Mebibytes(2), stream_);
  EXPECT_EQ(Take(*peer_, Mebibytes(46), stream_).address, 0U);
  EXPECT_EQ(device_.Count(DeviceCall::kMemFree), 0U);
  peer_->Free(held);
  EXPECT_NE(Take(*peer_, Mebibytes(46), stream_).address, 0U);
}

TEST_F(PytorchPeerTest, ReleaseGivesIdleSegmentsBack) {
  const PeerBlock held = Take(*peer_, 512, stream_);
  peer_->Free(Take(*peer_, Mebibytes(30), device_.NewStream()));
  peer_->Free(Take(*peer_, Mebibytes(20), stream_));
  peer_->Release();
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(2));
  EXPECT_EQ(device_.used_bytes(), Mebibytes(2));
  peer_->Free(held);
}

// A small segment with a hole, a block and the rest; a large one with a block
// at its end; and one without a block.
TEST_F(PytorchPeerTest, RestoresTheSegmentsOfARecording) {
  const Stream other = device_.NewStream();
  std::vector<PeerBlock> blocks;
  ASSERT_TRUE(
      peer_->Restore({{Mebibytes(2), stream_, {{1024, 512}}},
                      {Mebibytes(20), other, {{Mebibytes(16), Mebibytes(4)}}},
                      {Mebibytes(6), stream_, {}}},
                     &blocks));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].bytes, 512U);
  EXPECT_EQ(blocks[1].bytes, Mebibytes(4));
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(28));
  EXPECT_EQ(peer_->stats().in_use_bytes, Mebibytes(4) + 512);
  // The hole is the best fit, then the space behind the block.
  EXPECT_EQ(Take(*peer_, 1024, stream_).address, blocks[0].address - 1024);
  EXPECT_EQ(Take(*peer_, 1024, stream_).address, blocks[0].address + 512);
  EXPECT_EQ(Take(*peer_, Mebibytes(16), other).address + Mebibytes(16),
            blocks[1].address);
  device_.TakeBytes(DeviceCall::kMemAlloc);
  peer_->Release();
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(22));
  for (const PeerBlock& block : blocks) peer_->Free(block);
}

TEST_F(PytorchPeerTest, RestoresNothingIfThereIsTooLittleMemory) {
  std::vector<PeerBlock> blocks;
  EXPECT_FALSE(peer_->Restore({{Mebibytes(40), stream_, {{0, 512}}},
                               {Mebibytes(40), stream_, {{0, 512}}}},
                              &blocks));
  EXPECT_THAT(blocks, IsEmpty());
  EXPECT_EQ(device_.used_bytes(), 0U);
  EXPECT_EQ(peer_->stats().reserved_bytes, 0U);
}

TEST_F(PytorchPeerTest, RequestBeyondAnyAddressAsksTheDeviceForNothing) {
  EXPECT_EQ(Take(*peer_, SIZE_MAX, stream_).address, 0U);
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kMemAlloc), IsEmpty());
}

TEST(FlatAddressMapTest, FindsEveryAddressWhateverWasTakenOutBefore) {
  FlatAddressMap<int> map;
  std::vector<int> values(500);
  const auto address = [](std::size_t i) { return DevicePtr{(i + 1) * 512}; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    map.Insert(address(i), &values[i]);
  }
  for (std::size_t i = 0; i < values.size(); i += 3) map.Take(address(i));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(map.Take(address(i)), i % 3 == 0 ? nullptr : &values[i]) << i;
  }
}

class PytorchExpandablePeerTest : public ::testing::Test {
 protected:
  PytorchExpandablePeerTest()
      : device_(Mebibytes(64)), stream_(device_.legacy()) {}

  void SetUp() override {
    if (!device_.device().caps().virtual_memory) {
      GTEST_SKIP() << "the simulated device has no virtual memory";
    }
    PytorchSettings settings;
    settings.expandable_segments = true;
    peer_.emplace(device_.device(), settings);
  }

  PeerTestDevice device_;
  const Stream stream_;
  std::optional<PytorchPeer> peer_;
};

TEST_F(PytorchExpandablePeerTest, MapsGranulesOf20MiBOrOf2ForSmallBlocks) {
  Take(*peer_, 512, stream_);
  EXPECT_EQ(device_.used_bytes(), Mebibytes(2));
  Take(*peer_, Mebibytes(21), stream_);
  EXPECT_EQ(device_.used_bytes(), Mebibytes(42));
  EXPECT_THAT(device_.TakeBytes(DeviceCall::kCreateMemory),
              ElementsAre(Mebibytes(2), Mebibytes(20), Mebibytes(20)));
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(42));
}

TEST_F(PytorchExpandablePeerTest, BlockGrowsIntoTheAddressesBehindIt) {
  const PeerBlock first = Take(*peer_, Mebibytes(15), stream_);
  const PeerBlock second = Take(*peer_, Mebibytes(15), stream_);
  EXPECT_EQ(second.address, first.address + Mebibytes(15));
  EXPECT_EQ(device_.used_bytes(), Mebibytes(40));
}

TEST_F(PytorchExpandablePeerTest, LargeBlocksAreSplitFrom512BytesOn) {
  const PeerBlock first = Take(*peer_, Mebibytes(20) - 512, stream_);
  EXPECT_EQ(first.bytes, Mebibytes(20) - 512);
}

TEST_F(PytorchExpandablePeerTest, ExhaustionUnmapsFreeGranulesOnly) {
  const PeerBlock low = Take(*peer_, Mebibytes(25), stream_);
  const PeerBlock held = Take(*peer_, Mebibytes(5), stream_);
  peer_->Free(low);
  // 20 of the 25 MiB are one granule; each of the other two contains a part of
  // `held`.
  EXPECT_NE(Take(*peer_, Mebibytes(40), device_.NewStream()).address, 0U);
  EXPECT_EQ(device_.used_bytes(), Mebibytes(60));
  EXPECT_EQ(device_.Count(DeviceCall::kUnmapRange), 1U);
  EXPECT_EQ(device_.Count(DeviceCall::kStreamSynchronize), 1U);
  peer_->Free(held);
}

TEST_F(PytorchExpandablePeerTest, HoleIsMappedAgainBeforeTheEndGrows) {
  const PeerBlock low = Take(*peer_, Mebibytes(20), stream_);
  const PeerBlock held = Take(*peer_, Mebibytes(20), stream_);
  peer_->Free(low);
  const Stream other = device_.NewStream();
  const PeerBlock theirs = Take(*peer_, Mebibytes(40), other);
  EXPECT_NE(theirs.address, 0U);  // it uses the memory of `low`
  peer_->Free(theirs);
  EXPECT_EQ(Take(*peer_, Mebibytes(20), stream_).address, low.address);
  peer_->Free(held);
}

TEST_F(PytorchExpandablePeerTest, RefusedGrowthKeepsNothing) {
  const PeerBlock held = Take(*peer_, Mebibytes(20), stream_);
  EXPECT_EQ(Take(*peer_, Mebibytes(50), stream_).address, 0U);
  EXPECT_EQ(device_.used_bytes(), Mebibytes(20));
  EXPECT_EQ(peer_->stats().reserved_bytes, Mebibytes(20));
  peer_->Free(held);
}

TEST_F(PytorchExpandablePeerTest, RequestLargerThanASegmentIsOutOfMemory) {
  EXPECT_EQ(Take(*peer_, Gibibytes(1), stream_).address, 0U);
  EXPECT_EQ(device_.used_bytes(), 0U);
}

}  // namespace
}  // namespace strata::peers
