// Memory of pools, and memory behind several addresses (cuda_semantics.md
// §5.2, V8-V12).

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/platform/check/hazard_fixture.h"

namespace strata::check {
namespace {

class HazardPoolTest : public HazardFixture {};

// cuda_semantics P1, P2
TEST_F(HazardPoolTest, PoolMemoryIsThereBetweenItsOperations) {
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.Write(kPool, kBlock, kA);
  run_.Order(kEvent, kA, kB);
  run_.Write(kPool, kBlock, kB);
  run_.PoolFree(kPool, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardPoolTest, PoolMemoryBeforeItsAllocationIsFound) {
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.Write(kPool, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "use-before-alloc");
}

TEST_F(HazardPoolTest, PoolMemoryFreedBesideAUseIsFound) {
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.Order(kEvent, kA, kB);
  run_.Write(kPool, kBlock, kB);
  run_.PoolFree(kPool, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

TEST_F(HazardPoolTest, PoolMemoryUsedBehindItsFreeIsFound) {
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.PoolFree(kPool, kA);
  run_.Write(kPool, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// cuda_semantics R7, P4: the pool orders its own reuse.
TEST_F(HazardPoolTest, PoolMayGiveToOtherStreamsWhatItHas) {
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.Write(kPool, kBlock, kA);
  run_.PoolFree(kPool, kA);
  run_.PoolAlloc(kPool, kBlock, kB);
  run_.Write(kPool, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics H3, M6
TEST_F(HazardPoolTest, MemFreeOfPoolMemoryInUseIsFound) {
  run_.PoolAlloc(kPool, kBlock, kA);
  run_.Write(kPool, kBlock, kA);
  run_.MemFree(kPool);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

class HazardMappingTest : public HazardFixture {
 protected:
  static constexpr std::uint64_t kPage = 2 << 20;
  static constexpr std::uint64_t kLow = 0x10000000;
  static constexpr std::uint64_t kHigh = 0x20000000;

  HazardMappingTest() {
    run_.CreateMemory(0x51, kPage);
    run_.CreateMemory(0x52, kPage);
    run_.Map(kLow, kPage, 0x51);
  }
};

// T83, cuda_semantics V9
TEST_F(HazardMappingTest, AliasWithoutOrderIsFound) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Write(kLow, kBlock, kA);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "alias-incoherent");
}

TEST_F(HazardMappingTest, AliasInOrderIsClean) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Write(kLow, kBlock, kA);
  run_.Order(kEvent, kA, kB);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardMappingTest, AliasesThatOnlyReadAreClean) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Read(kLow, kBlock, kA);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// T75, cuda_semantics V8
TEST_F(HazardMappingTest, UnmapInUseIsFound) {
  run_.Write(kLow, kBlock, kA);
  run_.Unmap(kLow, kPage);
  EXPECT_EQ(run_.Kinds(), "unmap-in-use");
}

TEST_F(HazardMappingTest, UnmapBesideAUseThroughTheOtherAliasIsClean) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Write(kHigh, kBlock, kA);
  run_.Unmap(kLow, kPage);
  EXPECT_EQ(run_.Kinds(), "");
}

// Physical identity: one memory behind other addresses.
TEST_F(HazardMappingTest, BlockIsKnownAgainAtOtherAddresses) {
  run_.Map(kHigh, kPage, 0x51);
  run_.AllocWrite(kLow, kBlock, kA);
  run_.Free(kLow, 0);
  run_.Alloc(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// A use through one alias is no use through the other.
TEST_F(HazardMappingTest, UnmapUnderAUseInAFormerLifeIsFound) {
  run_.Map(kHigh, kPage, 0x51);
  run_.AllocWriteFree(kLow, kBlock, kA);
  run_.AllocWriteFree(kHigh, kBlock, kA);
  run_.Alloc(kHigh, kBlock, kA);
  run_.Unmap(kLow, kPage);
  EXPECT_EQ(run_.Kinds(), "unmap-in-use");
}

TEST_F(HazardMappingTest, OtherMemoryAtTheSameAddressesIsClean) {
  run_.Write(kLow, kBlock, kA);
  run_.Sync(kA);
  run_.Unmap(kLow, kPage);
  run_.Map(kLow, kPage, 0x52);
  run_.Write(kLow, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardMappingTest, MemoryOutlivesItsHandleWhileItIsMapped) {
  run_.Map(kHigh, kPage, 0x51);
  run_.ReleaseMemory(0x51);
  run_.Write(kLow, kBlock, kA);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "alias-incoherent");
}

// cuda_semantics V12
TEST_F(HazardMappingTest, RetainedHandleIsTheSameMemory) {
  run_.Add(DeviceCall::kRetainMemory, kLow, 0, 0x99);
  run_.Map(kHigh, kPage, 0x99);
  run_.Write(kLow, kBlock, kA);
  run_.Write(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "alias-incoherent");
}

}  // namespace
}  // namespace strata::check
