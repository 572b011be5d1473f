#include "strata/allocation/decorators/aligned_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/block_flags.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class AlignedAllocatorTest : public ::testing::Test {
 protected:
  static std::uintptr_t AddressOf(const AllocationPtr& allocation) {
    return reinterpret_cast<std::uintptr_t>(allocation->data());
  }

  PoolPlace place_;
  std::shared_ptr<FailingAllocator> failing_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<CountingAllocator> below_ =
      std::make_shared<CountingAllocator>(failing_);
  AlignedAllocator aligned_{below_};
};

TEST_F(AlignedAllocatorTest, PassesThroughWhatTheUnderlyingPromises) {
  const AllocationPtr allocation = aligned_.Allocate(Request{1000, 512});
  EXPECT_EQ(below_->last_bytes(), 1000U);
  EXPECT_EQ(allocation->block()->offset_units, 0);
}

TEST_F(AlignedAllocatorTest, EveryAddressMeetsTheAlignmentAndTheSize) {
  LiveRanges ranges;
  std::vector<AllocationPtr> live;
  for (std::size_t alignment = 1024; alignment <= Mebibytes(4);
       alignment *= 2) {
    for (int i = 0; i < 3; ++i) {
      live.push_back(aligned_.Allocate(Request{1000, alignment}));
      EXPECT_EQ(AddressOf(live.back()) % alignment, 0U);
      EXPECT_GE(live.back()->size(), 1000U);
      EXPECT_LE(live.back()->base(), live.back()->data());
      EXPECT_EQ(live.back()->requested_bytes(), 1000U);
      EXPECT_TRUE(ranges.Add(*live.back()));
      EXPECT_EQ(IsPlain(*live.back()->block()),
                live.back()->block()->offset_bytes() == 0);
      // Not larger than the block of the layer below.
      EXPECT_EQ(live.back()->size() + live.back()->block()->offset_bytes(),
                below_->last_bytes());
    }
  }
}

TEST_F(AlignedAllocatorTest, ServesTheLargestAlignmentWithItsLargestOffset) {
  // The first frame begins at a multiple of 16 MiB, the next ones do not.
  const AllocationPtr first = aligned_.Allocate(Mebibytes(2));
  const AllocationPtr second = aligned_.Allocate(Request{1000, kMaxAlignment});
  EXPECT_EQ(AddressOf(second) % kMaxAlignment, 0U);
  EXPECT_GT(second->block()->offset_bytes(), 0U);
  EXPECT_EQ(below_->last_bytes(), 1000 + kMaxAlignment - 512);
}

TEST_F(AlignedAllocatorTest, FreesTheWholeBlock) {
  const AllocationPtr first = aligned_.Allocate(Mebibytes(2));
  AllocationPtr moved_up = aligned_.Allocate(Request{1000, kMaxAlignment});
  ASSERT_GT(moved_up->block()->offset_bytes(), 0U);
  EXPECT_FALSE(IsPlain(*moved_up->block()));
  moved_up.reset();
  EXPECT_EQ(below_->last_freed_offset(), 0U);
  EXPECT_FALSE(below_->last_freed_had(kBlockOffset));
  EXPECT_EQ(below_->live(), 1U);
}

TEST_F(AlignedAllocatorTest, HoldsNothingAfterTheFree) {
  aligned_.Allocate(Request{1000, kMaxAlignment}).reset();
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

TEST_F(AlignedAllocatorTest, AFailureTellsWhatTheCallerAsked) {
  failing_->Fail({1, 1});
  Failure failure;
  EXPECT_EQ(aligned_.AllocateOrNull(Request{1000, 4096, kNoRetry}, failure),
            nullptr);
  EXPECT_EQ(failure.requested_bytes, 1000U);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
}

TEST_F(AlignedAllocatorTest, ASizeThatOverflowsWithItsPaddingIsTooLarge) {
  Failure failure;
  EXPECT_EQ(aligned_.AllocateOrNull(Request{SIZE_MAX - 1000, 4096}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kTooLarge);
  EXPECT_EQ(failing_->calls(), 0U);
}

TEST_F(AlignedAllocatorTest, PassesTheFlagsOn) {
  const AllocationPtr allocation =
      aligned_.Allocate(Request{1000, 4096, kLongLived});
  EXPECT_EQ(below_->last_flags(), kLongLived);
}

}  // namespace
}  // namespace strata
