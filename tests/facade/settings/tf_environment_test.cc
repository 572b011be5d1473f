#include "strata/facade/settings/tf_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

using Variables = std::map<std::string, std::string>;

TfEnvironment With(const Variables& variables,
                   const std::string& options = "") {
  return WithTfEnvironment(
      Options::Parse(options), [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found != variables.end() ? found->second.c_str() : nullptr;
      });
}

// Every option as "name=value". No value of these tests has a comma.
std::vector<std::string> Settings(const Options& options) {
  std::vector<std::string> settings;
  std::istringstream text(ToString(options));
  for (std::string one; std::getline(text, one, ',');) settings.push_back(one);
  return settings;
}

// Meaning of a value of a variable: one of the options that it sets; null: the
// value is an error.
struct Meaning {
  const char* variable;
  const char* text;
  const char* setting;
};
std::ostream& operator<<(std::ostream& out, const Meaning& row) {
  return out << row.variable << "=" << row.text;
}

// tf_bfc R59, R61, R62: the table of §1j.
constexpr Meaning kMeanings[] = {
    {"TF_FORCE_GPU_ALLOW_GROWTH", "true", "bfc_allow_growth=true"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "false", "bfc_allow_growth=false"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "True", nullptr},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "1", nullptr},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "true", "bfc_garbage_collection=true"},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "false",
     "bfc_garbage_collection=false"},
    {"TF_ENABLE_GPU_GARBAGE_COLLECTION", "yes", nullptr},
    {"TF_GPU_ALLOCATOR", "BFC", "allocator_strategy=bfc"},
    {"TF_GPU_ALLOCATOR", "cuda_malloc", "allocator_strategy=direct"},
    {"TF_GPU_ALLOCATOR", "cuda_malloc_async",
     "allocator_strategy=cuda_malloc_async"},
    {"TF_GPU_ALLOCATOR", "memory_guard", "strata_guard=true"},
    {"TF_GPU_ALLOCATOR", "memory_guard", "strata_guard_fill=nan"},
    {"TF_GPU_ALLOCATOR", "cuda", nullptr},
    {"TF_BFC_MEMORY_DUMP", "/tmp/oom", "bfc_memory_map_prefix=/tmp/oom"},
    {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "512", "bfc_system_memory_in_mb=512"},
    {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "much", nullptr},
    {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "-1", nullptr},
    {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "18446744073709551615", nullptr},
    {"TF_FORCE_UNIFIED_MEMORY", "true", "use_cuda_managed_memory=true"},
    {"TF_FORCE_UNIFIED_MEMORY", "TRUE", nullptr},
    {"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "1048576",
     "cuda_malloc_async_preallocate=1048576"},
    {"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "-1", nullptr},
    {"TF_DETERMINISTIC_ALLOCATOR", "1", "cuda_malloc_async_deterministic=true"},
    {"TF_DETERMINISTIC_ALLOCATOR", "maybe", nullptr},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "default", "allocator_strategy=bfc"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "platform", "allocator_strategy=direct"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async",
     "allocator_strategy=cuda_malloc_async"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "vmm", "allocator_strategy=virtual_memory"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "malloc", nullptr},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "False", "bfc_allow_growth=true"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "true", "bfc_allow_growth=false"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "no", nullptr},
    {"XLA_CLIENT_MEM_FRACTION", "0.75-0.85", "bfc_memory_fraction=0.75-0.85"},
    {"XLA_CLIENT_MEM_FRACTION", "75%", nullptr},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", ".5", "bfc_memory_fraction=.5"},
};

std::vector<Meaning> Meanings(bool are_errors) {
  std::vector<Meaning> chosen;
  for (const Meaning& row : kMeanings) {
    if ((row.setting == nullptr) == are_errors) chosen.push_back(row);
  }
  return chosen;
}

class TfEnvironmentMeaningTest : public ::testing::TestWithParam<Meaning> {};

TEST_P(TfEnvironmentMeaningTest, SetsItsOption) {
  const TfEnvironment result = With({{GetParam().variable, GetParam().text}});
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_THAT(Settings(result.options), Contains(GetParam().setting));
}

INSTANTIATE_TEST_SUITE_P(All, TfEnvironmentMeaningTest,
                         ::testing::ValuesIn(Meanings(/*are_errors=*/false)));

class TfEnvironmentBadTextTest : public ::testing::TestWithParam<Meaning> {};

// The error names the variable and the value. The options do not change.
TEST_P(TfEnvironmentBadTextTest, IsAnErrorThatChangesNothing) {
  const Options before;
  const TfEnvironment result = With({{GetParam().variable, GetParam().text}});
  EXPECT_THAT(
      result.errors,
      ElementsAre(AllOf(HasSubstr(GetParam().variable),
                        HasSubstr("'" + std::string(GetParam().text) + "'"))));
  EXPECT_THAT(result.changes, IsEmpty());
  EXPECT_EQ(ToString(result.options), ToString(before));
}

INSTANTIATE_TEST_SUITE_P(All, TfEnvironmentBadTextTest,
                         ::testing::ValuesIn(Meanings(/*are_errors=*/true)));

TEST(TfEnvironmentTest, WithoutVariablesNothingChanges) {
  const TfEnvironment result = With({{"TF_GPU_ALLOCATOR", ""}});
  EXPECT_EQ(ToString(result.options), ToString(Options()));
  EXPECT_THAT(result.changes, IsEmpty());
  EXPECT_THAT(result.errors, IsEmpty());
}

