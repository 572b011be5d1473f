// Two facades on one device, as in two programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "strata/allocation/error.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class BfcSharingTest : public FacadeFixture {
 protected:
  static std::string Bfc(const std::string& more) {
    return "allocator_strategy=bfc," + more;
  }
  // The facade of the other program.
  AllocatorFacade& BuildOther(const std::string& options) {
    other_ =
        std::make_unique<AllocatorFacade>(Options::Parse(options), platform_);
    return *other_;
  }

  std::unique_ptr<AllocatorFacade> other_;
};

// tf_bfc R15, R61: the purpose of growth.
TEST_F(BfcSharingTest, WithGrowthBothHaveWhatTheyNeed) {
  AllocatorFacade& one = Build(Bfc("bfc_allow_growth=true"));
  AllocatorFacade& two = BuildOther(Bfc("bfc_allow_growth=true"));
  AllocationPtr a = one.Alloc(kPlace, Mebibytes(10));
  AllocationPtr b = two.Alloc(kPlace, Mebibytes(10));
  EXPECT_EQ(one.GetStats(kPlace).reserved_bytes, Mebibytes(16));
  EXPECT_EQ(two.GetStats(kPlace).reserved_bytes, Mebibytes(16));
  b.reset();
  other_.reset();
}

// tf_bfc W2: the first program that allocates gets all memory.
TEST_F(BfcSharingTest, WithoutGrowthTheFirstOneLeavesNothing) {
  AllocatorFacade& one = Build(Bfc("bfc_allow_growth=false"));
  AllocatorFacade& two = BuildOther(Bfc("bfc_allow_growth=false"));
  AllocationPtr a = one.Alloc(kPlace, 1);
  EXPECT_EQ(one.GetStats(kPlace).reserved_bytes, kMemoryBytes);
  EXPECT_THROW(two.Alloc(kPlace, 1), OutOfMemory);
  EXPECT_EQ(two.GetStats(kPlace).reserved_bytes, 0U);
  other_.reset();
}

// Equal options work for both, because each fraction is a separate part.
TEST_F(BfcSharingTest, R61FractionsLeaveEachOtherTheirPart) {
  const std::string half =
      Bfc("bfc_allow_growth=false,bfc_memory_fraction=0.5");
  AllocatorFacade& one = Build(half);
  AllocatorFacade& two = BuildOther(half);
  AllocationPtr a = one.Alloc(kPlace, 1);
  AllocationPtr b = two.Alloc(kPlace, 1);
  EXPECT_EQ(one.GetStats(kPlace).reserved_bytes, kMemoryBytes / 2);
  EXPECT_EQ(two.GetStats(kPlace).reserved_bytes, kMemoryBytes / 2);
  b.reset();
  other_.reset();
}

// tf_bfc R18: without growth, a tenth less at each step, down to the rest of
// the device.
TEST_F(BfcSharingTest, R18TheSecondOneTakesWhatTheFirstOneLeft) {
  AllocatorFacade& one = Build(Bfc("bfc_allow_growth=true"));
  AllocatorFacade& two = BuildOther(Bfc("bfc_allow_growth=false"));
  AllocationPtr a = one.Alloc(kPlace, Mebibytes(20));  // a region of 32 MiB
  AllocationPtr b = two.Alloc(kPlace, 1);
  const std::size_t taken = two.GetStats(kPlace).reserved_bytes;
  EXPECT_LE(taken, Mebibytes(32));
  EXPECT_GT(taken, Mebibytes(28));
  b.reset();
  other_.reset();
}

TEST_F(BfcSharingTest, WhatOneHasIdleTheOtherCanHave) {
  AllocatorFacade& one = Build(Bfc("bfc_allow_growth=true"));
  AllocatorFacade& two = BuildOther(Bfc("bfc_allow_growth=true"));
  one.Alloc(kPlace, Mebibytes(40)).reset();
  EXPECT_EQ(one.GetStats(kPlace).reserved_bytes, kMemoryBytes);
  EXPECT_NE(two.Alloc(kPlace, Mebibytes(40)), nullptr);
  EXPECT_EQ(one.GetStats(kPlace).reserved_bytes, 0U);
  other_.reset();
}

TEST_F(BfcSharingTest, WhatOneReleasesTheOtherCanHave) {
  const std::string apart = "bfc_allow_growth=true,strata_share_idle=false";
  AllocatorFacade& one = Build(Bfc(apart));
  AllocatorFacade& two = BuildOther(Bfc(apart));
  one.Alloc(kPlace, Mebibytes(40)).reset();
  EXPECT_THROW(two.Alloc(kPlace, Mebibytes(40)), OutOfMemory);
  EXPECT_EQ(one.Release(kPlace), kMemoryBytes);
  EXPECT_NE(two.Alloc(kPlace, Mebibytes(40)), nullptr);
  other_.reset();
}

}  // namespace
}  // namespace strata
