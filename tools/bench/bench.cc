#include "strata/tools/bench/bench.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "strata/tools/bench/child_process.h"

namespace strata::tools {
namespace {

namespace fs = std::filesystem;

// Far more than the setup of a million live blocks takes on the slowest
// machine.
constexpr std::chrono::seconds kAnswerTimeout{600};

// A row that is being measured, and its process; null: the measurement has
// ended.
struct Runner {
  BenchRow row;
  std::unique_ptr<ChildProcess> worker;
};

void GiveUp(Runner& runner, BenchRow::Status status, const std::string& note) {
  runner.row.status = status;
  runner.row.note = note;
  runner.row.pair_ns.clear();
  runner.row.reserved_ratio.reset();
  runner.worker.reset();
}

Runner Start(const BenchPlan& plan, const BenchWorkload& workload,
             const BenchAllocator& allocator) {
  Runner runner;
  runner.row.workload = workload.name;
  runner.row.live_blocks = workload.live_blocks;
  runner.row.threads = workload.threads;
  runner.row.thread_count = workload.thread_count;
  runner.row.allocator = allocator.name;
  runner.row.kind = allocator.kind;
  std::string preload;
  if (allocator.kind == BenchAllocator::Kind::kLibrary &&
      allocator.library.empty()) {
    GiveUp(runner, BenchRow::Status::kNotInstalled, "no --bench_library");
    return runner;
  }
  if (allocator.kind == BenchAllocator::Kind::kMalloc &&
      !allocator.library.empty()) {
    preload = FindLibrary(allocator.library, plan.library_folders).string();
    if (preload.empty()) {
      GiveUp(runner, BenchRow::Status::kNotInstalled,
             "not installed: no " + allocator.library + "*");
      return runner;
    }
  }
  std::vector<std::string> command = plan.worker_command;
  command.insert(command.end(), {allocator.name, workload.name});
  command.insert(command.end(), plan.worker_arguments.begin(),
                 plan.worker_arguments.end());
  try {
    runner.worker = std::make_unique<ChildProcess>(command, preload);
  } catch (const std::runtime_error& error) {
    GiveUp(runner, BenchRow::Status::kFailed, error.what());
  }
  return runner;
}

// The worker's answer about `key`; empty if there is none.
std::string TextOf(const nlohmann::json& answer, const char* key) {
  if (!answer.is_object() || !answer.contains(key)) return "";
  const nlohmann::json& text = answer[key];
  return text.is_string() ? text.get<std::string>() : text.dump();
}

// Errors: std::runtime_error if `answer`, with the text `line`, is not an
//   answer of ServeBench, or with the error that it reports.
void ReadRound(const nlohmann::json& answer, const std::string& line,
               BenchRow& row) {
  const std::string error = TextOf(answer, "error");
  if (!error.empty()) throw std::runtime_error(error);
  if (!answer.is_object() || !answer.contains("pair_ns") ||
      !answer["pair_ns"].is_number() || !answer.contains("reserved_ratio")) {
    throw std::runtime_error("its answer is no result: " + line);
  }
  row.pair_ns.push_back(answer["pair_ns"].get<double>());
  if (answer["reserved_ratio"].is_number()) {
    row.reserved_ratio = answer["reserved_ratio"].get<double>();
  }
}

void RunRound(Runner& runner) {
  if (runner.worker == nullptr) return;
  try {
    const std::string line = runner.worker->Ask("round", kAnswerTimeout);
    const auto answer =
        nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const std::string left_out = TextOf(answer, "left_out");
    if (!left_out.empty()) {
      GiveUp(runner, BenchRow::Status::kLeftOut, left_out);
    } else {
      ReadRound(answer, line, runner.row);
    }
  } catch (const std::runtime_error& error) {
    GiveUp(runner, BenchRow::Status::kFailed, error.what());
  }
}

}  // namespace

std::optional<double> BenchRow::MedianNs() const {
  if (pair_ns.empty()) return std::nullopt;
  std::vector<double> sorted = pair_ns;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle]
                                : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::optional<double> BenchRow::MinNs() const {
  if (pair_ns.empty()) return std::nullopt;
  return *std::min_element(pair_ns.begin(), pair_ns.end());
}

std::vector<fs::path> SystemLibraryFolders() {
  std::vector<fs::path> folders = {"/usr/local/lib"};
  std::error_code ignored;
  for (const char* parent : {"/usr/lib", "/usr/lib64"}) {
    folders.emplace_back(parent);
    for (const auto& entry : fs::directory_iterator(parent, ignored)) {
      if (entry.is_directory(ignored)) folders.push_back(entry.path());
    }
  }
  return folders;
}

fs::path FindLibrary(const std::string& name,
                     const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    fs::path first;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const fs::path& file = entry.path();
      if (file.filename().string().rfind(name, 0) == 0 &&
          (first.empty() || file < first)) {
        first = file;
      }
    }
    if (!first.empty()) return first;
  }
  return {};
}

std::vector<BenchRow> Bench(
    const BenchPlan& plan,
    const std::function<void(const std::string&)>& progress) {
  std::vector<BenchRow> rows;
  for (const BenchWorkload& workload : plan.workloads) {
    std::vector<Runner> runners;
    for (const BenchAllocator& allocator : plan.allocators) {
      runners.push_back(Start(plan, workload, allocator));
    }
    for (int round = 0; round < plan.rounds; ++round) {
      progress(workload.name + ": round " + std::to_string(round + 1) + " of " +
               std::to_string(plan.rounds));
      for (Runner& runner : runners) RunRound(runner);
    }
    for (Runner& runner : runners) rows.push_back(std::move(runner.row));
  }
  return rows;
}

}  // namespace strata::tools
