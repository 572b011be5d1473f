// The quarantine of the Guard layer: its content, and when blocks leave it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "strata/allocation/guard/guard_allocator.h"
#include "strata/tests/allocation/guard/guard_fixture.h"

namespace strata {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GuardQuarantineTest, TheQuarantineStaysWithinItsLimit) {
  GuardedOptions options;
  options.quarantine_bytes = Kibibytes(64);
  Guarded on(options);
  for (int i = 0; i < 100; ++i) {
    on.guard->Allocate(Kibibytes(3)).reset();
    EXPECT_LE(on.guard->quarantine_bytes(), Kibibytes(64));
  }
  EXPECT_GT(on.guard->quarantine_bytes(), Kibibytes(40));
  // Larger than the limit: it leaves at once.
  on.guard->Allocate(Kibibytes(100)).reset();
  EXPECT_EQ(on.guard->quarantine_bytes(), 0U);
  EXPECT_EQ(on.below->live(), 0U);
}

TEST(GuardQuarantineTest, TheFirstFreedLeavesFirst) {
  GuardedOptions options;
  options.quarantine_bytes = Kibibytes(64);
  Guarded on(options);
  AllocationPtr first = on.guard->Allocate(Kibibytes(20));
  AllocationPtr second = on.guard->Allocate(Kibibytes(20));
  AllocationPtr third = on.guard->Allocate(Kibibytes(30));
  const void* second_data = second->data();
  on.Write(AddressOf(first) - 1, 0x41);
  on.Write(AddressOf(second) - 1, 0x41);
  on.Write(AddressOf(third) - 1, 0x41);
  const void* third_data = third->data();
  third.reset();
  second.reset();
  EXPECT_THAT(on.errors, IsEmpty());
  first.reset();  // one too many: the third leaves
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].data, third_data);
  on.Flush();
  ASSERT_THAT(on.errors, SizeIs(3));
  EXPECT_EQ(on.errors[1].data, second_data);
}

TEST(GuardQuarantineTest, WithoutAQuarantineEveryFreeIsChecked) {
  GuardedOptions options;
  options.quarantine_bytes = 0;
  options.progress = "lazy";
  Guarded on(options);
  AllocationPtr block = on.guard->Allocate(1000);
  on.Write(AddressOf(block) + 1000, 0x41);
  block.reset();
  EXPECT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.below->live(), 0U);
}

TEST(GuardQuarantineTest, ExhaustionEmptiesTheQuarantinesOfAllStreams) {
  GuardedOptions options;
  options.quarantine_bytes = Mebibytes(64);
  Guarded on(options);
  const auto other = on.MakeLayer(options, on.place.NewChainStream());
  on.guard->Allocate(Mebibytes(10)).reset();
  other->Allocate(Mebibytes(10)).reset();
  EXPECT_GE(on.guard->quarantine_bytes(), Mebibytes(10));
  const AllocationPtr large = other->Allocate(Mebibytes(28));
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(on.guard->quarantine_bytes(), 0U);
  EXPECT_EQ(other->quarantine_bytes(), 0U);
}

TEST(GuardQuarantineTest, ARequestThatMayNotRetryEmptiesItsOwnQuarantine) {
  GuardedOptions options;
  options.quarantine_bytes = Mebibytes(64);
  Guarded on(options);
  on.guard->Allocate(Mebibytes(20)).reset();
  const AllocationPtr large =
      on.guard->Allocate(Request{Mebibytes(20), 0, kNoRetry});
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(on.guard->stats().failures, 0U);
}

TEST(GuardQuarantineTest, ReleaseEmptiesTheQuarantine) {
  Guarded on;
  on.guard->Allocate(1000).reset();
  const std::size_t held = on.place.pool()->reserved_bytes();
  EXPECT_GT(held, 0U);
  EXPECT_EQ(on.guard->Release(), held);
  EXPECT_EQ(on.place.pool()->reserved_bytes(), 0U);
  EXPECT_EQ(on.guard->Release(), 0U);
}

TEST(GuardQuarantineTest, TheQuarantineIsCheckedWhenTheChainGoes) {
  Guarded on;
  AllocationPtr block = on.guard->Allocate(1000);
  on.Write(AddressOf(block) + 1000, 0x41);
  block.reset();
  on.guard.reset();
  EXPECT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.below->live(), 0U);
  EXPECT_EQ(LeakedAllocations(on.device()), 0U);
}

}  // namespace
}  // namespace strata
