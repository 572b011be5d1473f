#include "strata/facade/tf_environment.h"

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

// The value of one option, as ToString shows it.
std::string ValueOf(const Options& options, const std::string& name) {
  const std::string text = "," + ToString(options);
  const std::size_t at = text.find("," + name + "=");
  if (at == std::string::npos) return "no such option";
  const std::size_t start = at + name.size() + 2;
  return text.substr(start, text.find(',', start) - start);
}

// A variable, a text that it understands, and an option that it then sets.
struct Meaning {
  const char* variable;
  const char* text;
  const char* option;
  const char* value;
};
std::ostream& operator<<(std::ostream& out, const Meaning& row) {
  return out << row.variable << "=" << row.text;
}

class TfEnvironmentMeaningTest : public ::testing::TestWithParam<Meaning> {};

// tf_bfc R59, R61, R62: the table of §1j.
TEST_P(TfEnvironmentMeaningTest, SetsItsOption) {
  const TfEnvironment result = With({{GetParam().variable, GetParam().text}});
  EXPECT_THAT(result.errors, IsEmpty());
  EXPECT_EQ(ValueOf(result.options, GetParam().option), GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(
    All, TfEnvironmentMeaningTest,
    ::testing::Values(
        Meaning{"TF_FORCE_GPU_ALLOW_GROWTH", "true", "bfc_allow_growth",
                "true"},
        Meaning{"TF_FORCE_GPU_ALLOW_GROWTH", "false", "bfc_allow_growth",
                "false"},
        Meaning{"TF_ENABLE_GPU_GARBAGE_COLLECTION", "true",
                "bfc_garbage_collection", "true"},
        Meaning{"TF_ENABLE_GPU_GARBAGE_COLLECTION", "false",
                "bfc_garbage_collection", "false"},
        Meaning{"TF_GPU_ALLOCATOR", "BFC", "allocator_strategy", "bfc"},
        Meaning{"TF_GPU_ALLOCATOR", "cuda_malloc", "allocator_strategy",
                "direct"},
        Meaning{"TF_GPU_ALLOCATOR", "cuda_malloc_async", "allocator_strategy",
                "cuda_malloc_async"},
        Meaning{"TF_GPU_ALLOCATOR", "memory_guard", "strata_guard", "true"},
        Meaning{"TF_GPU_ALLOCATOR", "memory_guard", "strata_guard_fill", "nan"},
        Meaning{"TF_BFC_MEMORY_DUMP", "/tmp/oom", "bfc_memory_map_prefix",
                "/tmp/oom"},
        Meaning{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "512",
                "bfc_system_memory_in_mb", "512"},
        Meaning{"TF_FORCE_UNIFIED_MEMORY", "true", "use_cuda_managed_memory",
                "true"},
        Meaning{"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "1048576",
                "cuda_malloc_async_preallocate", "1048576"},
        Meaning{"TF_DETERMINISTIC_ALLOCATOR", "1",
                "cuda_malloc_async_deterministic", "true"},
        Meaning{"XLA_PYTHON_CLIENT_ALLOCATOR", "default", "allocator_strategy",
                "bfc"},
        Meaning{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform", "allocator_strategy",
                "direct"},
        Meaning{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async",
                "allocator_strategy", "cuda_malloc_async"},
        Meaning{"XLA_PYTHON_CLIENT_PREALLOCATE", "False", "bfc_allow_growth",
                "true"},
        Meaning{"XLA_PYTHON_CLIENT_PREALLOCATE", "true", "bfc_allow_growth",
                "false"},
        Meaning{"XLA_CLIENT_MEM_FRACTION", "0.75-0.85", "bfc_memory_fraction",
                "0.75-0.85"},
        Meaning{"XLA_PYTHON_CLIENT_MEM_FRACTION", ".5", "bfc_memory_fraction",
                ".5"}));

struct BadText {
  const char* variable;
  const char* text;
};
std::ostream& operator<<(std::ostream& out, const BadText& row) {
  return out << row.variable << "=" << row.text;
}

class TfEnvironmentBadTextTest : public ::testing::TestWithParam<BadText> {};

// tf_bfc R62: an error that names variable and text; options are kept.
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

INSTANTIATE_TEST_SUITE_P(
    All, TfEnvironmentBadTextTest,
    ::testing::Values(BadText{"TF_FORCE_GPU_ALLOW_GROWTH", "True"},
                      BadText{"TF_FORCE_GPU_ALLOW_GROWTH", "1"},
                      BadText{"TF_ENABLE_GPU_GARBAGE_COLLECTION", "yes"},
                      BadText{"TF_GPU_ALLOCATOR", "cuda"},
                      BadText{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "much"},
                      BadText{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "-1"},
                      BadText{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
                              "18446744073709551615"},
                      BadText{"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "-1"},
                      BadText{"TF_DETERMINISTIC_ALLOCATOR", "maybe"},
                      BadText{"TF_FORCE_UNIFIED_MEMORY", "TRUE"},
                      BadText{"XLA_PYTHON_CLIENT_ALLOCATOR", "vmm"},
                      BadText{"XLA_PYTHON_CLIENT_ALLOCATOR", "malloc"},
                      BadText{"XLA_PYTHON_CLIENT_PREALLOCATE", "no"},
                      BadText{"XLA_CLIENT_MEM_FRACTION", "75%"}));

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

// The other variables hold although one is wrong.
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
                               {"XLA_CLIENT_MEM_FRACTION", "0.5"}}}) {
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
  EXPECT_EQ(ValueOf(result.options, "bfc_allow_growth"), "true");
  EXPECT_EQ(result.options.Strategy(), "bfc");
}

// An alias would quietly win over what the variable asks for.
TEST(TfEnvironmentTest, AnAliasThatAsksForAnotherStrategyIsAnError) {
  const TfEnvironment result =
      With({{"TF_GPU_ALLOCATOR", "BFC"}}, "use_system_allocator");
  EXPECT_THAT(result.errors, ElementsAre(AllOf(HasSubstr("TF_GPU_ALLOCATOR"),
                                               HasSubstr("alias"))));
  EXPECT_EQ(result.options.Strategy(), "direct");
}

TEST(TfEnvironmentTest, TheDocumentTellsOfEveryVariable) {
  std::ifstream file(STRATA_SOURCE_DIR "/docs/bfc_environment.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const std::string& variable : TfEnvironmentVariables()) {
    EXPECT_THAT(text.str(), HasSubstr("`" + variable + "`"));
  }
  for (const std::string variable :  // tf_bfc R62: those not read here
       {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_CUDA_HOST_MEM_LIMIT_IN_MB",
        "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"}) {
    EXPECT_THAT(text.str(), HasSubstr("`" + variable + "`"));
  }
}

// W18: variables that are meant for another framework surprise nobody.
class TfEnvironmentOfProcessTest : public FacadeFixture {
 protected:
  TfEnvironmentOfProcessTest() {
    setenv("TF_GPU_ALLOCATOR", "cuda_malloc", /*overwrite=*/1);
  }
  ~TfEnvironmentOfProcessTest() override { unsetenv("TF_GPU_ALLOCATOR"); }
};

TEST_F(TfEnvironmentOfProcessTest, W18IsReadOnlyIfAnOptionSaysSo) {
  EXPECT_EQ(Build().options().Strategy(), "auto_growth");
  EXPECT_EQ(Build("strata_tf_environment").options().Strategy(), "direct");
  EXPECT_THAT(facade().Layers(DevicePlace(0)), ::testing::Contains("direct"));
}

}  // namespace
}  // namespace strata
