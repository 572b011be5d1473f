// The checker over the simulated device: --strata_sim_check_hazards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/platform/check/call_trace_reader.h"
#include "strata/platform/check/hazard_monitor.h"
#include "strata/platform/registry.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/hazards/hazard_oracle.h"
#include "strata/tests/testing/hazards/hazard_player.h"
#include "strata/tests/testing/hazards/hazard_program.h"

namespace strata::sim {
namespace {

using ::testing::HasSubstr;

PlatformOptions CheckedOptions(const std::string& progress) {
  PlatformOptions options;
  options.platform = "sim";
  options.sim_memory_bytes = std::uint64_t{1} << 30;
  options.sim_progress = progress;
  options.sim_check_hazards = "report";
  return options;
}

class SimHazardsTest : public testing::TestWithParam<const char*> {
 protected:
  SimHazardsTest() : platform_(CheckedOptions(GetParam())) {
    platform_.hazard_monitor()->SetHandler([](const check::HazardReport&) {});
    EXPECT_EQ(device().StreamCreate(&a_, kStreamNonBlocking), Status::kSuccess);
    EXPECT_EQ(device().StreamCreate(&b_, kStreamNonBlocking), Status::kSuccess);
    EXPECT_EQ(device().EventCreate(&event_, kEventDisableTiming),
              Status::kSuccess);
    EXPECT_EQ(device().MemAlloc(&chunk_, 1 << 20), Status::kSuccess);
  }

  SimDevice& device() { return platform_.sim_device(0); }
  void Note(DeviceCall call, Stream stream) {
    CallRecord record = RecordOf(call, chunk_, 4096);
    record.stream_uid = stream.uid;
    device().Note(record);
  }
  void Work(DevicePtr ptr, Stream stream) {
    const WorkRange range{ptr, 4096, true};
    EXPECT_EQ(platform_.work(0)->Enqueue(stream, &range, 1, 0, 0),
              Status::kSuccess);
  }
  std::string Kinds() {
    std::string kinds;
    for (const check::HazardReport& report :
         platform_.hazard_monitor()->hazards()) {
      kinds.append(kinds.empty() ? "" : " ");
      kinds.append(check::HazardKindName(report.kind));
    }
    return kinds;
  }

