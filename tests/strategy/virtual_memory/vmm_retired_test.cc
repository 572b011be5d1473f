// When virtual_memory unmaps the addresses that moved handles leave behind.

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "strata/strategy/virtual_memory/vmm_policy.h"
#include "strata/tests/strategy/virtual_memory/vmm_fixture.h"

namespace strata {
namespace {

class VmmRetiredTest : public VmmFixture {};

TEST_F(VmmRetiredTest, AGrowthUnmapsTheRetiredAddressesOfFewHandles) {
  options_.memory_bytes = 1024 * kMiB;
  Build();
  std::vector<AllocationPtr> kept = LeaveHalf(a_, 2 * kMiB, 512);
  AllocationPtr large = a_->Allocate(512 * kMiB);
  EXPECT_EQ(device().Leaks().mappings, 768U);
  large.reset();
  kept[1].reset();
  large = a_->Allocate(514 * kMiB);
  EXPECT_EQ(device().Leaks().mappings, 768U + 1 - 16);
}

TEST_F(VmmRetiredTest, AGrowthWithRoomUnmapsMoreRetiredAddresses) {
  options_.memory_bytes = 1024 * kMiB;
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_remap = "tight";
  Build();
  std::vector<AllocationPtr> kept = LeaveHalf(a_, 2 * kMiB, 256);
  const AllocationPtr first = a_->Allocate(256 * kMiB);
  EXPECT_EQ(device().Leaks().mappings, 256U + 128);
  const AllocationPtr second = a_->Allocate(128 * kMiB);
  EXPECT_EQ(device().Leaks().mappings, 256U + 128 + 64 - 64);
}

// Leaves a surplus: more retired addresses than handles.
class VmmSurplusTest : public VmmFixture {
 protected:
  void MakeSurplus(int rounds) {
    options_.memory_bytes = 1024 * kMiB;
    options_.progress = "manual";
    Build();
    // While it is pending, nothing can be unmapped.
    Submit(a_);
    for (int i = 0; i < rounds; ++i) {
      const std::vector<AllocationPtr> kept = LeaveHalf(a_, 2 * kMiB, 512);
      a_->Allocate(512 * kMiB).reset();
    }
    EXPECT_GE(mappings(), 512U + 255 * static_cast<unsigned>(rounds));
  }
  std::uint64_t mappings() const { return device().Leaks().mappings; }
};

TEST_F(VmmSurplusTest, ARequestUnmapsAFewOfIt) {
  MakeSurplus(3);
  device().StepAll();
  std::vector<AllocationPtr> blocks;
  for (unsigned i = 1; i <= 32; ++i) {
    blocks.push_back(a_->Allocate(kMiB));
    EXPECT_EQ(mappings(), 512U + 3 * 256 - 8 * i);
  }
  // There are as many retired addresses as handles.
  blocks.push_back(a_->Allocate(kMiB));
  EXPECT_EQ(mappings(), 512U + 2 * 256);
}

TEST_F(VmmSurplusTest, FreeBlocksAreNoHits) {
  MakeSurplus(3);
  HitPath& hits = *a_.strategy->hit_path();
  const std::lock_guard<ChainLock> guard(*hits.hit_lock());
  EXPECT_EQ(hits.Take(2 * kMiB), nullptr);
  // A request that must not wait still finds them.
  EXPECT_FALSE(hits.finds_all());
}

TEST_F(VmmSurplusTest, PendingWorkDelaysTheUnmaps) {
  MakeSurplus(3);
  std::vector<AllocationPtr> blocks;
  blocks.push_back(a_->Allocate(kMiB));
  const std::uint64_t calls = place_->DeviceCalls();
  blocks.push_back(a_->Allocate(kMiB));
  EXPECT_EQ(place_->DeviceCalls(), calls);
  device().StepAll();
  for (int i = 0; i < 64; ++i) blocks.push_back(a_->Allocate(kMiB));
  EXPECT_LT(mappings(), 512U + 3 * 256);
}

TEST_F(VmmSurplusTest, ACaptureDelaysTheUnmaps) {
  MakeSurplus(3);
  device().StepAll();
  const std::uint64_t before = mappings();
  std::vector<AllocationPtr> blocks;
  place_->timelines()->gate().Announce();
  blocks.push_back(a_->Allocate(kMiB));
  EXPECT_EQ(mappings(), before);
  place_->timelines()->gate().Withdraw();
  for (int i = 0; i < 64; ++i) blocks.push_back(a_->Allocate(kMiB));
  EXPECT_LT(mappings(), before);
}

TEST_F(VmmSurplusTest, AReleaseEndsIt) {
  MakeSurplus(3);
  device().StepAll();
  a_->Release();
  const AllocationPtr block = a_->Allocate(kMiB);
  EXPECT_EQ(mappings(), 1U);
  HitPath& hits = *a_.strategy->hit_path();
  const std::lock_guard<ChainLock> guard(*hits.hit_lock());
  for (int i = 0; i < 100; ++i) {
    Block* const hit = hits.TakeCached(kMiB / 2);
    ASSERT_NE(hit, nullptr) << i;
    EXPECT_TRUE(hits.GiveCached(hit));
  }
}

TEST_F(VmmSurplusTest, ProbesLeaveIt) {
  MakeSurplus(3);
  device().StepAll();
  Failure failure;
  const AllocationPtr block =
      a_->AllocateOrNull(Request{.bytes = kMiB, .flags = kNoGrowth}, failure);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(mappings(), 512U + 3 * 256);
}

TEST_F(VmmSurplusTest, AGrowthUnmapsAPartOfALargeOne) {
  MakeSurplus(60);
  const std::vector<AllocationPtr> kept = LeaveHalf(a_, 2 * kMiB, 512);
  device().StepAll();
  const std::uint64_t before = mappings();
  const AllocationPtr large = a_->Allocate(512 * kMiB);
  // 256 handles move.
  EXPECT_LE(mappings(), before + 256 - (60 - 3) * 256 / 16);
  EXPECT_GE(mappings(), before + 200 - (60 - 2) * 256 / 16);
}

TEST_F(VmmRetiredTest, RetiredAddressesAreBounded) {
  options_.memory_bytes = 1024 * kMiB;
  Build();
  for (int i = 0; i < 60; ++i) {
    const std::vector<AllocationPtr> kept = LeaveHalf(a_, 2 * kMiB, 512);
    const AllocationPtr large = a_->Allocate(512 * kMiB);
    // 512 handles, as many retired addresses, and the 256 of this growth.
    EXPECT_LE(device().Leaks().mappings, 2 * 512U + 256);
  }
}

TEST_F(VmmRetiredTest, AReleaseUnmapsTheRetiredAddressesOfItsHandlesOnly) {
  options_.memory_bytes = 1024 * kMiB;
  Build();
  b_ = place_->AddChain();
  std::vector<AllocationPtr> kept = LeaveHalf(a_, 2 * kMiB, 512);
  AllocationPtr large = a_->Allocate(512 * kMiB);
  const Request own_handle{.bytes = 2 * kMiB, .flags = kOneHandle};
  // The other stream creates its handle after the release of one that was never
  // moved,
  kept[1].reset();
  const AllocationPtr first = b_->Allocate(own_handle);
  EXPECT_EQ(device().Leaks().mappings, 768U - 1 + 1);
  // and of one that was moved.
  large.reset();
  const AllocationPtr second = b_->Allocate(own_handle);
  EXPECT_EQ(device().Leaks().mappings, 768U - 2 + 1);
}

}  // namespace
}  // namespace strata
