#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>

#include "strata/facade/options.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The switches of PaddlePaddle that stand for one value of allocator_strategy.
struct StrategyAlias {
  const char* option;
  bool Options::*member;
  const char* strategy;
};

constexpr std::array<StrategyAlias, 2> kAliases = {{
    {"use_system_allocator", &Options::use_system_allocator, "direct"},
    {"use_cuda_malloc_async_allocator",
     &Options::use_cuda_malloc_async_allocator, "cuda_malloc_async"},
}};

TEST(OptionAliasesTest, EachChoosesItsStrategy) {
  for (const StrategyAlias& alias : kAliases) {
    EXPECT_EQ(Options::Parse(alias.option).Strategy(), alias.strategy);
    EXPECT_EQ(Options::Parse(std::string(alias.option) + "=0").Strategy(),
              Options().allocator_strategy);
  }
}

TEST(OptionAliasesTest, EachIsAnOption) {
  for (const StrategyAlias& alias : kAliases) {
    Options options;
    options.Set(alias.option, "true");
    EXPECT_TRUE(options.*alias.member) << alias.option;
  }
}

TEST(OptionAliasesTest, EachContradictsEveryOtherStrategy) {
  for (const StrategyAlias& alias : kAliases) {
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
  for (const StrategyAlias& one : kAliases) {
    for (const StrategyAlias& other : kAliases) {
      if (&one == &other) continue;
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
  EXPECT_EQ(Options::Parse("use_cuda_managed_memory").Strategy(), "auto");
}

}  // namespace
}  // namespace strata
