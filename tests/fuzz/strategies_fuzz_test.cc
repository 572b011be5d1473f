// The fuzz targets of the strategies, in every build: seeded bytes, and the
// inputs in tests/data/fuzz/.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/fuzz/strategy_program.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kPrograms = 200;
constexpr std::size_t kLongestProgram = 600;

class StrategiesFuzzTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StrategiesFuzzTest, RandomProgramsDoWhatTheModelSays) {
  const std::uint64_t programs = StressOperations(kPrograms);
  std::mt19937_64 random(StressSeed());
  for (std::uint64_t i = 0; i < programs && !HasFailure(); ++i) {
    std::string bytes(3 + random() % kLongestProgram, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 256);
    SCOPED_TRACE("program " + std::to_string(i));
    RunStrategyProgram(GetParam(), bytes);
  }
}

TEST_P(StrategiesFuzzTest, KeptInputsDoWhatTheModelSays) {
  const std::filesystem::path folder =
      std::filesystem::path(STRATA_SOURCE_DIR) / "tests/data/fuzz" / GetParam();
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no inputs are kept for this strategy";
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    SCOPED_TRACE(path.string());
    RunStrategyProgram(GetParam(), bytes);
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, StrategiesFuzzTest,
                         ::testing::ValuesIn(StrategyNames()),
                         [](const auto& strategy) { return strategy.param; });

}  // namespace
}  // namespace strata
