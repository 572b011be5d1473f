#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tools/bench/player.h"
#include "strata/tools/bench/workloads/script.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {
namespace {

using testing::HasSubstr;

// Runs scripts and checks their operations.
class StrictHeap {
 public:
  struct Slot {
    std::uint64_t bytes = 0;
  };

  class Lane {
   public:
    explicit Lane(StrictHeap* heap) : heap_(heap) {}
    void Allocate(Slot& slot, std::uint64_t bytes) {
      if (slot.bytes != 0) ++heap_->faults;
      slot.bytes = bytes;
      heap_->live_bytes += bytes;
      heap_->peak_bytes = std::max(heap_->peak_bytes, heap_->live_bytes);
      ++heap_->allocations;
    }
    void Free(Slot& slot) {
      if (slot.bytes == 0) ++heap_->faults;
      heap_->live_bytes -= slot.bytes;
      slot.bytes = 0;
    }

   private:
    StrictHeap* heap_;
  };

  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t allocations = 0;
  // Allocations into full slots and frees of empty ones.
  int faults = 0;
};

std::vector<BenchScript> SmallScripts() {
  const SmallBench bench;
  std::vector<BenchScript> scripts;
  for (const BenchWorkload& workload : bench.Workloads()) {
    scripts.push_back(workload.make(bench.options()));
  }
  // More slots than a player allocates at once.
  scripts.push_back(MakeReplaceScript(1000, 5000, 1 << 20, 1));
  return scripts;
}

TEST(BenchScriptTest, EveryLoopPairsItsCallsAndCanBeRepeated) {
  for (const BenchScript& script : SmallScripts()) {
    StrictHeap heap;
    BenchPlayer<StrictHeap> player(script, StrictHeap::Lane(&heap));
    player.Play(script.pairs());
    const std::uint64_t after_one = heap.live_bytes;
    player.Play(2 * script.pairs());
    EXPECT_EQ(heap.faults, 0);
    EXPECT_EQ(heap.live_bytes, after_one);
    EXPECT_EQ(heap.allocations, script.prologue.size() + 3 * script.pairs());
  }
}

TEST(BenchScriptTest, KnowsThePeakOfItsLiveBytes) {
  for (const BenchScript& script : SmallScripts()) {
    StrictHeap heap;
    BenchPlayer<StrictHeap> player(script, StrictHeap::Lane(&heap));
    player.Play(3 * script.pairs());
    EXPECT_EQ(heap.peak_bytes, script.peak_live_bytes);
  }
}

TEST(BenchScriptTest, AUniformLoopMayBeCutAfterAnyPair) {
  int uniform = 0;
  for (const BenchScript& script : SmallScripts()) {
    if (!script.is_uniform) continue;
    ++uniform;
    for (std::size_t i = 0; i < script.loop.size(); i += 2) {
      EXPECT_NE(script.loop[i].bytes == 0, script.loop[i + 1].bytes == 0);
      EXPECT_EQ(script.loop[i].slot, script.loop[i + 1].slot);
    }
  }
  EXPECT_GT(uniform, 0);
}

TEST(BenchScriptTest, APlayerGoesOnWhereItStopped) {
  const BenchScript script = MakeTensorScript(1, FreeOrder::kLastFirst);
  ASSERT_EQ(script.pairs(), 100U);
  StrictHeap heap;
  BenchPlayer<StrictHeap> player(script, StrictHeap::Lane(&heap));
  // The loop is a hundred allocations, followed by their frees.
  player.Play(25);
  EXPECT_EQ(heap.live_bytes, 25U * 4096);
  player.Play(50);
  EXPECT_EQ(heap.live_bytes, 75U * 4096);
  player.Play(50);
  EXPECT_EQ(heap.live_bytes, 25U * 4096);
  player.Play(200);
  EXPECT_EQ(heap.live_bytes, 25U * 4096);
  EXPECT_EQ(heap.allocations, 325U);
  EXPECT_EQ(heap.faults, 0);
}

// Order of the frees after the allocations of one round.
std::vector<std::uint32_t> FreedSlots(const BenchScript& script) {
  std::vector<std::uint32_t> slots;
  for (std::size_t i = script.loop.size() / 2; i < script.loop.size(); ++i) {
    EXPECT_EQ(script.loop[i].bytes, 0U);
    slots.push_back(script.loop[i].slot);
  }
  return slots;
}

TEST(BenchScriptTest, TensorsAreFreedInTheOrderAskedFor) {
  const auto first = FreedSlots(MakeTensorScript(1, FreeOrder::kFirstFirst));
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  const auto last = FreedSlots(MakeTensorScript(1, FreeOrder::kLastFirst));
  EXPECT_TRUE(std::is_sorted(last.rbegin(), last.rend()));
}

TEST(BenchScriptTest, RandomBlocksStayWithinTheirSizes) {
  constexpr std::uint64_t kLargest = std::uint64_t{64} << 20;
  const BenchScript script = MakeReplaceScript(5000, 10, kLargest, 1);
  std::uint64_t least = kLargest;
  std::uint64_t most = 0;
  for (const BenchStep& step : script.loop) {
    if (step.bytes == 0) continue;
    least = std::min(least, step.bytes);
    most = std::max(most, step.bytes);
  }
  EXPECT_GE(least, 255U);
  EXPECT_LT(least, 512U);
  EXPECT_GT(most, kLargest / 2);
  EXPECT_LE(most, kLargest);
}

TEST(BenchScriptTest, ALoopReplacesAsManyBlocksAsThereAre) {
  const BenchScript script = MakeReplaceScript(7, 5000, 1024, 1);
  EXPECT_EQ(script.prologue.size(), 5000U);
  EXPECT_EQ(script.pairs(), 5000U);
  std::set<std::uint32_t> replaced;
  for (const BenchStep& step : script.loop) replaced.insert(step.slot);
  EXPECT_GT(replaced.size(), 3000U);  // 63 % are drawn at least once
}

// The requests of a script, and their slots.
using Steps = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
Steps StepsOf(const BenchScript& script) {
  Steps steps;
  for (const BenchStep& step : script.loop) {
    steps.emplace_back(step.bytes, step.slot);
  }
  return steps;
}

TEST(BenchScriptTest, AnotherSeedDrawsOtherSizes) {
  const auto random = [](std::uint64_t seed) {
    return StepsOf(MakeReplaceScript(50, 10, 1024, seed));
  };
  EXPECT_EQ(random(1), random(1));
  EXPECT_NE(random(1), random(2));
  for (const Shapes shapes :
       {Shapes::kFixed, Shapes::kRepeated, Shapes::kJittered}) {
    EXPECT_NE(StepsOf(MakeTrainingScript(shapes, 1)),
              StepsOf(MakeTrainingScript(shapes, 2)));
  }
}

TEST(BenchScriptTest, AStepOfTrainingHas2300Pairs) {
  for (const Shapes shapes : {Shapes::kFixed, Shapes::kRepeated}) {
    EXPECT_EQ(MakeTrainingScript(shapes, 1).pairs(), 2300U);
    EXPECT_EQ(MakeTrainingScript(shapes, 1).prologue.size(), 200U);
  }
}

// One activation and two workspaces for each operation, and two weights for
// every fifth one: 25 layers of 20 operations.
TEST(BenchScriptTest, LayersThatAreAlikeHaveFewSizes) {
  const auto sizes = [](Shapes shapes) {
    std::set<std::uint64_t> bytes;
    for (const BenchStep& step : MakeTrainingScript(shapes, 1).loop) {
      if (step.bytes != 0) bytes.insert(step.bytes);
    }
    return bytes.size();
  };
  EXPECT_LE(sizes(Shapes::kRepeated), 20U * 3 + 8);
  EXPECT_GT(sizes(Shapes::kRepeated), 60U);
  EXPECT_GT(sizes(Shapes::kFixed), 1000U);
}

TEST(BenchScriptTest, JitterScalesTheShapesOfAStepAlike) {
  const BenchScript fixed = MakeTrainingScript(Shapes::kFixed, 1);
  const BenchScript jittered = MakeTrainingScript(Shapes::kJittered, 1);
  ASSERT_EQ(jittered.loop.size() % fixed.loop.size(), 0U);
  std::set<std::uint64_t> first_bytes;
  for (std::size_t i = 0; i < jittered.loop.size(); ++i) {
    const BenchStep& one = fixed.loop[i % fixed.loop.size()];
    EXPECT_EQ(jittered.loop[i].slot, one.slot);
    EXPECT_LE(jittered.loop[i].bytes, one.bytes);
    EXPECT_GE(jittered.loop[i].bytes * 2, one.bytes);
    if (i % fixed.loop.size() == 0) first_bytes.insert(jittered.loop[i].bytes);
  }
  EXPECT_GT(first_bytes.size(), 10U);
}

TEST(BenchScriptTest, ATraceFreesWhatItLeavesLive) {
  const ScratchFolder folder;
  const BenchScript script =
      MakeTraceScript(folder.Write("trace.csv", kTraceText));
  EXPECT_EQ(script.pairs(), 3U);
  EXPECT_EQ(script.peak_live_bytes, 4000U);
}

TEST(BenchScriptTest, ATraceWithoutMemoryIsRefused) {
  const ScratchFolder folder;
  const std::string path =
      folder.Write("empty.csv",
                   "Thread,Time,Action,Pointer,Size,Stream\n"
                   "1,00:00:00:000001,allocate,0x100,0,0\n");
  try {
    MakeTraceScript(path);
    FAIL() << "made a script of nothing";
  } catch (const TraceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nothing is allocated"));
  }
}

}  // namespace
}  // namespace strata::tools
