#include "strata/tools/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/platform/registry.h"
#include "strata/tools/bench_script.h"
#include "strata/tools/bench_subject.h"
#include "strata/tools/child_process.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// A fresh folder, gone with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = testing::TempDir() + "/strata_bench_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() { fs::remove_all(path_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

constexpr const char* kTraceText =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,00:00:00:000001,allocate,0x100,1000,0\n"
    "1,00:00:00:000002,allocate,0x200,3000,2\n"
    "1,00:00:00:000003,free,0x100,1000,0\n"
    "1,00:00:00:000004,allocate,0x300,500,0\n";

// Every workload, with a loop of few pairs.
std::vector<BenchScript> SmallScripts() {
  const ScratchFolder folder;
  BenchScriptOptions options;
  options.pairs = 7;
  options.trace = folder.Write("trace.csv", kTraceText);
  std::vector<BenchScript> scripts;
  for (const BenchWorkload& workload : BenchWorkloads()) {
    scripts.push_back(workload.make(options));
  }
  return scripts;
}

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

std::vector<nlohmann::json> Answers(const std::string& allocator,
                                    const Options& options) {
  std::istringstream in("round\nround\nround\n");
  std::ostringstream out;
  ServeBench(FindBenchAllocator(allocator), FindBenchWorkload("random_small"),
             {.pairs = 5, .trace = ""}, 5, options, in, out);
  std::vector<nlohmann::json> answers;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    answers.push_back(nlohmann::json::parse(line));
  }
  return answers;
}

TEST(BenchWorkerTest, AnswersEveryLineWithARound) {
  const std::vector<nlohmann::json> answers =
      Answers("auto_growth", SimOptions());
  ASSERT_EQ(answers.size(), 3U);
  for (const nlohmann::json& answer : answers) {
    EXPECT_TRUE(answer.at("pair_ns").is_number());
    EXPECT_GE(answer.at("reserved_ratio"), 1);
  }
}

TEST(BenchWorkerTest, HasNoReservedRatioForMalloc) {
  const std::vector<nlohmann::json> answers = Answers("glibc", SimOptions());
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_TRUE(answers[0].at("reserved_ratio").is_null());
}

TEST(BenchWorkerTest, ReportsExhaustionAsAnError) {
  const std::vector<nlohmann::json> answers = Answers(
      "auto_growth", Options::Parse("strata_platform=sim,strata_sim_memory="
                                    "2MiB"));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0].at("error").get<std::string>(),
              HasSubstr("cannot allocate"));
}

TEST(ChildProcessTest, AnswersLineForLine) {
  ChildProcess cat({"/bin/cat"}, "");
  EXPECT_EQ(cat.Ask("one", std::chrono::minutes(1)), "one");
  EXPECT_EQ(cat.Ask("two", std::chrono::minutes(1)), "two");
}

TEST(ChildProcessTest, SetsOrClearsThePreload) {
  const std::vector<std::string> command = {
      "/bin/sh", "-c", "read line; echo \"[$LD_PRELOAD]\""};
  EXPECT_EQ(ChildProcess(command, "").Ask("", std::chrono::minutes(1)), "[]");
  // A library that cannot be loaded is only warned of, by the loader.
  EXPECT_EQ(
      ChildProcess(command, "/no/such.so").Ask("", std::chrono::minutes(1)),
      "[/no/such.so]");
}

