// Logs of tens of millions of rows must fit on a laptop.

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "strata/tests/tools/temp_file.h"
#include "strata/tools/readers/rmm_log.h"

// Defined in programs built with a sanitizer, which uses much more memory.
// NOLINTBEGIN(bugprone-reserved-identifier): the runtimes' names
extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}
// NOLINTEND(bugprone-reserved-identifier)

namespace strata::tools {
namespace {

constexpr int kRows = 2'000'000;

// A field of /proc/self/status in bytes.
std::uint64_t StatusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string name;
  while (status >> name) {
    std::uint64_t kibibytes = 0;
    if (name == field + ":" && status >> kibibytes) return kibibytes << 10;
    std::getline(status, name);
  }
  return 0;
}

// Resets the peak of the resident memory to its current size.
bool ResetPeakMemory() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

void WriteLog(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "wb1");
  ASSERT_NE(file, nullptr);
  gzputs(file, kHeader);
  for (int i = 0; i < kRows / 2; ++i) {
    gzprintf(file, "1,0,allocate,0x%x,%d,0\n", i + 1, i);
    if (i >= 1000) gzprintf(file, "1,0,free,0x%x,0,0\n", i - 999);
  }
  ASSERT_EQ(gzclose(file), Z_OK);
}

TEST(RmmLogMemoryTest, TakesFewBytesPerRow) {
  if (__asan_init != nullptr || __tsan_init != nullptr) {
    GTEST_SKIP() << "a sanitizer keeps freed memory";
  }
  const TempFile file(".csv.gz");
  ASSERT_NO_FATAL_FAILURE(WriteLog(file.path()));
  if (!ResetPeakMemory()) GTEST_SKIP() << "no /proc/self/clear_refs here";
  const std::uint64_t before = StatusBytes("VmRSS");
  const Trace trace = ReadRmmLog(file.path());
  const std::uint64_t peak = StatusBytes("VmHWM");
  ASSERT_GT(trace.events.size(), 1'900'000U);
  ASSERT_GT(before, 0U);
  // 12 bytes per row, and half as much again while a vector grows. At this
  // rate, ten million rows take 300 MB.
  EXPECT_LT(peak - before, 30ULL * kRows);
}

}  // namespace
}  // namespace strata::tools
