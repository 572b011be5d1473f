// How virtual_memory grows while others allocate device memory, when addresses
// run out, and under a limit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "strata/strategy/auto_growth/options.h"
#include "strata/strategy/virtual_memory/vmm_policy.h"
#include "strata/tests/strategy/virtual_memory/vmm_fixture.h"

namespace strata {
namespace {

constexpr std::uint64_t kEverything = std::uint64_t{1} << 50;

class VmmRoomTest : public VmmFixture {
 protected:
  static std::uintptr_t At(const AllocationPtr& block) {
    return reinterpret_cast<std::uintptr_t>(block->data());
  }
};

TEST_F(VmmRoomTest, ARefusedCreateFallsBackToFreeHandles) {
  options_.memory_bytes = 256 * kMiB;
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_remap = "lazy";
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(a_, 8 * kMiB, 6);
  // The device reports room, and then another process allocates it.
  AddStep(DeviceCall::kCreateMemory, 1, kEverything);
  const AllocationPtr large = TryAllocate(a_, 24 * kMiB);
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(reserved(), 48 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kReleaseMemory), 0U);
}

// Handles of 4 MiB are refused, although the device reports room.
TEST_F(VmmRoomTest, ADeviceThatRefusesLargeHandlesGivesPages) {
  options_.memory_bytes = 80 * 1024 * kMiB;
  Build();
  FaultRule fault = FailAll(DeviceCall::kCreateMemory);
  fault.min_bytes = 4 * kMiB;
  device().AddFault(fault);
  const AllocationPtr large = TryAllocate(a_, 100 * kMiB);
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(reserved(), 100 * kMiB);
}

TEST_F(VmmRoomTest, ARefusedCreateFallsBackToOtherStreams) {
  options_.memory_bytes = 256 * kMiB;
  Build();
  b_ = place_->AddChain();
  // No piece is large enough for a loan.
  const std::vector<AllocationPtr> kept = LeaveHalf(b_, 8 * kMiB, 6);
  AddStep(DeviceCall::kCreateMemory, 1, kEverything);
  const AllocationPtr large = TryAllocate(a_, 20 * kMiB);
  EXPECT_NE(large, nullptr);
  EXPECT_LE(reserved(), 48 * kMiB);
}

TEST_F(VmmRoomTest, OtherStreamsReleaseOnlyTheBytesThatAreMissing) {
  Build();
  b_ = place_->AddChain();
  std::vector<AllocationPtr> of_b;
  for (int i = 0; i < 16; ++i) of_b.push_back(b_->Allocate(2 * kMiB));
  of_b.clear();
  AllocationPtr free = a_->Allocate(16 * kMiB);
  const AllocationPtr live = a_->Allocate(16 * kMiB);
  free.reset();
  // Stream B has no block of this size to lend, and A has 16 MiB.
  const AllocationPtr large = TryAllocate(a_, 40 * kMiB);
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(Calls(DeviceCall::kReleaseMemory), 12U);
}

TEST_F(VmmRoomTest, OtherStreamsReleaseTheBytesOfAllHolesAtOnce) {
  options_.memory_bytes = 128 * kMiB;
  Build();
  b_ = place_->AddChain();
  // Stream A has a hole of 4 MiB, a free page, and a hole behind it.
  AllocationPtr hole = a_->Allocate(4 * kMiB);
  AllocationPtr page = a_->Allocate(2 * kMiB);
  hole.reset();
  ASSERT_EQ(a_->Release(), 4 * kMiB);
  const std::vector<AllocationPtr> kept = LeaveHalf(b_, 2 * kMiB, 63);
  page.reset();
  EXPECT_NE(TryAllocate(a_, 12 * kMiB), nullptr);
  EXPECT_EQ(pool().stats().failures, 1U);
}

// Two free handles of 64 MiB, with a hole between them. The request touches a
// part of each.
TEST_F(VmmRoomTest, HandlesThatARequestTouchesInPartAreReleasedForIt) {
  options_.memory_bytes = 80 * 1024 * kMiB;
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  AllocationPtr first = a_->Allocate(64 * kMiB);
  AllocationPtr hole = a_->Allocate(40 * kMiB);
  AllocationPtr last = a_->Allocate(64 * kMiB);
  hole.reset();
  a_->Release();
  AllocationPtr idle = b_->Allocate(20 * kMiB);
  std::vector<AllocationPtr> rest;
  for (const std::size_t bytes :
       {1024 * kMiB, 64 * kMiB, 20 * kMiB, 2 * kMiB}) {
    while (AllocationPtr block = TryAllocate(b_, bytes)) {
      rest.push_back(std::move(block));
    }
  }
  Submit(b_);
  idle.reset();
  first.reset();
  last.reset();
  Failure failure;
  EXPECT_NE(a_->AllocateOrNull(Request{144 * kMiB}, failure), nullptr);
}

TEST_F(VmmRoomTest, OthersThatTakeEveryByteMakeAGrowthFail) {
  options_.memory_bytes = 256 * kMiB;
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(a_, 8 * kMiB, 6);
  AddStep(DeviceCall::kCreateMemory, 3, kEverything);
  const SimLeaks before = device().Leaks();
  Failure failure;
  EXPECT_EQ(a_->AllocateOrNull(Request{40 * kMiB}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_LE(device().Leaks().mapped_bytes, before.mapped_bytes);
  EXPECT_EQ(device().Leaks().memory_block_bytes, reserved());
}

// Every growth but the first is short because of an outdated answer of the
// device.
TEST_F(VmmRoomTest, RoomAfterAllIsNoFailure) {
  Build();
  AddStep(DeviceCall::kMemGetInfo, 1, 50 * kMiB);
  const AllocationPtr first = a_->Allocate(8 * kMiB);
  AddStep(DeviceCall::kMemGetInfo, 1, 0, 50 * kMiB);
  EXPECT_NE(TryAllocate(a_, 20 * kMiB), nullptr);
  EXPECT_EQ(pool().stats().failures, 0U);
}

TEST_F(VmmRoomTest, AShortageIsOneFailure) {
  Build();
  EXPECT_EQ(TryAllocate(a_, 80 * kMiB), nullptr);
  EXPECT_EQ(pool().stats().failures, 1U);
}

TEST_F(VmmRoomTest, TheDeviceIsAskedAgainAfterARelease) {
  options_.memory_bytes = 256 * kMiB;
  Build();
  a_->Allocate(8 * kMiB).reset();
  a_->Release();
  const std::uint64_t asked = Calls(DeviceCall::kMemGetInfo);
  const AllocationPtr block = a_->Allocate(8 * kMiB);
  // Once for the room, and once for the size of a new range.
  EXPECT_EQ(Calls(DeviceCall::kMemGetInfo), asked + 2);
}

TEST_F(VmmRoomTest, ASmallerRangeServesWhereADoubledOneIsRefused) {
  // The first range takes 10 MiB; the next one would take 20.
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_reserve_bytes =
      18 * kMiB;
  Build();
  const AllocationPtr first = a_->Allocate(6 * kMiB);
  const AllocationPtr second = a_->Allocate(4 * kMiB);
  EXPECT_EQ(device().Leaks().reservation_bytes, 18 * kMiB);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 0U);
}

TEST_F(VmmRoomTest, WithoutAddressesOtherStreamsGiveMemory) {
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_reserve_bytes =
      (16 + 8 + 16 + 32 + 64) * kMiB;
  Build();
  b_ = place_->AddChain();
  // Stream A has a hole of 12 MiB, and no addresses behind it.
  AllocationPtr hole = a_->Allocate(12 * kMiB);
  const AllocationPtr last = a_->Allocate(2 * kMiB);
  hole.reset();
  ASSERT_EQ(a_->Release(), 12 * kMiB);
  // Stream B holds the rest of the device, half of it free, in pages.
  const std::vector<AllocationPtr> kept = LeaveHalf(b_, 2 * kMiB, 31);
  ASSERT_EQ(reserved(), 64 * kMiB);
  EXPECT_NE(TryAllocate(a_, 12 * kMiB), nullptr);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 0U);
}

TEST_F(VmmRoomTest, AChunkReplacesAnIdleChunkAndFreeHandles) {
  options_.memory_bytes = 32 * kMiB;
  options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_reserve_bytes =
      8 * kMiB;
  options_.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_give_back_limit = 0;
  Build();
  AllocationPtr mapped = a_->Allocate(4 * kMiB);
  AllocationPtr chunk = a_->Allocate(20 * kMiB);
  ASSERT_EQ(Calls(DeviceCall::kMemAlloc), 1U);
  mapped.reset();
  chunk.reset();
  EXPECT_NE(TryAllocate(a_, 24 * kMiB), nullptr);
}

TEST_F(VmmRoomTest, TheSmallestTailThatFitsServes) {
  options_.memory_bytes = 256 * kMiB;
  Build();
  // The first range takes 32 MiB.
  const AllocationPtr first = a_->Allocate(20 * kMiB);
  AllocationPtr small_tail = a_->Allocate(4 * kMiB);
  const AllocationPtr second = a_->Allocate(20 * kMiB);
  AllocationPtr large_tail = a_->Allocate(10 * kMiB);
  ASSERT_NE(first->base(), second->base());
  small_tail.reset();
  large_tail.reset();
  const AllocationPtr block = a_->Allocate(kMiB);
  EXPECT_EQ(block->base(), first->base());
}

// Four streams with one thread each. Their blocks of many sizes do not fit.
TEST_F(VmmRoomTest, FourThreadsNeverExceedALimit) {
  constexpr std::size_t kLimit = 100 * kMiB;
  constexpr int kThreads = 4;
  options_.memory_bytes = 1024 * kMiB;
  options_.limit_bytes = kLimit;
  Build();
  std::vector<TestChain> chains;
  for (int i = 0; i < kThreads; ++i) chains.push_back(place_->AddChain());
  device().ResetPeakUsedBytes();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::uint64_t random = static_cast<std::uint64_t>(i) + 1;
      std::vector<AllocationPtr> live;
      for (int step = 0; step < 1500; ++step) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        const std::size_t choice = random >> 33;
        if (choice % 16 == 0) chains[static_cast<std::size_t>(i)]->Release();
        if (choice % 3 == 0 && !live.empty()) {
          std::swap(live[choice % live.size()], live.back());
          live.pop_back();
          continue;
        }
        AllocationPtr block = TryAllocate(chains[static_cast<std::size_t>(i)],
                                          (choice % 40 + 1) * kMiB / 2);
        if (block != nullptr) live.push_back(std::move(block));
        // Held and claimed bytes never exceed the limit.
        EXPECT_LE(reserved(), kLimit);
        EXPECT_LE(device().Leaks().memory_block_bytes, kLimit);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Bytes are claimed before the device creates them, so it sees each excess.
  EXPECT_LE(device().peak_used_bytes(), kLimit);
  EXPECT_GT(device().peak_used_bytes(), kLimit * 9 / 10);
  for (const TestChain& chain : chains) {
    EXPECT_TRUE(chain.auto_growth().IsConsistent());
  }
  EXPECT_LE(pool().stats().peak_reserved_bytes, kLimit);
  EXPECT_EQ(pool().budget().RoomBytes(nullptr), kLimit - reserved());
}

// A free block between a large hole and a small one is cut at the small hole,
// so that the rest still extends the large one.
TEST_F(VmmRoomTest, ACutLeavesTheRestBesideTheLargeHole) {
  options_.memory_bytes = 4096 * kMiB;
  Build();
  AllocationPtr large = a_->Allocate(400 * kMiB);
  AllocationPtr open = a_->Allocate(64 * kMiB);
  AllocationPtr small = a_->Allocate(16 * kMiB);
  const AllocationPtr last = a_->Allocate(16 * kMiB);
  ASSERT_EQ(At(last), At(large) + 480 * kMiB);
  large.reset();
  small.reset();
  a_->Release();
  ASSERT_EQ(reserved(), 80 * kMiB);
  const std::uintptr_t end = At(open) + 64 * kMiB;
  open.reset();
  const AllocationPtr block = a_->Allocate(8 * kMiB);
  EXPECT_EQ(At(block), end - 8 * kMiB);
}

}  // namespace
}  // namespace strata
