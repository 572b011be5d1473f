#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/platform/registry.h"
#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tools/bench/subject.h"

namespace strata::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = BenchAllocator::Kind;
using Threads = BenchWorkload::Threads;

Options SimOptions() { return Options::Parse("strata_platform=sim"); }

bool HasVirtualMemory() {
  return MakePlatform(SimOptions().platform)->device(0).caps().virtual_memory;
}

// Number of allocations by a thread in the first `pairs` pairs.
std::uint64_t AllocationsIn(const BenchWorkload& workload,
                            const BenchScript& script, std::size_t pairs) {
  if (workload.threads == Threads::kHandOver) return pairs;
  return (script.prologue.size() + pairs) * workload.thread_count;
}

// Every malloc here runs in this process, which may lack the memory.
bool IsTooLarge(const BenchAllocator& allocator, const BenchScript& script) {
  return allocator.kind == Kind::kMalloc &&
         script.peak_live_bytes > (std::uint64_t{1} << 30);
}

// All allocators, including the tests' own library.
std::vector<BenchAllocator> AllAllocators() {
  std::vector<BenchAllocator> all = BenchAllocators();
  for (BenchAllocator& allocator : all) {
    if (allocator.kind == Kind::kLibrary) {
      allocator.library = STRATA_HEAP_LIBRARY;
    }
  }
  return all;
}

TEST(BenchSubjectTest, EveryAllocatorServesEveryWorkload) {
  constexpr std::size_t kPairs = 60;
  const SmallBench bench;
  for (const BenchWorkload& workload : bench.Workloads()) {
    const BenchScript script = workload.make(bench.options());
    for (const BenchAllocator& allocator : AllAllocators()) {
      if (IsTooLarge(allocator, script) ||
          (allocator.name == "peer:pytorch_expandable" &&
           !HasVirtualMemory())) {
        continue;
      }
      const auto subject =
          MakeBenchSubject(allocator, workload, script, SimOptions(), {});
      EXPECT_GT(subject->Run(kPairs).count(), 0);
      if (allocator.kind == Kind::kMalloc) {
        EXPECT_FALSE(subject->allocations().has_value());
      } else {
        EXPECT_EQ(subject->allocations(),
                  AllocationsIn(workload, script, kPairs))
            << allocator.name << ' ' << workload.name;
      }
    }
  }
}

TEST(BenchSubjectTest, StrategiesTellWhatTheyReserve) {
  const SmallBench bench;
  for (const char* name :
       {"fifo", "pair_own_streams_3", "training_one_stream_2"}) {
    const BenchWorkload workload = FindBenchWorkload(name, bench.options());
    const BenchScript script = workload.make(bench.options());
    for (const char* allocator :
         {"auto_growth", "c:auto_growth", "direct", "peer:pytorch",
          "peer:rmm_pool", "driver:malloc_async"}) {
      const auto subject = MakeBenchSubject(FindBenchAllocator(allocator),
                                            workload, script, SimOptions(), {});
      subject->Run(script.pairs());
      EXPECT_EQ(subject->peak_live_bytes(),
                script.peak_live_bytes * workload.thread_count);
      EXPECT_GE(subject->peak_reserved_bytes(), script.peak_live_bytes)
          << allocator;
    }
  }
}

TEST(BenchSubjectTest, AHandOverCountsWhatIsUnderWay) {
  const BenchWorkload workload = FindBenchWorkload("hand_over", {});
  const auto subject = MakeBenchSubject(FindBenchAllocator("direct"), workload,
                                        workload.make({}), SimOptions(), {});
  subject->Run(2000);
  EXPECT_GE(subject->peak_live_bytes(), 3U * 4096);
  EXPECT_LE(subject->peak_live_bytes(), 1026U * 4096);
}

// Exhaustion of the device ends every thread, with the reason.
TEST(BenchSubjectTest, ExhaustionEndsAnyWorkload) {
  const SmallBench bench;
  for (const char* name :
       {"random_50", "training_own_streams_2", "hand_over"}) {
    const BenchWorkload workload = FindBenchWorkload(name, bench.options());
    for (const char* allocator : {"auto_growth", "c:auto_growth", "bfc"}) {
      Options options = Options::Parse(
          "strata_platform=sim,strata_sim_memory=2MiB,"
          "gpu_allocator_retry_time=0");
      // A hand-over needs little memory, so its requests are refused.
      if (workload.threads == Threads::kHandOver) {
        options.platform.sim_faults = "mem_alloc:every=1";
      }
      const auto run = [&] {
        MakeBenchSubject(FindBenchAllocator(allocator), workload,
                         workload.make(bench.options()), options, {})
            ->Run(5000);
      };
      EXPECT_ANY_THROW(run()) << name << ' ' << allocator;
    }
  }
}

TEST(BenchAllocatorTest, BfcFastIsBfcWithAnotherPlacement) {
  const Options options = OptionsOf(
      FindBenchAllocator("bfc_fast"),
      Options::Parse("use_cuda_malloc_async_allocator,bfc_placement=compat"));
  EXPECT_EQ(options.Strategy(), "bfc");
  EXPECT_THAT(ToString(options), HasSubstr("bfc_placement=fast"));
  EXPECT_THAT(ToString(OptionsOf(FindBenchAllocator("bfc"), SimOptions())),
              HasSubstr("bfc_placement=compat"));
}

TEST(BenchAllocatorTest, NamesTheKnownOnesWhenOneIsUnknown) {
  try {
    FindBenchAllocator("dlmalloc");
    FAIL() << "found an allocator that does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("'dlmalloc'"), HasSubstr("c:auto_growth"),
                      HasSubstr("tcmalloc")));
  }
}

}  // namespace
}  // namespace strata::tools
