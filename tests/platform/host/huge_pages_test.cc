#include "strata/platform/host/huge_pages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <sstream>
#include <string>

namespace strata {
namespace {

// The VmFlags of the mapping of `data`, in the format of proc(5).
std::string FlagsOf(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::ifstream maps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (std::istringstream(line) >> std::hex >> begin >> dash >> end &&
        dash == '-') {
      is_inside = begin <= address && address < end;
    }
    if (is_inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(HugePagesTest, AreAskedForWhereTheSystemHasThem) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "the system has no huge pages";
  }
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(kHugePageBytes, 2 * kHugePageBytes), std::free);
  auto* const data = static_cast<std::byte*>(memory.get());
  data[0] = std::byte{7};
  EXPECT_EQ(FlagsOf(data).find(" hg "), std::string::npos);
  AdviseHugePages(data, kHugePageBytes);
  EXPECT_NE(FlagsOf(data).find(" hg "), std::string::npos);
  EXPECT_EQ(FlagsOf(data + kHugePageBytes).find(" hg "), std::string::npos);
  EXPECT_EQ(data[0], std::byte{7});
}

}  // namespace
}  // namespace strata