std::string ErrorOf(const std::string& script,
                    std::chrono::milliseconds timeout) {
  ChildProcess process({"/bin/sh", "-c", script}, "");
  try {
    return "answered: " + process.Ask("go", timeout);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(ChildProcessTest, SaysHowTheProcessEnded) {
  EXPECT_EQ(ErrorOf("exit 3", std::chrono::minutes(1)),
            "it ended with exit code 3");
  EXPECT_EQ(ErrorOf("kill -9 $$", std::chrono::minutes(1)),
            "it was ended by signal 9");
}

TEST(ChildProcessTest, GivesUpOnAProcessThatIsSilent) {
  EXPECT_EQ(ErrorOf("read line; read never", std::chrono::milliseconds(1)),
            "it did not answer in 1 ms");
}

TEST(ChildProcessTest, ReportsAProgramThatDoesNotExist) {
  EXPECT_THROW(ChildProcess({"/no/such/program"}, ""), std::runtime_error);
}

BenchPlan PlanFor(const std::string& allocator,
                  const std::vector<std::string>& worker_command) {
  BenchPlan plan;
  plan.workloads = {FindBenchWorkload("pair")};
  plan.allocators = {FindBenchAllocator(allocator)};
  plan.rounds = 3;
  plan.worker_command = worker_command;
  return plan;
}

BenchRow RunOne(const BenchPlan& plan) {
  const std::vector<BenchRow> rows = Bench(plan, [](const std::string&) {});
  EXPECT_EQ(rows.size(), 1U);
  return rows.at(0);
}

// A worker that answers every line with `answer`.
std::vector<std::string> Answering(const std::string& answer) {
  return {"/bin/sh", "-c", "while read line; do echo '" + answer + "'; done",
          "sh"};
}

TEST(BenchTest, TakesWhatTheWorkerMeasured) {
  const BenchRow row = RunOne(PlanFor(
      "auto_growth", Answering(R"({"pair_ns":41.5,"reserved_ratio":1.25})")));
  EXPECT_EQ(row.status, BenchRow::Status::kOk);
  EXPECT_THAT(row.pair_ns, ElementsAre(41.5, 41.5, 41.5));
  EXPECT_EQ(row.reserved_ratio, 1.25);
}

TEST(BenchTest, ReportsAnAnswerThatIsNoResult) {
  for (const char* answer :
       {"hello", "{}", R"({"pair_ns":"7","reserved_ratio":null})"}) {
    const BenchRow row = RunOne(PlanFor("null", Answering(answer)));
    EXPECT_EQ(row.status, BenchRow::Status::kFailed);
    EXPECT_EQ(row.note, std::string("its answer is no result: ") + answer);
    EXPECT_TRUE(row.pair_ns.empty());
  }
}

TEST(BenchTest, ReportsTheWorkersError) {
  const BenchRow row =
      RunOne(PlanFor("null", Answering(R"({"error":"out of luck"})")));
  EXPECT_EQ(row.status, BenchRow::Status::kFailed);
  EXPECT_EQ(row.note, "out of luck");
}

TEST(BenchTest, ReportsAWorkerThatEnds) {
  const BenchRow row = RunOne(PlanFor("null", {"/bin/sh", "-c", "exit 4"}));
  EXPECT_EQ(row.status, BenchRow::Status::kFailed);
  EXPECT_EQ(row.note, "it ended with exit code 4");
}

TEST(BenchTest, ReportsAWorkerThatCannotStart) {
  const BenchRow row = RunOne(PlanFor("null", {"/no/such/program"}));
  EXPECT_EQ(row.status, BenchRow::Status::kFailed);
  EXPECT_THAT(row.note, HasSubstr("/no/such/program"));
}

TEST(BenchTest, GoesOnWithTheOthersWhenOneWorkerFails) {
  BenchPlan plan =
      PlanFor("null", {"/bin/sh", "-c",
                       "[ $1 = null ] && exit 1; while read line; do "
                       "echo '{\"pair_ns\":1,\"reserved_ratio\":null}'; done",
                       "sh"});
  plan.allocators.push_back(FindBenchAllocator("glibc"));
  const std::vector<BenchRow> rows = Bench(plan, [](const std::string&) {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].status, BenchRow::Status::kFailed);
  EXPECT_EQ(rows[1].status, BenchRow::Status::kOk);
}

TEST(BenchTest, ALibraryThatIsMissingIsARowThatSaysSo) {
  const ScratchFolder empty;
  for (const char* name : {"jemalloc", "mimalloc", "tcmalloc"}) {
    BenchPlan plan = PlanFor(name, {"/no/such/program"});
    plan.library_folders = {empty.path(), empty.path() / "none"};
    const BenchRow row = RunOne(plan);
    EXPECT_EQ(row.status, BenchRow::Status::kNotInstalled);
    EXPECT_THAT(row.note, HasSubstr("not installed"));
  }
}

TEST(BenchTest, FindsALibraryWhateverItsVersion) {
  const ScratchFolder folder;
  folder.Write("libjemalloc.so.2", "");
  folder.Write("libjemalloc_pic.a", "");
  EXPECT_EQ(FindLibrary("libjemalloc.so", {"/no/such/folder", folder.path()}),
            folder.path() / "libjemalloc.so.2");
  EXPECT_EQ(FindLibrary("libmimalloc.so", {folder.path()}), fs::path());
}

// Two host allocators, one strategy, one that is missing.
std::vector<BenchRow> SomeRows() {
  using Kind = BenchAllocator::Kind;
  std::vector<BenchRow> rows(4);
  rows[0].allocator = "auto_growth";
  rows[0].kind = Kind::kFacade;
  rows[0].pair_ns = {50, 10, 30};
  rows[0].reserved_ratio = 1.5;
  rows[1].allocator = "glibc";
  rows[1].kind = Kind::kMalloc;
  rows[1].pair_ns = {40, 60, 50};
  rows[2].allocator = "tcmalloc";
  rows[2].kind = Kind::kMalloc;
  rows[2].pair_ns = {20, 20, 20};
  rows[3].allocator = "jemalloc";
  rows[3].kind = Kind::kMalloc;
  rows[3].status = BenchRow::Status::kNotInstalled;
  rows[3].note = "not installed: no libjemalloc.so*";
  for (BenchRow& row : rows) row.workload = "pair";
  return rows;
}

TEST(BenchReportTest, TakesTheMedianOfTheRounds) {
  BenchRow row;
  EXPECT_FALSE(row.MedianNs().has_value());
  row.pair_ns = {9, 1, 4};
  EXPECT_EQ(row.MedianNs(), 4);
  EXPECT_EQ(row.MinNs(), 1);
  row.pair_ns = {9, 1, 4, 6};
  EXPECT_EQ(row.MedianNs(), 5);
}

TEST(BenchReportTest, ComparesOnlyWithMallocsOfTheSameWorkload) {
  std::vector<BenchRow> rows = SomeRows();
  EXPECT_EQ(BestMallocNs(rows, "pair"), 20);
  EXPECT_FALSE(BestMallocNs(rows, "lifo").has_value());
  rows[2].workload = "lifo";
  EXPECT_EQ(BestMallocNs(rows, "pair"), 50);
}

TEST(BenchReportTest, JsonHasEveryKeyInEveryRow) {
  const auto json = nlohmann::json::parse(ToJson(SomeRows()));
  ASSERT_EQ(json.size(), 4U);
  for (const auto& row : json) {
    std::set<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.insert(key);
    EXPECT_THAT(keys, ElementsAre("allocator", "note", "ns_median", "ns_min",
                                  "ratio_to_best_malloc", "reserved_ratio",
                                  "rounds", "status", "workload"));
  }
  EXPECT_EQ(json[0]["ns_median"], 30);
  EXPECT_EQ(json[0]["ns_min"], 10);
  EXPECT_EQ(json[0]["ratio_to_best_malloc"], 1.5);
  EXPECT_EQ(json[0]["reserved_ratio"], 1.5);
  EXPECT_EQ(json[0]["rounds"], 3);
  EXPECT_TRUE(json[1]["reserved_ratio"].is_null());
  EXPECT_TRUE(json[3]["ns_median"].is_null());
  EXPECT_EQ(json[3]["status"], "not_installed");
}

TEST(BenchReportTest, TableSaysWhatIsMissing) {
  const std::string text = ToTable(SomeRows());
  EXPECT_THAT(text, AllOf(HasSubstr("auto_growth"), HasSubstr("30.0"),
                          HasSubstr("not installed: no libjemalloc.so*")));
}

struct CommandResult {
  int code = -1;
  std::string output;  // both streams
};

CommandResult RunTool(const std::string& arguments) {
  const std::string command =
      std::string(STRATA_BINARY) + " bench " + arguments + " 2>&1";
  CommandResult result;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  for (std::size_t count = 0;
       (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    result.output.append(buffer, count);
  }
  result.code = WEXITSTATUS(pclose(pipe));
  return result;
}

TEST(BenchCommandTest, MeasuresInWorkers) {
  const CommandResult result = RunTool(
      "--format=json --bench_rounds=2 --bench_operations=10 "
      "--bench_workloads=pair,lifo --bench_allocators=null,auto_growth,glibc");
  ASSERT_EQ(result.code, 0) << result.output;
  const auto json = nlohmann::json::parse(result.output);
  ASSERT_EQ(json.size(), 6U);
  for (const auto& row : json) {
    EXPECT_EQ(row["status"], "ok") << row;
    EXPECT_EQ(row["rounds"], 2);
    EXPECT_TRUE(row["ns_median"].is_number());
  }
  EXPECT_EQ(json[4]["workload"], "lifo");
  EXPECT_EQ(json[4]["allocator"], "auto_growth");
}

TEST(BenchCommandTest, GivesTheWorkersTheFlagsOfStrategies) {
  const CommandResult result = RunTool(
      "--format=json --bench_rounds=1 --bench_operations=10 "
      "--bench_workloads=random --bench_allocators=auto_growth "
      "--strata_platform=sim --strata_sim_memory=1GiB");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("cannot allocate"));
}

TEST(BenchCommandTest, MeasuresATrace) {
  const ScratchFolder folder;
  const CommandResult result = RunTool(
      "--bench_rounds=1 --bench_operations=10 --bench_allocators=null "
      "--bench_workloads=training --bench_trace=" +
      folder.Write("trace.csv", kTraceText));
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("training"));
}

TEST(BenchCommandTest, RefusesWrongArgumentsInOneLine) {
  struct Case {
    const char* arguments;
    const char* reason;
  };
  for (const Case& wrong : {
           Case{"--bench_workloads=pear", "known: pair"},
           Case{"--bench_workloads=pair,", "there is no workload ''"},
           Case{"--bench_allocators=dlmalloc", "known: null"},
           Case{"--bench_rounds=0", "bench_rounds"},
           Case{"--bench_rounds=many", "'many'"},
           Case{"--bench_operations=-1", "bench_operations"},
           Case{"--bench_workloads=training", "--bench_trace"},
           Case{"--bench_trace=/no/such/file", "/no/such/file"},
           Case{"--format=xml", "known: table, json"},
           Case{"pair", "no argument 'pair'"},
           Case{"worker null", "an allocator and a workload"},
           Case{"--bench_wrong=1", "bench_wrong"},
       }) {
    const CommandResult result = RunTool(wrong.arguments);
    EXPECT_EQ(result.code, 2) << wrong.arguments;
    EXPECT_THAT(result.output, HasSubstr(wrong.reason));
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1)
        << result.output;
  }
}

TEST(BenchCommandTest, AWorkerWithoutItsLibrarySaysSo) {
  const CommandResult result = RunTool("worker jemalloc pair </dev/null");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, HasSubstr("could not be preloaded"));
}

}  // namespace
}  // namespace strata
