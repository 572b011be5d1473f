#include "strata/facade/settings/option_aliases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(OptionAliasesTest, EachChoosesItsStrategy) {
  for (const StrategyAlias& alias : StrategyAliases()) {
    EXPECT_EQ(Options::Parse(alias.option).Strategy(), alias.strategy);
    EXPECT_EQ(Options::Parse(std::string(alias.option) + "=0").Strategy(),
              Options().allocator_strategy);
  }
}

TEST(OptionAliasesTest, EachIsAnOption) {
  for (const StrategyAlias& alias : StrategyAliases()) {
    Options options;
    options.Set(alias.option, "true");
    EXPECT_TRUE(options.*alias.member) << alias.option;
  }
}

TEST(OptionAliasesTest, EachContradictsEveryOtherStrategy) {
  for (const StrategyAlias& alias : StrategyAliases()) {
    for (const std::string& strategy : StrategyNames()) {
      std::string text = alias.option;
      text += " allocator_strategy=" + strategy;
      if (strategy == alias.strategy) {
        EXPECT_EQ(Options::Parse(text).Strategy(), strategy);
        continue;
      }
      EXPECT_THAT(ParseError(text),
                  AllOf(HasSubstr(alias.option),
                        HasSubstr("allocator_strategy=" + strategy)));
    }
  }
}

TEST(OptionAliasesTest, EachPairOfOtherMeaningContradictsItself) {
  for (const StrategyAlias& one : StrategyAliases()) {
    for (const StrategyAlias& other : StrategyAliases()) {
      const std::string text =
          std::string(one.option) + "," + std::string(other.option);
      if (std::string(one.strategy) == other.strategy) {
        EXPECT_EQ(Options::Parse(text).Strategy(), one.strategy);
        continue;
      }
      EXPECT_THAT(ParseError(text),
                  AllOf(HasSubstr(one.option), HasSubstr(other.option)));
    }
  }
}

// paddle.md §2: cuda_malloc_async excludes managed memory.
TEST(OptionAliasesTest, ManagedMemoryContradictsADriversPool) {
  EXPECT_THAT(
      ParseError("use_cuda_managed_memory,use_cuda_malloc_async_allocator"),
      AllOf(HasSubstr("use_cuda_managed_memory"),
            HasSubstr("use_cuda_malloc_async_allocator")));
  EXPECT_THAT(ParseError("use_cuda_managed_memory,"
                         "allocator_strategy=cuda_malloc_async"),
              AllOf(HasSubstr("use_cuda_managed_memory"),
                    HasSubstr("allocator_strategy=cuda_malloc_async")));
  EXPECT_EQ(Options::Parse("use_cuda_managed_memory").Strategy(),
            "auto_growth");
}

}  // namespace
}  // namespace strata
