// The limit of a place with memory from a driver pool, beside graph pools,
// which allocate chunks.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kLimitBytes = Mebibytes(40);

class GraphDriverLimitTest : public GraphFixture {
 protected:
  GraphDriverLimitTest() {
    Build(
        "allocator_strategy=cuda_malloc_async,gpu_memory_limit_mb=40,"
        "gpu_allocator_retry_time=0");
    facade().Wrap(stream_.handle, 0);
  }

  // Allocates up to `count` blocks. Returns true if all succeeded.
  bool Take(std::size_t count, std::size_t bytes, const Stream& stream) {
    for (; count != 0; --count) {
      try {
        blocks_.push_back(Alloc(bytes, stream));
      } catch (const OutOfMemory& error) {
        EXPECT_EQ(error.failure().reason, Failure::Reason::kLimit);
        EXPECT_EQ(error.failure().limit_bytes, kLimitBytes) << error.what();
        advice_ = error.advice();
        return false;
      }
      ExpectWithinLimit();
    }
    return true;
  }
  void ExpectWithinLimit() {
    EXPECT_LE(Reserved(), kLimitBytes);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
    EXPECT_LE(total_bytes - free_bytes, kLimitBytes);
  }

  const Stream stream_ = NewStream();
  const Stream other_ = NewStream();
  std::vector<AllocationPtr> blocks_;
  std::string advice_;  // of the last refusal
};

// An earlier fault: the pool of the driver and the graph pools each had the
// whole limit.
TEST_F(GraphDriverLimitTest, AGraphPoolGrowsBesideWhatTheDriverHolds) {
  EXPECT_TRUE(Take(3, Mebibytes(1), other_));
  CaptureGuard guard(facade(), stream_);
  EXPECT_FALSE(Take(40, Mebibytes(1), stream_));
  ExpectWithinLimit();
  EXPECT_NO_THROW(Finish(guard));
  blocks_.clear();
}

TEST_F(GraphDriverLimitTest, TheDriverGrowsBesideAGraphPool) {
  CaptureGuard guard(facade(), stream_);
  EXPECT_TRUE(Take(20, Mebibytes(1), stream_));
  EXPECT_FALSE(Take(40, Mebibytes(1), other_));
  ExpectWithinLimit();
  EXPECT_NO_THROW(Finish(guard));
  EXPECT_FALSE(Take(40, Mebibytes(1), other_));
  ExpectWithinLimit();
  // The growth of the driver pool with another limit is unknown.
  EXPECT_EQ(advice_, "");
  blocks_.clear();
  DropGraphs();
  Sweep();
  // All of it after the end of the graph.
  EXPECT_TRUE(Take(40, Mebibytes(1), other_));
  blocks_.clear();
}

// The memory stays in the driver pool until a request needs it.
TEST_F(GraphDriverLimitTest, WhatTheDriverHoldsIdleMakesRoom) {
  EXPECT_TRUE(Take(30, Mebibytes(1), other_));
  blocks_.clear();
  CaptureGuard guard(facade(), stream_);
  EXPECT_TRUE(Take(36, Mebibytes(1), stream_));
  EXPECT_NO_THROW(Finish(guard));
  blocks_.clear();
}

}  // namespace
}  // namespace strata
