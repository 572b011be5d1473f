#include "strata/strategy/virtual_memory/vmm_policy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"

namespace strata {
namespace {

TEST(VmmPolicyTest, HandlesShrinkWithTheRoom) {
  const VmmPolicy policy{VirtualMemoryOptions()};
  EXPECT_EQ(policy.HandleBytes(Gibibytes(80), 0), Mebibytes(64));
  EXPECT_EQ(policy.HandleBytes(Gibibytes(72), 0), Mebibytes(64));
  EXPECT_EQ(policy.HandleBytes(Gibibytes(36), 0), Mebibytes(16));
  EXPECT_EQ(policy.HandleBytes(Gibibytes(7), 0), Mebibytes(2));
  EXPECT_EQ(policy.HandleBytes(0, 0), Mebibytes(2));
}

TEST(VmmPolicyTest, LargeGrowthsNeedFewHandlesWithoutRoom) {
  const VmmPolicy policy{VirtualMemoryOptions()};
  EXPECT_EQ(policy.HandleBytes(Gibibytes(7), Gibibytes(1)), Mebibytes(2));
  EXPECT_EQ(policy.HandleBytes(Gibibytes(7), Gibibytes(6)), Mebibytes(8));
  EXPECT_EQ(policy.HandleBytes(Gibibytes(7), Gibibytes(99)), Mebibytes(64));
}

TEST(VmmPolicyTest, TheOptionBoundsHandles) {
  VirtualMemoryOptions options;
  options.vmm_handle_max_bytes = Mebibytes(9);
  EXPECT_EQ(VmmPolicy(options).HandleBytes(Gibibytes(80), Gibibytes(64)),
            Mebibytes(8));
}

TEST(VmmPolicyTest, AGrowthCreatesSomeMoreWhereThereIsRoom) {
  EXPECT_EQ(VmmPolicy::QuantumBytes(Mebibytes(64), Gibibytes(80), 0),
            Mebibytes(20));
  EXPECT_EQ(VmmPolicy::QuantumBytes(Mebibytes(2), Mebibytes(1), Gibibytes(80)),
            Mebibytes(2));
  EXPECT_EQ(
      VmmPolicy::QuantumBytes(Mebibytes(16), Gibibytes(40), Gibibytes(32)),
      Mebibytes(128));
}

TEST(VmmPolicyTest, RangesDouble) {
  EXPECT_EQ(VmmPolicy::RangeBytes(Gibibytes(80), 0, Mebibytes(1), false),
            Gibibytes(10));
  EXPECT_EQ(
      VmmPolicy::RangeBytes(Gibibytes(80), Gibibytes(10), Mebibytes(1), false),
      Gibibytes(20));
  EXPECT_EQ(VmmPolicy::RangeBytes(Gibibytes(80), 0, Kibibytes(1), true),
            Mebibytes(1280));
  EXPECT_EQ(VmmPolicy::RangeBytes(Mebibytes(64), 0, Mebibytes(61), false),
            Mebibytes(66));
}

// All held bytes were in use at the peak.
VmmPolicy::Held Used(std::size_t bytes) { return {bytes, bytes}; }

TEST(VmmPolicyTest, LazyNeverPrefersFreeHandles) {
  VirtualMemoryOptions options;
  options.vmm_remap = "lazy";
  const VmmPolicy policy(options);
  EXPECT_FALSE(policy.PrefersFree(1, Gibibytes(80), Used(0), 0));
}

TEST(VmmPolicyTest, TightAlwaysPrefersFreeHandles) {
  VirtualMemoryOptions options;
  options.vmm_remap = "tight";
  const VmmPolicy policy(options);
  EXPECT_TRUE(policy.PrefersFree(1, 0, Used(Gibibytes(80)), Gibibytes(1)));
}

TEST(VmmPolicyTest, TheDialCreatesForCredit) {
  const VmmPolicy policy{VirtualMemoryOptions()};
  EXPECT_EQ(policy.CreditFor(Mebibytes(8)), Mebibytes(2));
  EXPECT_TRUE(policy.PrefersFree(Mebibytes(4), Gibibytes(70),
                                 Used(Gibibytes(10)), Mebibytes(2)));
  EXPECT_FALSE(policy.PrefersFree(Mebibytes(2), Gibibytes(70),
                                  Used(Gibibytes(10)), Mebibytes(2)));
  // A stream moves with 2.4 times the held bytes of room, not with less.
  EXPECT_TRUE(
      policy.PrefersFree(Mebibytes(4), Gibibytes(25), Used(Gibibytes(10)), 0));
  EXPECT_FALSE(
      policy.PrefersFree(Mebibytes(4), Gibibytes(23), Used(Gibibytes(10)), 0));
}

TEST(VmmPolicyTest, CreditBuysLessBesideAmpleFreeMemory) {
  const VmmPolicy policy{VirtualMemoryOptions()};
  const VmmPolicy::Held few = {Gibibytes(17) - Mebibytes(2), Gibibytes(16)};
  const VmmPolicy::Held ample = {Gibibytes(17) + 1, Gibibytes(16)};
  EXPECT_EQ(VmmPolicy::PriceOf(Mebibytes(2), few), Mebibytes(2));
  EXPECT_EQ(VmmPolicy::PriceOf(Mebibytes(2), ample), Mebibytes(8));
  EXPECT_FALSE(
      policy.PrefersFree(Mebibytes(2), Gibibytes(60), few, Mebibytes(2)));
  EXPECT_TRUE(
      policy.PrefersFree(Mebibytes(4), Gibibytes(60), few, Mebibytes(4)));
  // There, a quarter of the held bytes is room enough for the dial.
  EXPECT_TRUE(policy.PrefersFree(Mebibytes(2), Gibibytes(5), ample, 0));
  EXPECT_FALSE(policy.PrefersFree(Mebibytes(2), Gibibytes(4), ample, 0));
}

TEST(VmmPolicyTest, AStreamThatMovesOnWithoutANewPeakCreates) {
  const VmmPolicy policy{VirtualMemoryOptions()};
  const auto moves = [&](std::size_t moved_bytes, std::size_t moves) {
    return policy.PrefersFree(
        Mebibytes(2), Gibibytes(60),
        {Gibibytes(12), Gibibytes(12), moved_bytes, moves}, 0);
  };
  EXPECT_TRUE(moves(0, 0));
  // Few large moves, or many small ones.
  EXPECT_TRUE(moves(Gibibytes(2), 1));
  EXPECT_FALSE(moves(Gibibytes(3), 1));
  EXPECT_TRUE(moves(Mebibytes(8), 4));
  EXPECT_FALSE(moves(Gibibytes(1), 4));
  EXPECT_FALSE(moves(Mebibytes(8), 5));
}

TEST(VmmPolicyTest, ASettledStreamLendsUntilItHasCreatedATwelfth) {
  VmmPolicy::Held held = Used(Gibibytes(12));
  held.moved_bytes = Gibibytes(4);
  held.created_while_lent_bytes = Gibibytes(1);
  EXPECT_TRUE(VmmPolicy::MayLend(held));
  ++held.created_while_lent_bytes;
  EXPECT_FALSE(VmmPolicy::MayLend(held));
  // A new peak.
  held.moved_bytes = 0;
  EXPECT_TRUE(VmmPolicy::MayLend(held));
}

TEST(VmmPolicyTest, WrongOptionsAreNamed) {
  const auto message = [](const VirtualMemoryOptions& options) {
    try {
      const VmmPolicy policy(options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* dial : {"", "0", "-1", "often", "4x"}) {
    VirtualMemoryOptions options;
    options.vmm_remap = dial;
    EXPECT_NE(message(options).find("strata_vmm_remap"), std::string::npos)
        << dial;
  }
  VirtualMemoryOptions options;
  options.vmm_handle_max_bytes = Mebibytes(2) - 1;
  EXPECT_NE(message(options).find("strata_vmm_handle_max"), std::string::npos);
}

}  // namespace
}  // namespace strata
