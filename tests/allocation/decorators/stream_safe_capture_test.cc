// The stream-safe layer during announced captures: the calls that it makes and
// avoids (cuda_semantics.md C16-C19, K4; paddle.md §5 A2: queries in a
// capture).

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/tests/allocation/decorators/stream_safe_fixture.h"

namespace strata {
namespace {

// One stream captures, in the strictest mode.
class StreamSafeCaptureTest : public StreamSafeFixture {
 protected:
  void Begin(const Stream& stream) {
    place_.timelines()->gate().Announce();
    capturing_ = stream;
    ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kGlobal),
              Status::kSuccess);
  }
  // Ends the capture, and expects that it is still valid.
  void End() {
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(capturing_, &graph), Status::kSuccess);
    if (graph) {
      EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    }
    place_.timelines()->gate().Withdraw();
  }

  // As the front of a chain does (C17).
  AllocationPtr AllocateInCapture(std::size_t bytes, Failure& failure) {
    const CaptureGate::RelaxedScope relaxed(place_.timelines()->gate(),
                                            &device());
    return layer().AllocateOrNull(Request{bytes}, failure);
  }
  AllocationPtr AllocateInCapture(std::size_t bytes) {
    Failure failure;
    AllocationPtr allocation = AllocateInCapture(bytes, failure);
    EXPECT_NE(allocation, nullptr);
    return allocation;
  }

  Stream capturing_;
};

// K4 b, and C19: no event of a capturing stream is recorded or queried.
TEST_F(StreamSafeCaptureTest, AFreeThatACapturingStreamMarkedIsDeferred) {
  AllocationPtr allocation = Marked({a_});
  const void* const data = allocation->data();
  Begin(a_);
  const std::uint64_t records = Count(DeviceCall::kEventRecord);
  allocation.reset();
  AllocationPtr other = AllocateInCapture(kBytes);
  EXPECT_NE(other->data(), data);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), records);
  End();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

TEST_F(StreamSafeCaptureTest, AFullBatchIsNotClosedInACapture) {
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 130; ++i) held.push_back(Marked({a_}));
  Begin(a_);
  const std::uint64_t records = Count(DeviceCall::kEventRecord);
  held.clear();
  EXPECT_EQ(Count(DeviceCall::kEventRecord), records);
  End();
  EXPECT_EQ(place_.frees()->Drain(), 130 * kBytes);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), records) << "the stream is idle";
}

// C16: any use of the legacy stream would add it to the capture.
TEST_F(StreamSafeCaptureTest, TheLegacyStreamIsLeftAlone) {
  const Stream legacy = device().LegacyStream();
  AllocationPtr allocation = Marked({legacy});
  Begin(a_);
  allocation.reset();
  const AllocationPtr other = AllocateInCapture(kBytes);
  EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
  End();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
}

// K4 d: blocks marked for other streams are still drained.
TEST_F(StreamSafeCaptureTest, OtherStreamsDrainMeanwhile) {
  AllocationPtr allocation = Marked({b_});
  Begin(a_);
  Work(b_);
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  device().Step(b_);
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
  End();
}

TEST_F(StreamSafeCaptureTest, ExhaustionLeavesTheCaptureAlone) {
  AllocationPtr big = layer().Allocate(Mebibytes(800));
  EXPECT_TRUE(layer().RecordStream(big.get(), a_));
  Begin(a_);
  big.reset();
  Failure failure;
  EXPECT_EQ(AllocateInCapture(Mebibytes(600), failure), nullptr);
  End();
  EXPECT_NE(layer().AllocateOrNull(Request{Mebibytes(600)}, failure), nullptr);
}

TEST_F(StreamSafeCaptureTest, AUseInACaptureIsAMark) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  AllocationPtr allocation = layer().Allocate(kBytes);
  Begin(a_);
  EXPECT_EQ(device().EventRecord(event, a_, 0), Status::kSuccess);
  EXPECT_TRUE(layer().RecordUse(allocation.get(), a_, event));
  allocation.reset();
  EXPECT_EQ(place_.frees()->Drain(), 0U);
  End();
  EXPECT_EQ(place_.frees()->Drain(), kBytes);
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
}

}  // namespace
}  // namespace strata
