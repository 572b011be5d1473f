// The strategy for host memory (tf_bfc.md §2, ProcessState).

#include "strata/facade/settings/host_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The variables that a test sets. All others are unset.
using Variables = std::map<std::string, std::string>;

EnvironmentLookup LookupOf(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

class HostStrategyTest : public ::testing::Test {
 protected:
  HostStrategy Host(const Variables& variables = {}) const {
    return StrategyOfHost(options_, is_numa_, has_visitors_,
                          LookupOf(variables));
  }
  HostStrategy Pinned(const Variables& variables = {},
                      bool is_stream_safe = true) const {
    return StrategyOfPinned(options_, is_stream_safe, LookupOf(variables));
  }
  std::string ErrorOf(const Variables& variables) const {
    try {
      Host(variables);
      Pinned(variables);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  HostOptions options_;
  bool is_numa_ = false;
  bool has_visitors_ = false;
};

TEST_F(HostStrategyTest, IsPlainByDefault) {
  EXPECT_EQ(Host(), (HostStrategy{"direct", 0}));
}

// "else PoolAllocator if NUMA or visitors".
TEST_F(HostStrategyTest, IsAPoolOnANumaNodeAndWithVisitors) {
  is_numa_ = true;
  EXPECT_EQ(Host().name, "pool");
  is_numa_ = false;
  has_visitors_ = true;
  EXPECT_EQ(Host().name, "pool");
}

// "BFC if env".
TEST_F(HostStrategyTest, IsBfcIfTheHeardEnvironmentSaysSo) {
  options_.tf_environment = true;
  for (const char* yes : {"1", "true", "TRUE"}) {
    EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", yes}}).name, "bfc") << yes;
  }
  is_numa_ = true;
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", "1"}}).name, "bfc");
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", "0"}}).name, "pool");
  is_numa_ = false;
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", "False"}}).name, "direct");
}

// §1j: TF_CPU_ALLOCATOR_USE_BFC is "true iff visitors are registered".
TEST_F(HostStrategyTest, VisitorsAloneMeanBfcInTheHeardEnvironment) {
  options_.tf_environment = true;
  has_visitors_ = true;
  EXPECT_EQ(Host().name, "bfc");
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", "0"}}).name, "pool");
}

TEST_F(HostStrategyTest, TheEnvironmentIsNotHeardUnasked) {
  const Variables variables = {{"TF_CPU_ALLOCATOR_USE_BFC", "1"},
                               {"TF_CPU_BFC_MEM_LIMIT_IN_MB", "7"},
                               {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "7"}};
  EXPECT_EQ(Host(variables), (HostStrategy{"direct", 0}));
  EXPECT_EQ(Pinned(variables), (HostStrategy{"auto_growth", 0}));
}

// §1j: 2^16 MiB = 64 GiB unless TF_CPU_BFC_MEM_LIMIT_IN_MB sets another limit.
TEST_F(HostStrategyTest, TheEnvironmentBoundsBfc) {
  options_.tf_environment = true;
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", "1"}}).limit_bytes,
            Gibibytes(64));
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", "1"},
                  {"TF_CPU_BFC_MEM_LIMIT_IN_MB", "512"}})
                .limit_bytes,
            Mebibytes(512));
  EXPECT_EQ(Host({{"TF_CPU_BFC_MEM_LIMIT_IN_MB", "512"}}).limit_bytes, 0U)
      << "it is the limit of bfc";
}

// §1j: 2^17 MiB = 128 GiB; the older variable is used if the newer one is
// unset.
TEST_F(HostStrategyTest, TheEnvironmentBoundsPinnedMemory) {
  options_.tf_environment = true;
  EXPECT_EQ(Pinned().limit_bytes, Gibibytes(128));
  EXPECT_EQ(Pinned({{"TF_CUDA_HOST_MEM_LIMIT_IN_MB", "5"}}).limit_bytes,
            Mebibytes(5));
  EXPECT_EQ(Pinned({{"TF_CUDA_HOST_MEM_LIMIT_IN_MB", "5"},
                    {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "6"}})
                .limit_bytes,
            Mebibytes(6));
}

TEST_F(HostStrategyTest, WhatAnOptionSaysWins) {
  options_.tf_environment = true;
  options_.strategy = "auto_growth";
  options_.limit_bytes = 100;
  options_.pinned_strategy = "direct";
  options_.pinned_limit_bytes = 200;
  has_visitors_ = is_numa_ = true;
  const Variables variables = {{"TF_CPU_ALLOCATOR_USE_BFC", "1"},
                               {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "6"}};
  EXPECT_EQ(Host(variables), (HostStrategy{"auto_growth", 100}));
  EXPECT_EQ(Pinned(variables), (HostStrategy{"direct", 200}));
}

// Like the variables for devices.
TEST_F(HostStrategyTest, AnEmptyVariableIsNotSet) {
  options_.tf_environment = true;
  EXPECT_EQ(Host({{"TF_CPU_ALLOCATOR_USE_BFC", ""}}).name, "direct");
  EXPECT_EQ(Pinned({{"TF_GPU_HOST_MEM_LIMIT_IN_MB", ""},
                    {"TF_CUDA_HOST_MEM_LIMIT_IN_MB", "5"}})
                .limit_bytes,
            Mebibytes(5));
}

TEST_F(HostStrategyTest, NamesAVariableWhoseValueIsWrong) {
  options_.tf_environment = true;
  EXPECT_THAT(ErrorOf({{"TF_CPU_ALLOCATOR_USE_BFC", "maybe"}}),
              AllOf(HasSubstr("TF_CPU_ALLOCATOR_USE_BFC"), HasSubstr("maybe")));
  for (const char* wrong : {"0", "-1", "1x", "99999999999999999999"}) {
    for (const char* name :
         {"TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_CUDA_HOST_MEM_LIMIT_IN_MB"}) {
      EXPECT_THAT(ErrorOf({{name, wrong}}), HasSubstr(name)) << wrong;
    }
    EXPECT_THAT(ErrorOf({{"TF_CPU_ALLOCATOR_USE_BFC", "1"},
                         {"TF_CPU_BFC_MEM_LIMIT_IN_MB", wrong}}),
                HasSubstr("TF_CPU_BFC_MEM_LIMIT_IN_MB"));
  }
}

// cuda_semantics.md M7: without that layer, nothing waits for work that uses a
// freed block, so no block may be cached.
TEST_F(HostStrategyTest, PinnedMemoryIsPooledOnlyWhereMarksAreHonoured) {
  EXPECT_EQ(Pinned({}, /*is_stream_safe=*/true).name, "auto_growth");
  EXPECT_EQ(Pinned({}, /*is_stream_safe=*/false).name, "direct");
}

TEST_F(HostStrategyTest, TheOldSwitchMeansAutoGrowth) {
  options_.use_auto_growth_pinned_allocator = true;
  EXPECT_EQ(Pinned({}, /*is_stream_safe=*/false).name, "auto_growth");
}

}  // namespace
}  // namespace strata
