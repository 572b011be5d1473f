// Capturing and other streams of one place: faults found by the exploration of
// programs (tests/explore).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{1} << 20;

class GraphStreamsTest : public GraphFixture,
                         public testing::WithParamInterface<std::string> {
 protected:
  GraphStreamsTest() : first_(NewStream()), second_(NewStream()) {
    std::string options = "allocator_strategy=";
    options.append(GetParam());
    Build(options);
  }

  const Stream first_;
  const Stream second_;
};

std::vector<std::string> NamesWithAuto() {
  std::vector<std::string> names = StrategyNames();
  names.emplace_back("auto");
  return names;
}

class CountingVisitor final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& layer) override {
    bytes += layer.stats().reserved_bytes;
  }
  std::uint64_t bytes = 0;
};

// The size query of a driver pool is a call that captures of this thread refuse
// (cuda_semantics C17).
TEST_P(GraphStreamsTest, StatisticsEndNoCapture) {
  const AllocationPtr block = Alloc(kStreamBytes, first_);
  CaptureGuard guard(facade(), first_);
  EXPECT_GE(facade().GetStats(Here()).reserved_bytes, kStreamBytes);
  EXPECT_NE(facade().StatsJson(), "");
  facade().ResetPeak(Here());
  CountingVisitor visitor;
  facade().AcceptAll(Here(), visitor);
  EXPECT_GE(visitor.bytes, kStreamBytes);
  facade().Accept(Here(), visitor);
  Finish(guard);
}

// A block was marked for a stream before its capture. It is freed only after
// the capture, because ordering behind the stream would become part of the
// capture.
TEST_P(GraphStreamsTest, FreeOfWhatACapturingStreamUsesEndsNoCapture) {
  AllocationPtr block = Alloc(kStreamBytes, first_);
  Use(block, second_);
  EXPECT_TRUE(facade().RecordStream(block, second_));
  {
    CaptureGuard guard(facade(), second_);
    block.reset();
    Alloc(kStreamBytes, first_).reset();
    Finish(guard);
  }
  EXPECT_EQ(facade().GetStats(Here()).in_use_bytes, 0U);
  Alloc(kStreamBytes, first_).reset();
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

// Frees of a stream that was alone are ordered before the first request of
// another stream, even if the first one captures by then. This includes the
// legacy stream, which no call may query during any capture (cuda_semantics
// C16).
TEST_P(GraphStreamsTest, ACaptureKeepsNothingThatWasFreedBeforeFromOthers) {
  for (const Stream& stream : {first_, device().LegacyStream()}) {
    Build(std::string("allocator_strategy=").append(GetParam()));
    AllocationPtr block = Alloc(kStreamBytes, stream);
    Use(block, stream);
    block.reset();
    CaptureGuard guard(facade(), first_);
    block = Alloc(kStreamBytes, second_);
    Use(block, second_);
    Finish(guard);
    block.reset();
    DropGraphs();
  }
}

// A block freed before the capture, but waiting for a mark, reaches the
// strategy during the capture. It is kept from other streams, and their
// requests succeed.
TEST_P(GraphStreamsTest, WhatIsDrainedDuringACaptureFailsNoRequest) {
  const AllocationPtr kept = Alloc(kStreamBytes, first_);
  AllocationPtr block = Alloc(kStreamBytes, first_);
  EXPECT_TRUE(facade().RecordStream(block, second_));
  block.reset();
  CaptureGuard guard(facade(), first_);
  EXPECT_NO_THROW(Alloc(kStreamBytes, second_));
  Finish(guard);
}

// The request of another stream drains the marked block while its own stream
// captures. `direct` must wait for that stream.
TEST_P(GraphStreamsTest, DrainedMemoryOfACapturingStreamStaysUntilItsEnd) {
  AllocationPtr block = Alloc(kStreamBytes, first_);
  Use(block, first_);
  EXPECT_TRUE(facade().RecordStream(block, second_));
  block.reset();
  const std::uint64_t freed = Count(DeviceCall::kMemFree);
  {
    CaptureGuard guard(facade(), first_);
    const AllocationPtr other = Alloc(kStreamBytes, second_);
    EXPECT_EQ(Count(DeviceCall::kMemFree), freed);
    Finish(guard);
  }
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Strategies, GraphStreamsTest,
                         testing::ValuesIn(NamesWithAuto()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace strata
