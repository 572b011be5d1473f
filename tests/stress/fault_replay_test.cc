// A small trace, replayed once for each of its device calls, which then fails.
// Each run succeeds or ends in a clean failure, and nothing leaks.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

// One replay on a fresh place. The trace fills a device of 40 MiB from two
// streams. It covers growth, smaller chunks after a refusal, the exchange and
// release of chunks, and waits for marked streams.
class Replay {
 public:
  explicit Replay(const TestPlaceOptions& options) : place_(options) {
    for (TestChain& chain : chains_) chain = place_.AddChain();
    other_stream_ = place_.NewStream();
  }

  void Run() {
    Allocate(0, Mebibytes(16));
    Allocate(0, Kibibytes(10));
    Free(0);
    Allocate(1, Mebibytes(18));
    // Needs the 16 MiB that the other stream holds.
    Allocate(1, Mebibytes(10));
    Mark(3);
    Free(3);
    Allocate(0, Mebibytes(1), kMaxAlignment / 4);
    Free(2);
    chains_[0]->Release();
    Allocate(1, Mebibytes(3));
    // Needs the release of all idle memory.
    Allocate(0, Mebibytes(20));
    Free(5);
    Free(6);
    Allocate(1, Mebibytes(24));
    Allocate(0, Mebibytes(300));
    chains_[1]->Release();
  }

  void CheckCounts() const {
    std::uint64_t count = 0;
    std::uint64_t requested = 0;
    for (const AllocationPtr& allocation : all_) {
      if (allocation == nullptr) continue;
      ++count;
      requested += allocation->requested_bytes();
    }
    Stats sum;
    for (const TestChain& chain : chains_) {
      Accumulate(sum, chain->stats());
      if (IsAutoGrowth(chain.strategy->name())) {
        EXPECT_TRUE(chain.auto_growth().IsConsistent());
      }
    }
    EXPECT_EQ(sum.live_allocations(), count);
    EXPECT_EQ(sum.requested_bytes, requested);
    EXPECT_EQ(ranges_.count(), count);
  }

  // The objects that the device still has after everything is released.
  SimLeaks Finish() {
    place_.device().ClearFaults();
    all_.clear();
    for (const TestChain& chain : chains_) chain->Release();
    place_.pool()->Release();
    EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
    // A timeline releases its events when it sees a later one complete.
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    for (const Stream& stream :
         {chains_[0].stream(), chains_[1].stream(), other_stream_}) {
      const auto timeline = place_.timelines()->Find(stream);
      if (timeline == nullptr) continue;
      timeline->Note();
      EXPECT_EQ(timeline->Close(), Status::kSuccess);
      EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
      timeline->Poll();
    }
    return place_.device().Leaks();
  }

  SimDevice& device() { return place_.device(); }
  // Number of events kept for later.
  std::size_t kept_events() const { return place_.timelines()->kept_events(); }
  int met() const { return met_; }

 private:
  void Allocate(std::size_t chain, std::size_t bytes,
                std::size_t alignment = 0) {
    Failure failure;
    AllocationPtr allocation =
        chains_[chain]->AllocateOrNull(Request{bytes, alignment}, failure);
    if (allocation != nullptr) {
      ++met_;
      EXPECT_TRUE(ranges_.Add(*allocation));
      // Work that completes when the host waits for it.
      EXPECT_EQ(device().Enqueue(chains_[chain].stream(), nullptr, 0, 1000, 0),
                Status::kSuccess);
    } else {
      EXPECT_NE(failure.reason, Failure::Reason::kNone);
    }
    all_.push_back(std::move(allocation));
  }
  void Mark(std::size_t index) {
    if (all_[index] == nullptr) return;
    all_[index]->owner()->RecordStream(all_[index].get(), other_stream_);
  }
  void Free(std::size_t index) {
    if (all_[index] == nullptr) return;
    EXPECT_TRUE(ranges_.Remove(*all_[index]));
    all_[index].reset();
  }

  TestPlace place_;
  std::array<TestChain, 2> chains_;
  Stream other_stream_;
  LiveRanges ranges_;
  std::vector<AllocationPtr> all_;
  int met_ = 0;
};

class FaultReplayTest : public ::testing::TestWithParam<std::string> {
 protected:
  static TestPlaceOptions Options() {
    TestPlaceOptions options;
    options.memory_bytes = Mebibytes(40);
    options.decorators = DecoratorOptions();
    options.progress = "lazy";
    options.strategy = "auto_growth";
    for (const char* strategy : {"direct", "virtual_memory"}) {
      if (GetParam() == strategy) options.strategy = strategy;
    }
    if (GetParam() == "auto_growth_exact") {
      options.strategy_options.Edit<AutoGrowthOptions>()
          .auto_growth_chunk_rule = "exact";
    }
    if (GetParam() == "auto_growth_exchange") {
      options.strategy_options.Edit<AutoGrowthOptions>()
          .auto_growth_give_back_limit = 0;
    }
    return options;
  }
};

TEST_P(FaultReplayTest, EveryFailedCallEndsCleanly) {
  std::uint64_t runs = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    for (std::uint64_t nth = 1;; ++nth) {
      Replay replay(Options());
      const std::uint64_t before = replay.device().CallCount(call);
      const SimLeaks clean = replay.device().Leaks();
      replay.device().AddFault(FailNth(call, nth));
      replay.Run();
      const bool failed = replay.device().CallCount(call) >= before + nth;
      const std::string where =
          std::string(DeviceCallName(call)) + " " + std::to_string(nth);
      replay.CheckCounts();
      SimLeaks expected = clean;
      const SimLeaks leaks = replay.Finish();
      // Objects that the device failed to free are not a leak of the place.
      if (failed && call == DeviceCall::kEventDestroy) ++expected.events;
      expected.events += replay.kept_events();
      EXPECT_EQ(leaks, expected) << where << ": " << ToString(leaks);
      ASSERT_FALSE(HasFailure()) << where;
      if (!failed) break;
      ++runs;
    }
  }
  EXPECT_GE(runs, 20U);
}

// Checks that the test above covers these paths.
TEST_P(FaultReplayTest, TheTraceReachesThePathsItIsMeantFor) {
  Replay replay(Options());
  replay.Run();
  EXPECT_GE(replay.met(), 6);
  // Streams that lend to each other release less memory to the system.
  const DeviceCall give_back = GetParam() == "virtual_memory"
                                   ? DeviceCall::kReleaseMemory
                                   : DeviceCall::kMemFree;
  EXPECT_GE(replay.device().CallCount(give_back),
            GetParam() == "direct" ? 2U : 1U);
  EXPECT_GE(replay.device().CallCount(DeviceCall::kStreamSynchronize), 2U);
  if (GetParam() != "direct") {
    EXPECT_GE(replay.device().CallCount(DeviceCall::kStreamWaitEvent), 1U);
    EXPECT_GE(replay.device().CallCount(DeviceCall::kEventRecord), 1U);
  }
  replay.Finish();
}

INSTANTIATE_TEST_SUITE_P(All, FaultReplayTest,
                         ::testing::Values("auto_growth", "auto_growth_exact",
                                           "auto_growth_exchange", "direct",
                                           "virtual_memory"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace strata
