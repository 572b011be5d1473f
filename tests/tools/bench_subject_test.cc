#include "strata/tools/bench_subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/platform/registry.h"
#include "strata/tests/tools/bench_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Options SimOptions() { return Options::Parse("strata_platform=sim"); }

bool HasVirtualMemory() {
  return MakePlatform(SimOptions().platform)->device(0).caps().virtual_memory;
}

TEST(BenchSubjectTest, EveryAllocatorServesEveryWorkload) {
  for (const BenchAllocator& allocator : BenchAllocators()) {
    if (allocator.name == "peer:pytorch_expandable" && !HasVirtualMemory()) {
      continue;
    }
    for (const BenchScript& script : SmallScripts()) {
      // Every malloc is this process's own here, where 5 GiB may be too much.
      if (allocator.kind == BenchAllocator::Kind::kMalloc &&
          script.peak_live_bytes > (std::uint64_t{1} << 30)) {
        continue;
      }
      const auto subject = MakeBenchSubject(allocator, script, SimOptions());
      subject->Run(2);
      if (allocator.kind == BenchAllocator::Kind::kMalloc) {
        EXPECT_FALSE(subject->allocations().has_value());
      } else {
        EXPECT_EQ(subject->allocations(),
                  script.prologue.size() + 2 * script.pairs());
      }
    }
  }
}

TEST(BenchSubjectTest, StrategiesTellWhatTheyReserve) {
  const BenchScript script = FindBenchWorkload("fifo").make({});
  for (const char* name :
       {"auto_growth", "direct", "peer:pytorch", "peer:rmm_pool"}) {
    const auto subject =
        MakeBenchSubject(FindBenchAllocator(name), script, SimOptions());
    subject->Run(1);
    EXPECT_GE(subject->peak_reserved_bytes(), script.peak_live_bytes) << name;
  }
}

TEST(BenchSubjectTest, NamesTheKnownAllocatorsWhenOneIsUnknown) {
  try {
    FindBenchAllocator("dlmalloc");
    FAIL() << "found an allocator that does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("'dlmalloc'"), HasSubstr("auto_growth"),
                      HasSubstr("tcmalloc")));
  }
}

}  // namespace
}  // namespace strata
