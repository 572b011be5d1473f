#include "strata/tools/bench_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "strata/tests/tools/bench_fixture.h"
#include "strata/tools/bench_subject.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Follows scripts and keeps account of them.
class StrictHeap {
 public:
  struct Slot {
    std::uint64_t bytes = 0;
  };

  void Allocate(Slot& slot, std::uint64_t bytes) {
    if (slot.bytes != 0) ++faults_;
    slot.bytes = bytes;
    live_bytes_ += bytes;
    peak_ = std::max(peak_, live_bytes_);
    ++allocations_;
  }
  void Free(Slot& slot) {
    if (slot.bytes == 0) ++faults_;
    live_bytes_ -= slot.bytes;
    slot.bytes = 0;
  }
  std::optional<std::uint64_t> allocations() { return allocations_; }
  std::optional<std::uint64_t> peak_reserved_bytes() { return peak_; }
  std::uint64_t live_bytes() const { return live_bytes_; }
  // Allocations into full slots and frees of empty ones.
  int faults() const { return faults_; }

 private:
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t allocations_ = 0;
  int faults_ = 0;
};

TEST(BenchScriptTest, EveryLoopPairsItsCallsAndCanBeRepeated) {
  for (const BenchScript& script : SmallScripts()) {
    HeapSubject<StrictHeap> subject(script);
    subject.Run(1);
    const std::uint64_t after_one = subject.heap().live_bytes();
    subject.Run(2);
    EXPECT_EQ(subject.heap().faults(), 0);
    EXPECT_EQ(subject.heap().live_bytes(), after_one);
    EXPECT_EQ(subject.allocations(),
              script.prologue.size() + 3 * script.pairs());
  }
}

TEST(BenchScriptTest, KnowsThePeakOfItsLiveBytes) {
  for (const BenchScript& script : SmallScripts()) {
    HeapSubject<StrictHeap> subject(script);
    subject.Run(3);
    EXPECT_EQ(subject.peak_reserved_bytes(), script.peak_live_bytes);
  }
}

TEST(BenchScriptTest, RandomBlocksStayWithinTheirSizes) {
  BenchScriptOptions options;
  const BenchScript script = FindBenchWorkload("random").make(options);
  for (const BenchStep& step : script.loop) {
    if (step.bytes == 0) continue;
    EXPECT_GE(step.bytes, 255U);
    EXPECT_LE(step.bytes, std::uint64_t{64} << 20);
  }
}

TEST(BenchScriptTest, TrainingFreesWhatTheTraceLeavesLive) {
  const ScratchFolder folder;
  BenchScriptOptions options;
  options.trace = folder.Write("trace.csv", kTraceText);
  const BenchScript script = FindBenchWorkload("training").make(options);
  EXPECT_EQ(script.pairs(), 3U);
  EXPECT_EQ(script.peak_live_bytes, 4000U);
}

TEST(BenchScriptTest, NamesTheKnownWorkloadsWhenOneIsUnknown) {
  try {
    FindBenchWorkload("pear");
    FAIL() << "found a workload that does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'pear'"), HasSubstr("pair"),
                                    HasSubstr("random_small")));
  }
}

}  // namespace
}  // namespace strata
