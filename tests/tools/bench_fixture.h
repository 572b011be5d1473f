#ifndef STRATA_TESTS_TOOLS_BENCH_FIXTURE_H_
#define STRATA_TESTS_TOOLS_BENCH_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "strata/tools/bench_script.h"

namespace strata {

// A fresh folder, gone with this object.
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

// Three blocks of 4500 bytes in all, one of which is freed.
inline constexpr const char* kTraceText =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,00:00:00:000001,allocate,0x100,1000,0\n"
    "1,00:00:00:000002,allocate,0x200,3000,2\n"
    "1,00:00:00:000003,free,0x100,1000,0\n"
    "1,00:00:00:000004,allocate,0x300,500,0\n";

// Every workload, with a loop of few pairs.
inline std::vector<BenchScript> SmallScripts() {
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

}  // namespace strata

#endif  // STRATA_TESTS_TOOLS_BENCH_FIXTURE_H_