  SimPlatform platform_;
  Stream a_;
  Stream b_;
  Event event_;
  DevicePtr chunk_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Progress, SimHazardsTest,
                         testing::Values("inline", "lazy", "seeded", "timed"));

TEST_P(SimHazardsTest, ReuseWithoutAWaitIsFoundHoweverWorkRuns) {
  Note(DeviceCall::kBlockAlloc, a_);
  Work(chunk_, a_);
  Note(DeviceCall::kBlockFree, a_);
  Note(DeviceCall::kBlockAlloc, b_);
  EXPECT_EQ(Kinds(), "reuse-race");
}

TEST_P(SimHazardsTest, ReuseBehindAWaitIsClean) {
  Note(DeviceCall::kBlockAlloc, a_);
  Work(chunk_, a_);
  Note(DeviceCall::kBlockFree, a_);
  EXPECT_EQ(device().EventRecord(event_, a_, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamWaitEvent(b_, event_, 0), Status::kSuccess);
  Note(DeviceCall::kBlockAlloc, b_);
  Work(chunk_, b_);
  EXPECT_EQ(Kinds(), "");
}

// T18: MemFree waits here, but a GPU need not wait.
TEST_P(SimHazardsTest, MemFreeInUseIsFoundThoughItWaits) {
  Work(chunk_, a_);
  EXPECT_EQ(device().MemFree(chunk_), Status::kSuccess);
  EXPECT_EQ(Kinds(), "free-in-use");
}

// T47, T80
TEST_P(SimHazardsTest, LaunchAfterItsInputWasFreedIsFound) {
  Graph graph;
  GraphExec exec;
  ASSERT_EQ(device().StreamBeginCapture(a_, CaptureMode::kRelaxed),
            Status::kSuccess);
  Work(chunk_, a_);
  ASSERT_EQ(device().StreamEndCapture(a_, &graph), Status::kSuccess);
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  ASSERT_EQ(device().GraphLaunch(exec, a_), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(a_), Status::kSuccess);
  EXPECT_EQ(Kinds(), "");
  ASSERT_EQ(device().MemFree(chunk_), Status::kSuccess);
  device().GraphLaunch(exec, a_);
  EXPECT_EQ(Kinds(), "dangling-operand");
}

// T62, cuda_semantics P17
TEST_P(SimHazardsTest, FreeNodeBesideAForksUseIsFound) {
  MemPool pool;
  DevicePtr ptr = 0;
  Graph graph;
  GraphExec exec;
  Event joined;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  ASSERT_EQ(device().EventCreate(&joined, kEventDisableTiming),
            Status::kSuccess);
  ASSERT_EQ(device().StreamBeginCapture(a_, CaptureMode::kRelaxed),
            Status::kSuccess);
  ASSERT_EQ(device().MallocFromPoolAsync(&ptr, 4096, pool, a_),
            Status::kSuccess);
  ASSERT_EQ(device().EventRecord(event_, a_, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(b_, event_, 0), Status::kSuccess);
  Work(ptr, b_);
  ASSERT_EQ(device().FreeAsync(ptr, a_), Status::kSuccess);
  ASSERT_EQ(device().EventRecord(joined, b_, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(a_, joined, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamEndCapture(a_, &graph), Status::kSuccess);
  EXPECT_EQ(Kinds(), "");
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  EXPECT_EQ(Kinds(), "graph-use-after-free");
}

// cuda_semantics K2: named dependencies reach the checker.
TEST_P(SimHazardsTest, DependenciesNamedInACaptureCount) {
  Graph graph;
  GraphExec exec;
  CaptureInfo info;
  ASSERT_EQ(device().StreamBeginCapture(a_, CaptureMode::kRelaxed),
            Status::kSuccess);
  Note(DeviceCall::kBlockAlloc, a_);
  Work(chunk_, a_);
  Note(DeviceCall::kBlockFree, a_);
  ASSERT_EQ(device().StreamCaptureInfo(a_, &info), Status::kSuccess);
  ASSERT_EQ(device().StreamUpdateCaptureDependencies(a_, nullptr, 0, true),
            Status::kSuccess);
  ASSERT_EQ(device().StreamUpdateCaptureDependencies(
                a_, info.dependencies.data(), info.dependencies.size(), true),
            Status::kSuccess);
  Note(DeviceCall::kBlockAlloc, a_);
  Work(chunk_, a_);
  ASSERT_EQ(device().StreamEndCapture(a_, &graph), Status::kSuccess);
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  EXPECT_EQ(Kinds(), "");
}

struct PlayedCase {
  const char* progress;
  ProgramBreak kind;

  friend std::ostream& operator<<(std::ostream& out, const PlayedCase& played) {
    return out << played.progress << "_" << played.kind;
  }
};

class SimProgramTest : public testing::TestWithParam<PlayedCase> {};

// The programs of hazard_program_test.cc as real calls.
TEST_P(SimProgramTest, VerdictsAreThoseOfBruteForce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto program = MakeProgram(seed, GetParam().kind);
    PlatformOptions options = CheckedOptions(GetParam().progress);
    options.sim_seed = seed;
    SimPlatform platform(options);
    platform.hazard_monitor()->SetHandler([](const check::HazardReport&) {});
    HazardPlayer(platform).Play(program);
    const bool found = platform.hazard_monitor()->hazard_count() != 0;
    const auto hazards = platform.hazard_monitor()->hazards();
    EXPECT_EQ(found, !HazardOracle().Judge(program).empty())
        << "seed " << seed << "\n"
        << (hazards.empty() ? std::string() : ToString(hazards[0]));
  }
}

std::vector<PlayedCase> PlayedCases() {
  std::vector<PlayedCase> cases;
  for (const char* progress : {"lazy", "seeded"}) {
    for (int i = 0; i < static_cast<int>(ProgramBreak::kCount); ++i) {
      const auto kind = static_cast<ProgramBreak>(i);
      // The device refuses the wrong call.
      if (kind == ProgramBreak::kCapturedEvent) continue;
      cases.push_back({progress, kind});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    All, SimProgramTest, testing::ValuesIn(PlayedCases()),
    [](const testing::TestParamInfo<PlayedCase>& instance) {
      return std::string(instance.param.progress)
          .append("_")
          .append(ProgramBreakName(instance.param.kind));
    });

TEST(SimCheckHazardsTest, IsOffUnlessAskedFor) {
  const SimPlatform platform{PlatformOptions()};
  EXPECT_EQ(const_cast<SimPlatform&>(platform).hazard_monitor(), nullptr);
  EXPECT_EQ(platform.hazard_count(), std::nullopt);
}

TEST(SimCheckHazardsTest, UnknownChoiceIsNamed) {
  PlatformOptions options;
  options.sim_check_hazards = "maybe";
  try {
    const SimPlatform platform(options);
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("strata_sim_check_hazards: 'maybe'"));
  }
}

TEST(SimCheckHazardsTest, ReportsGoToStderr) {
  SimPlatform platform(CheckedOptions("lazy"));
  Stream stream;
  DevicePtr ptr = 0;
  platform.device(0).StreamCreate(&stream, kStreamNonBlocking);
  platform.device(0).MemAlloc(&ptr, 4096);
  platform.device(0).MemsetAsync(ptr, 0, 4096, stream);
  testing::internal::CaptureStderr();
  platform.device(0).MemFree(ptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("strata: hazard 1: free-in-use: 4096 bytes at 0x"));
}

TEST(SimCheckHazardsDeathTest, AbortEndsTheProcessAtTheFirst) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  PlatformOptions options = CheckedOptions("lazy");
  options.sim_check_hazards = "abort";
  SimPlatform platform(options);
  Stream stream;
  DevicePtr ptr = 0;
  platform.device(0).StreamCreate(&stream, kStreamNonBlocking);
  platform.device(0).MemAlloc(&ptr, 4096);
  platform.device(0).MemsetAsync(ptr, 0, 4096, stream);
  EXPECT_DEATH(platform.device(0).MemFree(ptr), "free-in-use");
}

std::vector<CallRecord> BrokenProgram() {
  std::uint64_t seed = 1;
  while (HazardOracle()
             .Judge(MakeProgram(seed, ProgramBreak::kEarlyFree))
             .empty()) {
    ++seed;
  }
  return MakeProgram(seed, ProgramBreak::kEarlyFree);
}

// The trace, the checker and an observer of the test see equal calls.
TEST(SimCheckHazardsTest, TraceOfARunShowsTheSameHazards) {
  const std::string path =
      testing::TempDir() + "strata_sim_hazards_" + std::to_string(getpid());
  PlatformOptions options = CheckedOptions("lazy");
  options.device_trace_path = path;
  std::uint64_t live = 0;
  std::uint64_t seen = 0;
  {
    const auto platform = MakePlatform(options);
    check::HazardMonitor& monitor =
        *dynamic_cast<SimPlatform&>(*platform).hazard_monitor();
    monitor.SetHandler([](const check::HazardReport&) {});
    platform->device(0).SetCallObserver([&](const CallRecord&) { ++seen; });
    HazardPlayer(*platform).Play(BrokenProgram());
    live = monitor.hazard_count();
    platform->device(0).SetCallObserver(nullptr);
  }
  check::CallTraceReader reader(path);
  check::HazardChecker checker;
  CallRecord record;
  while (reader.Next(&record)) checker.Observe(record);
  EXPECT_EQ(checker.record_count(), seen);
  EXPECT_GT(live, 0U);
  EXPECT_EQ(checker.hazard_count(), live);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace strata::sim