TEST(TfEnvironmentTest, R62TellsOfAnOptionOnlyIfItChanges) {
  EXPECT_THAT(With({{"TF_BFC_MEMORY_DUMP", "new"}}, "bfc_memory_map_prefix=old")
                  .changes,
              ElementsAre("TF_BFC_MEMORY_DUMP=new: bfc_memory_map_prefix=new"));
  EXPECT_THAT(With({{"TF_BFC_MEMORY_DUMP", "old"}}, "bfc_memory_map_prefix=old")
                  .changes,
              IsEmpty());
}

// The other variables take effect although one is wrong.
TEST(TfEnvironmentTest, R62AnErrorLeavesTheOtherVariablesAlone) {
  const TfEnvironment result =
      With({{"TF_GPU_ALLOCATOR", "no such"}, {"TF_BFC_MEMORY_DUMP", "oom"}});
  EXPECT_EQ(result.errors.size(), 1U);
  EXPECT_EQ(result.options.strategy.bfc_memory_map_prefix, "oom");
}

// tf_bfc R59: the variable overrides the fraction.
TEST(TfEnvironmentTest, R59SystemMemoryTakesThePlaceOfAFraction) {
  const TfEnvironment result = With({{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "512"}},
                                    "bfc_memory_fraction=0.75");
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.options.strategy.bfc_system_memory_in_mb, 512U);
  EXPECT_EQ(result.options.strategy.bfc_memory_fraction, "");
}

TEST(TfEnvironmentTest, R61FractionTakesThePlaceOfSystemMemory) {
  const TfEnvironment result = With({{"XLA_CLIENT_MEM_FRACTION", "0.75"}},
                                    "bfc_system_memory_in_mb=512");
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(result.options.strategy.bfc_system_memory_in_mb, 0U);
  EXPECT_EQ(result.options.strategy.bfc_memory_fraction, "0.75");
}

// tf_bfc R62: "both set = error".
TEST(TfEnvironmentTest, R62BothNamesOfTheFractionAreAnError) {
  EXPECT_THAT(
      [] {
        With({{"XLA_CLIENT_MEM_FRACTION", "0.5"},
              {"XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5"}});
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("XLA_CLIENT_MEM_FRACTION"),
                HasSubstr("XLA_PYTHON_CLIENT_MEM_FRACTION"))));
}

TEST(TfEnvironmentTest, NamesTwoVariablesThatContradictEachOther) {
  for (const Variables& pair :
       std::vector<Variables>{{{"TF_FORCE_GPU_ALLOW_GROWTH", "true"},
                               {"XLA_PYTHON_CLIENT_PREALLOCATE", "true"}},
                              {{"TF_GPU_ALLOCATOR", "cuda_malloc"},
                               {"XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"}},
                              {{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "100"},
                               {"XLA_CLIENT_MEM_FRACTION", "0.5"}},
                              // They set different options.
                              {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"},
                               {"TF_FORCE_UNIFIED_MEMORY", "1"}}}) {
    EXPECT_THAT([&] { With(pair); }, ThrowsMessage<std::invalid_argument>(AllOf(
                                         HasSubstr(pair.begin()->first),
                                         HasSubstr(pair.rbegin()->first))));
  }
}

TEST(TfEnvironmentTest, TwoVariablesMayAgree) {
  const TfEnvironment result = With({{"TF_FORCE_GPU_ALLOW_GROWTH", "true"},
                                     {"XLA_PYTHON_CLIENT_PREALLOCATE", "0"},
                                     {"TF_GPU_ALLOCATOR", "BFC"},
                                     {"XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"}});
  EXPECT_TRUE(result.options.strategy.bfc_allow_growth);
  EXPECT_EQ(result.options.Strategy(), "bfc");
}

// An alias would silently override the variable.
TEST(TfEnvironmentTest, AnAliasThatAsksForAnotherStrategyIsAnError) {
  const TfEnvironment result =
      With({{"TF_GPU_ALLOCATOR", "BFC"}}, "use_system_allocator");
  EXPECT_THAT(result.errors, ElementsAre(AllOf(HasSubstr("TF_GPU_ALLOCATOR"),
                                               HasSubstr("alias"))));
  EXPECT_EQ(result.options.Strategy(), "direct");
}

TEST(TfEnvironmentTest, TheDocumentTellsOfEveryVariable) {
  std::ifstream file(STRATA_SOURCE_DIR "/docs/rules/bfc_environment.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const std::string& variable : TfEnvironmentVariables()) {
    EXPECT_THAT(text.str(), HasSubstr("`" + variable + "`"));
  }
  for (const std::string variable :  // tf_bfc R62: the variables not read here
       {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_CUDA_HOST_MEM_LIMIT_IN_MB",
        "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"}) {
    EXPECT_THAT(text.str(), HasSubstr("`" + variable + "`"));
  }
}

// W18: variables for another framework have no effect.
class TfEnvironmentOfProcessTest : public FacadeFixture {
 protected:
  TfEnvironmentOfProcessTest() {
    setenv("TF_GPU_ALLOCATOR", "cuda_malloc", /*overwrite=*/1);
  }
  ~TfEnvironmentOfProcessTest() override { unsetenv("TF_GPU_ALLOCATOR"); }
};

TEST_F(TfEnvironmentOfProcessTest, W18IsReadOnlyIfAnOptionSaysSo) {
  EXPECT_EQ(Build().options().Strategy(), "auto");
  EXPECT_EQ(Build("strata_tf_environment").options().Strategy(), "direct");
  EXPECT_THAT(facade().Layers(DevicePlace(0)), Contains("direct"));
}

}  // namespace
}  // namespace strata
