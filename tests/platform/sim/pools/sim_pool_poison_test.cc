// Pool memory with sim_data=poison: fresh and freed memory is marked when the
// allocation and the free run in their streams.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/platform/sim/bytes/frame_store.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

constexpr std::size_t kBytes = 512;
constexpr unsigned char kWritten = 1;

class SimPoolPoisonTest : public SimProgressFixture {
 protected:
  SimPoolPoisonTest() {
    PlatformOptions options = SimOptions(1, kFrames);
    options.sim_data = "poison";
    options.sim_progress = "manual";
    Build(options);
    stream_ = NewStream();
    other_ = NewStream();
  }

  DevicePtr Take(const Stream& stream) {
    MemPool pool;
    EXPECT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MallocFromPoolAsync(&ptr, kBytes, pool, stream),
              Status::kSuccess);
    return ptr;
  }
  void Give(DevicePtr ptr, const Stream& stream) {
    EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
  }
  void Step(const Stream& stream) { EXPECT_TRUE(device().Step(stream)); }
  // Contiguous, so the pointer outlives the block.
  unsigned char* View(DevicePtr ptr) {
    return static_cast<unsigned char*>(device().HostView(ptr, kBytes));
  }

  Stream stream_;
  Stream other_;
};

TEST_F(SimPoolPoisonTest, BlocksAreMarkedAtTheirTurn) {
  const DevicePtr ptr = Take(stream_);
  Step(stream_);
  unsigned char* view = View(ptr);
  EXPECT_EQ(view[0], kFreshByte);
  view[0] = view[kBytes - 1] = kWritten;
  Give(ptr, stream_);
  ASSERT_EQ(Take(stream_), ptr);
  EXPECT_EQ(view[0], kWritten);
  Step(stream_);
  EXPECT_EQ(view[0], kFreedByte);
  EXPECT_EQ(view[kBytes - 1], kFreedByte);
  Step(stream_);
  EXPECT_EQ(view[0], kFreshByte);
  EXPECT_EQ(view[kBytes - 1], kFreshByte);
}

TEST_F(SimPoolPoisonTest, NeighboursAreLeftAlone) {
  const DevicePtr below = Take(stream_);
  const DevicePtr ptr = Take(stream_);
  const DevicePtr above = Take(stream_);
  ASSERT_EQ(below + kBytes, ptr);
  ASSERT_EQ(ptr + kBytes, above);
  device().StepAll();
  unsigned char* bytes = View(below);
  bytes[kBytes - 1] = kWritten;
  *View(above) = kWritten;
  Give(ptr, stream_);
  device().StepAll();
  EXPECT_EQ(bytes[kBytes - 1], kWritten);
  EXPECT_EQ(bytes[kBytes], kFreedByte);
  EXPECT_EQ(bytes[2 * kBytes - 1], kFreedByte);
  EXPECT_EQ(bytes[2 * kBytes], kWritten);
}

TEST_F(SimPoolPoisonTest, MemFreeMarksAtOnce) {
  const DevicePtr ptr = Take(stream_);
  device().StepAll();
  unsigned char* view = View(ptr);
  Busy(stream_);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(view[0], kFreedByte);
}

// An allocation that runs after the end of its block marks nothing.
TEST_F(SimPoolPoisonTest, AllocationThatIsOverLeavesTheNextOneAlone) {
  const DevicePtr ptr = Take(stream_);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  ASSERT_EQ(Take(other_), ptr);
  Step(other_);
  unsigned char* view = View(ptr);
  EXPECT_EQ(view[0], kFreshByte);
  view[0] = kWritten;
  Step(stream_);
  EXPECT_EQ(view[0], kWritten);
}

// The frames belong to the device again.
TEST_F(SimPoolPoisonTest, MemoryGivenBackIsNotMarkedLater) {
  const DevicePtr ptr = Take(stream_);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  ASSERT_EQ(device().PoolTrimTo(pool, 0), Status::kSuccess);
  DevicePtr all = 0;
  ASSERT_EQ(device().MemAlloc(&all, kFrames * kFrameBytes), Status::kSuccess);
  unsigned char* view = View(all);
  view[0] = kWritten;
  device().StepAll();
  EXPECT_EQ(view[0], kWritten);
}

}  // namespace
}  // namespace strata::sim
