#include "strata/platform/host/processor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace strata {
namespace {

TEST(ProcessorTest, OwnedLocksAreForThoseThatWaitAtAnExchange) {
  EXPECT_TRUE(IsFasterWithOwnedLocks({"GenuineIntel", 6}));
  EXPECT_TRUE(IsFasterWithOwnedLocks({"GenuineIntel", 19}));
  EXPECT_TRUE(IsFasterWithOwnedLocks({"AuthenticAMD", 26}));   // Zen 5
  EXPECT_FALSE(IsFasterWithOwnedLocks({"AuthenticAMD", 25}));  // Zen 3, Zen 4
  EXPECT_FALSE(IsFasterWithOwnedLocks({"HygonGenuine", 24}));
  EXPECT_FALSE(IsFasterWithOwnedLocks({"", 0}));
}

// The field `name` of the first processor in the system's report.
std::string FromSystem(const std::string& name) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with(name + "\t") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

TEST(ProcessorTest, KnowsTheOneItRunsOn) {
  const std::string vendor = FromSystem("vendor_id");
  const std::string family = FromSystem("cpu family");
  if (vendor.empty() || family.empty()) {
    EXPECT_FALSE(IsFasterWithOwnedLocks());
    GTEST_SKIP() << "no CPUID here";
  }
  EXPECT_EQ(IsFasterWithOwnedLocks(),
            IsFasterWithOwnedLocks(
                {vendor, static_cast<unsigned>(std::stoul(family))}));
}

}  // namespace
}  // namespace strata
