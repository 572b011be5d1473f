// The memory map of AcceptAll for a place: every byte once, with its state.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/facade/graphs/graph_fixture.h"
#include "strata/tests/testing/layers/block_counter.h"

namespace strata {
namespace {

// Work in streams completes on request of the test.
class MemoryMapTest : public FacadeFixture {
 protected:
  MemoryMapTest() : FacadeFixture(1, "manual") {}

  BlockCounts Map() {
    BlockCounter map;
    facade().AcceptAll(kPlace, map);
    EXPECT_EQ(map.bytes, facade().GetStats(kPlace).reserved_bytes);
    const BlockCounts& counts = map;
    return counts;
  }
  void Submit(const Stream& stream) {
    EXPECT_EQ(device().Enqueue(stream, nullptr, 0, 1000, 0), Status::kSuccess);
  }
};

TEST_F(MemoryMapTest, ABlockIsLiveUntilItIsFreed) {
  Build();
  AllocationPtr first = facade().Alloc(kPlace, 1000);
  const AllocationPtr second =
      facade().GetAllocator(kPlace).Allocate(Request{1000, 4096});
  EXPECT_EQ(Map().live, 2U);
  EXPECT_EQ(Map().live_bytes, facade().GetStats(kPlace).in_use_bytes);
  first.reset();
  EXPECT_EQ(Map().live, 1U);
  EXPECT_EQ(Map().deferred, 0U);
}

TEST_F(MemoryMapTest, AMarkedBlockIsDeferredUntilItsStreamIsDone) {
  Build();
  const Stream other = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000);
  facade().RecordStream(block, other);
  EXPECT_EQ(Map().live, 1U);
  Submit(other);
  block.reset();
  EXPECT_EQ(Map().live, 0U);
  EXPECT_EQ(Map().deferred, 1U);
  device().StepAll();
  facade().Release(kPlace);
  EXPECT_EQ(Map().deferred, 0U);
}

TEST_F(MemoryMapTest, ADeferredBlockIsListedUntilItsStreamReusesIt) {
  for (const char* name : {"bfc", "naive_best_fit", "thread_local", "pool"}) {
    SCOPED_TRACE(name);
    Build(std::string("allocator_strategy=").append(name));
    const Stream stream = NewStream();
    const AllocationPtr other = facade().Alloc(kPlace, 1000);
    AllocationPtr block = facade().Alloc(kPlace, 1000, stream);
    Submit(stream);
    block.reset();
    EXPECT_EQ(Map().live, 1U);
    EXPECT_EQ(Map().deferred, 1U);
    block = facade().Alloc(kPlace, 1000, stream);
    EXPECT_EQ(Map().live, 2U);
    EXPECT_EQ(Map().deferred, 0U);
    block.reset();
    device().StepAll();
  }
}

TEST_F(MemoryMapTest, WhatIsLentCountsOnce) {
  Build("allocator_strategy=auto_growth");
  const Stream borrower = NewStream();
  const AllocationPtr used = facade().Alloc(kPlace, Mebibytes(9));
  const AllocationPtr borrowed = facade().Alloc(kPlace, Mebibytes(4), borrower);
  ASSERT_EQ(borrowed->base(), used->base());
  EXPECT_EQ(Map().lent, 1U);
  EXPECT_EQ(Map().live, 2U);
}

TEST_F(MemoryMapTest, WhatAChainThatIsGoneHasLentIsListed) {
  Build("allocator_strategy=auto_growth");
  const Stream lender = NewStream();
  const Stream borrower = NewStream();
  AllocationPtr used = facade().Alloc(kPlace, Mebibytes(9), lender);
  const AllocationPtr borrowed = facade().Alloc(kPlace, Mebibytes(4), borrower);
  ASSERT_EQ(borrowed->base(), used->base());
  used.reset();
  facade().StreamDestroyed(lender);
  Destroy(lender);
  EXPECT_EQ(Map().lent, 1U);
  EXPECT_EQ(Map().live, 1U);
}

TEST_F(MemoryMapTest, WhatAChainThatIsGoneHasDeferredIsListed) {
  Build();
  const Stream owner = NewStream();
  const Stream other = NewStream();
  AllocationPtr block = facade().Alloc(kPlace, 1000, owner);
  facade().RecordStream(block, other);
  Submit(owner);
  Submit(other);
  block.reset();
  facade().StreamDestroyed(owner);
  Destroy(owner);
  EXPECT_EQ(Map().deferred, 1U);
  device().StepAll();
}

TEST_F(MemoryMapTest, AChunkOnOfferIsListed) {
  Build();
  const Stream stream = NewStream();
  facade().Alloc(kPlace, Mebibytes(9), stream).reset();
  Submit(stream);
  facade().StreamDestroyed(stream);
  EXPECT_GT(Map().bytes, 0U);
  EXPECT_EQ(Map().live, 0U);
  device().StepAll();
  Destroy(stream);
}

using GraphMapTest = GraphFixture;

// DESIGN §5: allocated outside a capture, freed inside.
TEST_F(GraphMapTest, WhatAGraphKeepsIsDeferred) {
  Build();
  const Stream stream = NewStream();
  AllocationPtr outside = Alloc(1000, stream);
  {
    CaptureGuard guard(facade(), stream);
    Use(outside, stream);
    outside.reset();
    Finish(guard);
  }
  BlockCounter map;
  facade().AcceptAll(kPlace, map);
  EXPECT_EQ(map.live, 0U);
  EXPECT_EQ(map.deferred, 1U);
  DropGraphs();
}

TEST_F(GraphMapTest, FreeingWhatAGraphKeepsAgainIsFatal) {
  Build();
  const Stream stream = NewStream();
  AllocationPtr outside = Alloc(1000, stream);
  Allocation* const raw = outside.get();
  CaptureGuard guard(facade(), stream);
  outside.reset();
  EXPECT_DEATH(AllocationDeleter()(raw), "double free");
  Finish(guard);
}

}  // namespace
}  // namespace strata
