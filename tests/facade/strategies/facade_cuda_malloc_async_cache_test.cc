// The cache of freed blocks of cuda_malloc_async, below a facade: captures, the
// end of streams, and the sums over all streams.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kKeptBytes = 1024;

class FacadeCudaMallocAsyncCacheTest : public GraphFixture {
 protected:
  void Start(const std::string& more = "") {
    Build("allocator_strategy=cuda_malloc_async " + more);
  }
  // Puts one block of the stream into the cache. Returns its address.
  void* KeepOne(const Stream& stream) {
    Alloc(kKeptBytes, stream).reset();
    AllocationPtr second = Alloc(kKeptBytes, stream);
    void* const kept = second->data();
    second.reset();
    return kept;
  }
  // Allocates the cached size on the stream. Returns the number of driver
  // calls.
  std::uint64_t Calls(const Stream& stream) {
    const std::uint64_t calls = CountAll();
    Alloc(kKeptBytes, stream).reset();
    return CountAll() - calls;
  }
};

TEST_F(FacadeCudaMallocAsyncCacheTest, ACaptureGetsNothingOfIt) {
  Start();
  const Stream stream = NewStream();
  const void* const kept = KeepOne(stream);
  std::vector<AllocationPtr> inside;
  CaptureGuard guard(facade(), stream);
  for (int i = 0; i < 4; ++i) {
    inside.push_back(Alloc(kKeptBytes, stream));
    EXPECT_NE(inside.back()->data(), kept);
    Use(inside.back(), stream);
  }
  inside.clear();
  const GraphExec exec = Finish(guard);
  const AllocationPtr eager = Alloc(kKeptBytes, stream);
  EXPECT_EQ(eager->data(), kept);
  Launch(exec, stream);
}

// A block freed inside belongs to the graph until the graph is destroyed.
TEST_F(FacadeCudaMallocAsyncCacheTest, WhatACaptureFreedIsNotKept) {
  Start();
  const Stream stream = NewStream();
  KeepOne(stream);
  AllocationPtr outside = Alloc(kKeptBytes, stream);
  const void* const data = outside->data();
  CaptureGuard guard(facade(), stream);
  Use(outside, stream);
  outside.reset();
  const GraphExec exec = Finish(guard);
  std::vector<AllocationPtr> eager;
  for (int i = 0; i < 64; ++i) {
    eager.push_back(Alloc(kKeptBytes, stream));
    EXPECT_NE(eager.back()->data(), data);
  }
  Launch(exec, stream);
}

// During the capture, streams outside it use no cache either, and lose nothing.
TEST_F(FacadeCudaMallocAsyncCacheTest, OtherStreamsGoToTheDriverMeanwhile) {
  Start();
  const Stream stream = NewStream();
  KeepOne(stream);
  EXPECT_EQ(Calls(stream), 0U);
  {
    CaptureGuard guard(facade(), NewStream());
    EXPECT_GE(Calls(stream), 2U);
    Finish(guard);
  }
  EXPECT_EQ(Calls(stream), 0U);
}

TEST_F(FacadeCudaMallocAsyncCacheTest, TheEndOfAStreamFreesItThere) {
  Start();
  const Stream stream = NewStream();
  KeepOne(stream);
  const CallLog log(device());
  facade().StreamDestroyed(stream);
  Destroy(stream);
  const auto frees = log.Of(DeviceCall::kFreeAsync);
  ASSERT_EQ(frees.size(), 1U);
  EXPECT_EQ(frees[0].stream_uid, stream.uid);
  EXPECT_EQ(log.Failed(), 0U);
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
}

TEST_F(FacadeCudaMallocAsyncCacheTest, TheEndOfTheFacadeFreesIt) {
  Start();
  KeepOne(NewStream());
  EXPECT_EQ(device().Leaks().pool_blocks, 1U);
  facade_.reset();
  EXPECT_EQ(device().Leaks().pool_blocks, 0U);
  EXPECT_EQ(device().Leaks().pools, 0U);
}

TEST_F(FacadeCudaMallocAsyncCacheTest, ReleaseGivesItToTheSystem) {
  Start();
  KeepOne(NewStream());
  KeepOne(NewStream());
  EXPECT_EQ(facade().GetStats(Here()).in_use_bytes, 0U);
  EXPECT_GT(Reserved(), 0U);
  facade().Release(Here());
  EXPECT_EQ(Reserved(), 0U);
}

// If a layer above must see every call, hits are still hits.
TEST_F(FacadeCudaMallocAsyncCacheTest, IsThereForCallsThatWalk) {
  Start("strata_in_use_limit=1GiB");
  const Stream stream = NewStream();
  EXPECT_EQ(facade().GetAllocator(Here()).hit_path(), nullptr);
  KeepOne(stream);
  EXPECT_EQ(Calls(stream), 0U);
}

}  // namespace
}  // namespace strata
