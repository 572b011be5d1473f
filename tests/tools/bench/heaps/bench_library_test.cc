// `strata bench --bench_library` on a library (heap_library.h): the tests' own
// heap_library_fixture.c.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tests/tools/command_line_fixture.h"
#include "strata/tools/bench/bench.h"
#include "strata/tools/bench/heaps/library_heap.h"
#include "strata/tools/bench/subject.h"

namespace strata::tools {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// Sets the working folder of the process during its lifetime.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& path) : before_(fs::current_path()) {
    fs::current_path(path);
  }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;
  ~WorkingFolder() { fs::current_path(before_); }

 private:
  const fs::path before_;
};

// The reason for which `file` cannot be measured.
std::string Refusal(const std::string& file) {
  try {
    const HeapLibrary library(file);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "it can";
}

// A row of the library in `file`, with STRATA_TEST_HEAP set to `word`.
CommandResult RunLibrary(const std::string& word = "",
                         const std::string& workload = "lifo",
                         const std::string& file = STRATA_HEAP_LIBRARY) {
  return RunStrata(
      {"bench", "--format=json", "--bench_rounds=2", "--bench_operations=10",
       "--bench_workloads=" + workload, "--bench_allocators=library",
       "--strata_platform=sim", "--bench_library=" + file},
      {"STRATA_TEST_HEAP=" + word});
}

// The note of the only row, which failed.
std::string NoteOfFailure(const CommandResult& result) {
  EXPECT_EQ(result.code, 1) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.at(0).at("status"), "failed");
  return rows.at(0).at("note");
}

TEST(BenchLibraryTest, IsAskedWhatItCounts) {
  const SmallBench bench;
  BenchAllocator allocator = FindBenchAllocator("library");
  allocator.library = STRATA_HEAP_LIBRARY;
  const BenchWorkload workload =
      FindBenchWorkload("pair_own_streams_3", bench.options());
  const auto subject =
      MakeBenchSubject(allocator, workload, workload.make(bench.options()),
                       Options::Parse("strata_platform=sim"), {});
  subject->Run(100);
  EXPECT_EQ(subject->allocations(), 300U);
  // One to three threads held a block at once.
  EXPECT_GE(subject->peak_reserved_bytes(), 3U * 4096);
  EXPECT_LE(subject->peak_reserved_bytes(), 9U * 4096);
}

TEST(BenchLibraryTest, IsMeasuredByTheCommand) {
  const CommandResult result = RunLibrary();
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("status"), "ok");
  EXPECT_EQ(rows[0].at("rounds"), 2);
  EXPECT_EQ(rows[0].at("reserved_ratio"), 3);
}

TEST(BenchLibraryTest, ServesTheStreamOfEachThread) {
  EXPECT_EQ(RunLibrary("legacy_stream", "pair_one_stream_2").code, 0);
  EXPECT_THAT(NoteOfFailure(RunLibrary("legacy_stream", "pair_own_streams_2")),
              HasSubstr("no memory"));
}

TEST(BenchLibraryTest, IsMeasuredByDefaultIfItIsNamed) {
  for (const bool is_named : {false, true}) {
    std::vector<std::string> arguments = {
        "bench", "--format=json", "--bench_rounds=1", "--bench_operations=10",
        "--bench_workloads=pair"};
    if (is_named) {
      arguments.emplace_back("--bench_library=" STRATA_HEAP_LIBRARY);
    }
    const CommandResult result = RunStrata(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out.find(R"("library")") != std::string::npos, is_named);
  }
}

TEST(BenchLibraryTest, IsNotInstalledIfItIsNotNamed) {
  const CommandResult result = RunStrata(
      {"bench", "--format=json", "--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=pair", "--bench_allocators=null,library"});
  EXPECT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].at("status"), "not_installed");
  EXPECT_EQ(rows[1].at("note"), "no --bench_library");
}

TEST(BenchLibraryTest, RunsOnceForProfilers) {
  const CommandResult result = RunStrata(
      {"bench", "run", "library", "hand_over", "--bench_operations=10",
       "--strata_platform=sim", "--bench_library=" STRATA_HEAP_LIBRARY});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST(BenchLibraryTest, RunsOnceOnlyIfItIsNamed) {
  ExpectRefused(
      RunStrata({"bench", "run", "library", "pair", "--strata_platform=sim"}),
      "name it with --bench_library=FILE");
}

TEST(BenchLibraryTest, IsFoundInTheCurrentFolder) {
  const ScratchFolder folder;
  fs::copy_file(STRATA_HEAP_LIBRARY, folder.path() / "some_heap.so");
  const WorkingFolder here(folder.path());
  EXPECT_EQ(Refusal("some_heap.so"), "it can");
}

TEST(BenchLibraryTest, NamesTheFileThatIsMissing) {
  EXPECT_THAT(Refusal("/no/such/heap.so"),
              AllOf(HasSubstr("--bench_library=/no/such/heap.so: "),
                    HasSubstr("No such file")));
  EXPECT_THAT(NoteOfFailure(RunLibrary("", "lifo", "no_such_heap.so")),
              AllOf(HasSubstr("--bench_library=no_such_heap.so: "),
                    HasSubstr("No such file")));
}

TEST(BenchLibraryTest, NamesTheFileThatIsNoLibrary) {
  const ScratchFolder folder;
  const std::string text = folder.Write("text.so", "no library");
  EXPECT_THAT(Refusal(text), HasSubstr("--bench_library=" + text + ": "));
}

TEST(BenchLibraryTest, NamesTheFunctionThatIsMissing) {
  EXPECT_EQ(Refusal(STRATA_PARTIAL_HEAP_LIBRARY),
            "--bench_library=" STRATA_PARTIAL_HEAP_LIBRARY
            ": it has no function strata_heap_peak_reserved_bytes");
}

TEST(BenchLibraryTest, SaysWhyALibraryRefuses) {
  EXPECT_EQ(NoteOfFailure(RunLibrary("refuse")),
            "--bench_library=" STRATA_HEAP_LIBRARY ": it was told to refuse");
}

TEST(BenchLibraryTest, SaysWhatALibraryHasNoMemoryFor) {
  EXPECT_EQ(NoteOfFailure(RunLibrary("empty")),
            "--bench_library=" STRATA_HEAP_LIBRARY
            ": strata_heap_allocate has no memory for 4096 bytes");
}

}  // namespace
}  // namespace strata::tools
