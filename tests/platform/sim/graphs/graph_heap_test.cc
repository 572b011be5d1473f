#include "strata/platform/sim/graphs/graph_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {
namespace {

using Nodes = std::vector<NodeIndex>;

class GraphHeapTest : public ::testing::Test {
 protected:
  // Adds a node behind `before`.
  NodeIndex Add(const Nodes& before) { return graph_.Add(SimNode(), before); }

  // Allocates in a new node behind `before`.
  DevicePtr Allocate(std::uint64_t bytes, const Nodes& before) {
    const auto node = static_cast<NodeIndex>(graph_.nodes().size());
    const auto ptr = heap_.Allocate(
        bytes, graph_, before, node, nullptr,
        [this](std::uint64_t more) -> std::optional<GraphHeap::Chunk> {
          if (refuse_) return std::nullopt;
          const GraphHeap::Chunk chunk{
              next_, (more + kFrameBytes - 1) / kFrameBytes * kFrameBytes};
          next_ += chunk.bytes;
          return chunk;
        });
    last_ = Add(before);
    return ptr.value_or(0);
  }
  // Frees in a new node behind `before`.
  NodeIndex Free(DevicePtr ptr, const Nodes& before) {
    const NodeIndex node = Add(before);
    heap_.Free(ptr, node);
    return node;
  }

  SimGraph graph_;
  GraphHeap heap_{nullptr};
  DevicePtr next_ = kFrameBytes;
  NodeIndex last_ = 0;  // the last allocation node
  bool refuse_ = false;
};

// cuda_semantics P16, in both directions.
TEST_F(GraphHeapTest, AddressIsSharedOnlyBehindItsFree) {
  const DevicePtr first = Allocate(kFrameBytes, {});
  const NodeIndex allocated = last_;
  const NodeIndex freed = Free(first, {allocated});
  EXPECT_NE(Allocate(kFrameBytes, {allocated}), first);
  EXPECT_EQ(Allocate(kFrameBytes, {freed}), first);
  EXPECT_NE(Allocate(kFrameBytes, {freed}), first);
}

TEST_F(GraphHeapTest, ChunksAreCutInSlices) {
  const DevicePtr first = Allocate(1, {});
  EXPECT_EQ(Allocate(513, {}), first + 512);
  EXPECT_EQ(Allocate(1, {}), first + 3 * 512);
  EXPECT_EQ(heap_.chunks().size(), 1u);
  EXPECT_EQ(heap_.open().size(), 3u);
}

TEST_F(GraphHeapTest, SmallestBlockThatFitsIsTaken) {
  const DevicePtr large = Allocate(4096, {});
  const NodeIndex a = last_;
  Allocate(512, {});
  const DevicePtr small = Allocate(1024, {});
  const NodeIndex b = last_;
  Allocate(kFrameBytes - 4096 - 512 - 1024, {});  // fills the chunk
  const NodeIndex large_freed = Free(large, {a});
  const NodeIndex small_freed = Free(small, {b});
  EXPECT_EQ(Allocate(1024, {large_freed, small_freed}), small);
  EXPECT_EQ(Allocate(1024, {large_freed, small_freed}), large);
}

// cuda_semantics M10: each of the neighbours must be free before.
TEST_F(GraphHeapTest, NeighboursServeTogether) {
  const DevicePtr low = Allocate(kFrameBytes / 2, {});
  const NodeIndex a = last_;
  const DevicePtr high = Allocate(kFrameBytes / 2, {});
  const NodeIndex b = last_;
  const NodeIndex low_freed = Free(low, {a});
  const NodeIndex high_freed = Free(high, {b});
  EXPECT_NE(Allocate(kFrameBytes, {low_freed}), low);
  EXPECT_EQ(Allocate(kFrameBytes, {low_freed, high_freed}), low);
}

TEST_F(GraphHeapTest, ChunksAreNeverJoined) {
  const DevicePtr first = Allocate(kFrameBytes, {});
  const NodeIndex a = last_;
  const DevicePtr second = Allocate(kFrameBytes, {});
  const NodeIndex b = last_;
  ASSERT_EQ(second, first + kFrameBytes);
  const Nodes freed{Free(first, {a}), Free(second, {b})};
  EXPECT_EQ(Allocate(2 * kFrameBytes, freed), second + kFrameBytes);
}

TEST_F(GraphHeapTest, RestForgetsNoFree) {
  const DevicePtr ptr = Allocate(kFrameBytes, {});
  const NodeIndex freed = Free(ptr, {last_});
  EXPECT_EQ(Allocate(512, {freed}), ptr);
  const DevicePtr beside = Allocate(512, {});  // not behind the free
  EXPECT_TRUE(beside < ptr || beside >= ptr + kFrameBytes);
}

TEST_F(GraphHeapTest, OpenAllocationsAreThoseNobodyFrees) {
  const DevicePtr first = Allocate(512, {});
  const NodeIndex a = last_;
  const DevicePtr second = Allocate(512, {});
  Free(first, {a});
  EXPECT_FALSE(heap_.FindOpen(first));
  EXPECT_FALSE(heap_.FindOpen(second + 1));
  ASSERT_TRUE(heap_.FindOpen(second));
  EXPECT_EQ(heap_.FindOpen(second)->node, last_);
  EXPECT_TRUE(heap_.Contains(first));
  EXPECT_FALSE(heap_.Contains(next_));
}

TEST_F(GraphHeapTest, RestoreUndoesWhatNodesDid) {
  const DevicePtr first = Allocate(512, {});
  const NodeIndex a = last_;
  const GraphHeap::Layout before = heap_.layout();
  const DevicePtr second = Allocate(512, {});
  Free(first, {a});
  heap_.Restore(before);
  EXPECT_TRUE(heap_.FindOpen(first));
  EXPECT_FALSE(heap_.FindOpen(second));
  EXPECT_EQ(Allocate(512, {}), second);
}

TEST_F(GraphHeapTest, WithoutMoreAddressesNothingChanges) {
  refuse_ = true;
  EXPECT_EQ(Allocate(512, {}), 0u);
  EXPECT_TRUE(heap_.open().empty());
  EXPECT_TRUE(heap_.chunks().empty());
}

}  // namespace
}  // namespace strata::sim
