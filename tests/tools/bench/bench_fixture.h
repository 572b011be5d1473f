#ifndef STRATA_TESTS_TOOLS_BENCH_BENCH_FIXTURE_H_
#define STRATA_TESTS_TOOLS_BENCH_BENCH_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "strata/tools/bench/workloads/workload.h"

namespace strata::tools {

// A fresh folder, removed with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = testing::TempDir() + "/strata_bench_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Three blocks of 4500 bytes in total. One of them is freed.
inline constexpr const char* kTraceText =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,00:00:00:000001,allocate,0x100,1000,0\n"
    "1,00:00:00:000002,allocate,0x200,3000,2\n"
    "1,00:00:00:000003,free,0x100,1000,0\n"
    "1,00:00:00:000004,allocate,0x300,500,0\n";

// One workload of each kind, as small as possible, with the trace above.
class SmallBench {
 public:
  SmallBench() {
    options_.pairs = 7;
    options_.traces = {folder_.Write("small.csv", kTraceText)};
  }

  const BenchScriptOptions& options() const { return options_; }
  std::vector<BenchWorkload> Workloads() const {
    std::vector<BenchWorkload> workloads;
    for (const char* name :
         {"pair", "lifo", "fifo", "training", "training_layers",
          "training_jittered", "trace:small", "random_50", "random_small_50",
          "pair_own_streams_3", "pair_one_stream_3", "training_own_streams_2",
          "training_one_stream_2", "hand_over"}) {
      workloads.push_back(FindBenchWorkload(name, options_));
    }
    return workloads;
  }

 private:
  const ScratchFolder folder_;
  BenchScriptOptions options_;
};

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_BENCH_BENCH_FIXTURE_H_
