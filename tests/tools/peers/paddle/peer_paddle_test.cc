// The rules of paddle.md §1b, §3.1, §3.3, §3.6 and §3.13.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/tools/peers/peer_fixture.h"
#include "strata/tools/peers/paddle/paddle_allocator.h"
#include "strata/tools/peers/paddle/paddle_peer.h"
#include "strata/tools/peers/paddle/paddle_stat.h"

namespace strata::peers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

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

TEST_F(PaddlePeerTest, ReleaseGivesIdleChunksOfEveryStreamBack) {
  PaddlePeer peer(device_.device(), 0);
  const PeerBlock held = Take(peer, Mebibytes(4), stream_);
  peer.Free(Take(peer, Mebibytes(8), stream_));
  peer.Free(Take(peer, Mebibytes(8), device_.NewStream()));
  peer.Release();
  EXPECT_EQ(peer.stats().reserved_bytes, Mebibytes(4));
  EXPECT_EQ(device_.used_bytes(), Mebibytes(4));
  peer.Free(held);
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

// §1b: two objects and the node of the block. Each layer that has an object
// allocates it on the heap.
TEST_F(PaddlePeerTest, BlockOfTheSizeTakesTheHeapCallsOfTheOriginal) {
  PaddlePeer peer(device_.device(), 0);
  peer.Free(Take(peer, 1024, stream_));
  const HeapCallCounter heap;
  const PeerBlock block = Take(peer, 1024, stream_);
  EXPECT_EQ(heap.calls(), 2U + 1U);
  peer.Free(block);
  EXPECT_EQ(heap.calls(), 3U + 2U + 1U);
}

TEST_F(PaddlePeerTest, PartOfABlockTakesANodeMoreInItsChunkAndInTheMap) {
  PaddlePeer peer(device_.device(), 0);
  peer.Free(Take(peer, 1024, stream_));
  const HeapCallCounter heap;
  const PeerBlock block = Take(peer, 256, stream_);
  EXPECT_EQ(heap.calls(), 4U + 1U);
  peer.Free(block);
  EXPECT_EQ(heap.calls(), 5U + 1U + 4U);
}

TEST_F(PaddlePeerTest, BlockFreedByAnotherThreadIsNoLongerInUse) {
  PaddlePeer peer(device_.device(), 0);
  const Stream stream = device_.NewStream();
  PeerBlock block;
  std::thread([&] { block = Take(peer, 1024, stream); }).join();
  EXPECT_EQ(peer.stats().in_use_bytes, 1024U);
  std::thread([&] { peer.Free(block); }).join();
  EXPECT_EQ(peer.stats().in_use_bytes, 0U);
  EXPECT_EQ(peer.stats().allocations, 1U);
}

// Records the layers that see an allocation, and the order.
class PaddleNotingLayer final : public PaddleAllocator {
 public:
  PaddleNotingLayer(std::string name, PaddleAllocator* below, std::string* note)
      : name_(std::move(name)), below_(below), note_(note) {}

 protected:
  PaddleAllocation* AllocateImpl(std::size_t bytes) override {
    *note_ += "+" + name_;
    if (below_ != nullptr) return below_->Allocate(bytes).release();
    return std::make_unique<PaddleAllocation>(256, bytes, PaddlePlace())
        .release();
  }
  void FreeImpl(PaddleAllocation* allocation) override {
    *note_ += "-" + name_;
    if (below_ != nullptr) {
      below_->Free(allocation);
    } else {
      delete allocation;
    }
  }

 private:
  const std::string name_;
  PaddleAllocator* const below_;
  std::string* const note_;
};

TEST(PaddleAllocatorTest, LayersSeeAFreeFromTheOutermostOn) {  // §3.1, rule 3
  std::string note;
  PaddleNotingLayer inner("inner", nullptr, &note);
  PaddleNotingLayer outer("outer", &inner, &note);
  outer.Allocate(256).reset();
  EXPECT_EQ(note, "+outer+inner-outer-inner");
}

TEST(PaddleStatTest, IsTheSumOverThreadsAlsoOfThoseThatEnded) {
  PaddleStat stat;
  stat.Update(5);
  std::thread([&] { stat.Update(7); }).join();
  EXPECT_EQ(stat.Current(), 12);
}

TEST(PaddleStatTest, EachCountsForItself) {
  PaddleStat first;
  first.Update(5);
  EXPECT_EQ(PaddleStat().Current(), 0);
  EXPECT_EQ(first.Current(), 5);
}

TEST(PaddleStatTest, StartsAtZeroWhereAnotherOneWas) {
  std::make_unique<PaddleStat>()->Update(5);
  EXPECT_EQ(PaddleStat().Current(), 0);
}

TEST(PaddleStatTest, ThereAreSixteenAtMost) {
  std::vector<std::unique_ptr<PaddleStat>> stats;
  for (int i = 0; i < 16; ++i) stats.push_back(std::make_unique<PaddleStat>());
  EXPECT_THAT([] { PaddleStat(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("16")));
  stats.pop_back();
  EXPECT_NO_THROW(PaddleStat());
}

}  // namespace
}  // namespace strata::peers
