// The state of virtual_memory after a failed device call of a growth or of a
// release.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strata/platform/calls/device_call.h"
#include "strata/strategy/virtual_memory/vmm_policy.h"
#include "strata/tests/strategy/virtual_memory/vmm_fixture.h"

namespace strata {
namespace {

// The state that a failed growth must not change.
struct PlaceState {
  std::uint64_t mappings = 0;
  std::uint64_t mapped_bytes = 0;
  std::uint64_t handles = 0;
  std::uint64_t handle_bytes = 0;
  std::uint64_t reservations = 0;
  std::uint64_t reservation_bytes = 0;
  std::size_t told_bytes = 0;
  std::size_t reserved_bytes = 0;
  std::size_t room_bytes = 0;  // below the limit; shows the claimed bytes
  std::uint64_t strategy_reserved_bytes = 0;
  std::uint64_t in_use_bytes = 0;
  std::uint64_t idle_bytes = 0;
  std::uint64_t free_blocks = 0;
  std::uint64_t largest_free_bytes = 0;
  std::uint64_t chunks = 0;

  auto AsTuple() const {
    return std::tie(mappings, mapped_bytes, handles, handle_bytes, reservations,
                    reservation_bytes, told_bytes, reserved_bytes, room_bytes,
                    strategy_reserved_bytes, in_use_bytes, idle_bytes,
                    free_blocks, largest_free_bytes, chunks);
  }
  bool operator==(const PlaceState& other) const {
    return AsTuple() == other.AsTuple();
  }
};

std::ostream& operator<<(std::ostream& out, const PlaceState& state) {
  return out << "mappings " << state.mappings << " of " << state.mapped_bytes
             << ", handles " << state.handles << " of " << state.handle_bytes
             << ", ranges " << state.reservations << " of "
             << state.reservation_bytes << ", told " << state.told_bytes
             << ", reserved " << state.reserved_bytes << ", room "
             << state.room_bytes << ", strategy reserves "
             << state.strategy_reserved_bytes << ", in use "
             << state.in_use_bytes << ", idle " << state.idle_bytes << ", free "
             << state.free_blocks << " up to " << state.largest_free_bytes
             << ", chunks " << state.chunks;
}

// A program up to the growth with the failing calls.
struct GrowthCase {
  const char* name;
  std::size_t memory_bytes;
  std::size_t limit_bytes;
  const char* remap;
  std::size_t block_bytes;
  int blocks;               // every other one is freed
  std::size_t grown_bytes;  // by the growth
};

std::ostream& operator<<(std::ostream& out, const GrowthCase& growth) {
  return out << growth.name;
}

constexpr GrowthCase kCreates{"Creates", 256 * kMiB, 100 * kMiB, "lazy",
                              8 * kMiB,  3,          20 * kMiB};
// Handles of 64 MiB, and a smaller one.
constexpr GrowthCase kCreatesLargeHandles{"CreatesLargeHandles",
                                          80 * 1024 * kMiB,
                                          80 * 1024 * kMiB,
                                          "lazy",
                                          8 * kMiB,
                                          3,
                                          200 * kMiB};
constexpr GrowthCase kMoves{"Moves",  256 * kMiB, 64 * kMiB, "lazy",
                            8 * kMiB, 8,          32 * kMiB};
constexpr GrowthCase kCreatesAndMoves{
    "CreatesAndMoves", 256 * kMiB, 68 * kMiB, "4", 8 * kMiB, 8, 36 * kMiB};
// The last block was freed: the growth begins in it.
constexpr GrowthCase kExtendsATail{"ExtendsATail", 256 * kMiB, 100 * kMiB, "4",
                                   7 * kMiB,       5,          30 * kMiB};
// Pages at the ends of blocks belong to two blocks.
constexpr GrowthCase kMovesBesideSharedPages{"MovesBesideSharedPages",
                                             256 * kMiB,
                                             56 * kMiB,
                                             "tight",
                                             7 * kMiB,
                                             8,
                                             20 * kMiB};

class VmmFaultsTest : public VmmFixture {
 protected:
  void Start(const GrowthCase& growth, bool may_alias) {
    options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_alias =
        may_alias;
    options_.strategy_options.Edit<VirtualMemoryOptions>().vmm_remap =
        growth.remap;
    options_.memory_bytes = growth.memory_bytes;
    options_.limit_bytes = growth.limit_bytes;
    Build();
    kept_ = LeaveHalf(a_, growth.block_bytes, growth.blocks);
  }
  void End() {
    kept_.clear();
    TearDown();
    place_.reset();
  }
  PlaceState StateNow() const {
    const SimLeaks leaks = device().Leaks();
    const Stats stats = a_.strategy->stats();
    PlaceState state;
    state.mappings = leaks.mappings;
    state.mapped_bytes = leaks.mapped_bytes;
    state.handles = leaks.memory_blocks;
    state.handle_bytes = leaks.memory_block_bytes;
    state.reservations = leaks.reservations;
    state.reservation_bytes = leaks.reservation_bytes;
    state.told_bytes = ledger_->bytes();
    state.reserved_bytes = reserved();
    state.room_bytes = pool().budget().RoomBytes(nullptr);
    state.strategy_reserved_bytes = stats.reserved_bytes;
    state.in_use_bytes = stats.in_use_bytes;
    state.idle_bytes = stats.idle_bytes;
    state.free_blocks = stats.free_blocks;
    state.largest_free_bytes = stats.largest_free_bytes;
    state.chunks = stats.chunks;
    return state;
  }
  // Holds after any failure.
  void ExpectAllIsCounted() {
    EXPECT_TRUE(a_.auto_growth().IsConsistent());
    const SimLeaks leaks = device().Leaks();
    EXPECT_EQ(leaks.memory_block_bytes, reserved());
    EXPECT_EQ(leaks.mapped_bytes, ledger_->bytes());
    EXPECT_EQ(pool().budget().RoomBytes(nullptr),
              options_.limit_bytes - reserved());
    EXPECT_EQ(a_.strategy->stats().reserved_bytes, reserved());
  }
  std::size_t LiveBytes() const { return a_.strategy->stats().in_use_bytes; }

  std::vector<AllocationPtr> kept_;
};

class VmmGrowthFaultsTest
    : public VmmFaultsTest,
      public ::testing::WithParamInterface<std::tuple<GrowthCase, bool>> {
 protected:
  using CallCounts = std::array<std::uint64_t, kDeviceCallCount>;

  void Start() {
    VmmFaultsTest::Start(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
  AllocationPtr Grow() {
    return TryAllocate(a_, std::get<0>(GetParam()).grown_bytes);
  }
  // The calls of the growth without a failure.
  CallCounts CountCalls() {
    Start();
    CallCounts counts{};
    for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
      counts[i] = Calls(static_cast<DeviceCall>(i));
    }
    AllocationPtr block = Grow();
    EXPECT_NE(block, nullptr);
    for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
      counts[i] = Calls(static_cast<DeviceCall>(i)) - counts[i];
    }
    block.reset();
    End();
    return counts;
  }
  // One growth with `fault`, and one after it. Returns true if the first one
  // succeeded.
  bool GrowWith(const FaultRule& fault) {
    Start();
    const PlaceState before = StateNow();
    const std::uint64_t calls = Calls(fault.call);
    device().AddFault(fault);
    AllocationPtr block = Grow();
    EXPECT_GE(Calls(fault.call) - calls, fault.nth);
    const bool was_served = block != nullptr;
    if (!was_served) {
      EXPECT_EQ(StateNow(), before);
    }
    ExpectAllIsCounted();
    device().ClearFaults();
    if (!was_served) block = Grow();
    EXPECT_NE(block, nullptr);
    ExpectAllIsCounted();
    block.reset();
    End();
    return was_served;
  }
};

TEST_P(VmmGrowthFaultsTest, AFailedCallChangesNothing) {
  const CallCounts counts = CountCalls();
  std::uint64_t failed = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    for (std::uint64_t nth = 1; nth <= counts[i]; ++nth) {
      SCOPED_TRACE(std::string(DeviceCallName(call)) + " " +
                   std::to_string(nth));
      const bool was_served = GrowWith(FailNth(call, nth));
      failed += was_served ? 0 : 1;
      if (call == DeviceCall::kMapRange || call == DeviceCall::kSetAccess) {
        EXPECT_FALSE(was_served);
      }
    }
  }
  EXPECT_GE(failed, 2U);
}

// No handle is created after the nth one, for any later request of the growth.
TEST_P(VmmGrowthFaultsTest, ADeviceThatRefusesFromThenOnChangesNothing) {
  const CallCounts counts = CountCalls();
  const auto creates =
      counts[static_cast<std::size_t>(DeviceCall::kCreateMemory)];
  for (std::uint64_t nth = 1; nth <= creates; ++nth) {
    SCOPED_TRACE(nth);
    FaultRule fault = FailNth(DeviceCall::kCreateMemory, nth);
    fault.count = 1000000;
    EXPECT_FALSE(GrowWith(fault));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Growths, VmmGrowthFaultsTest,
    ::testing::Combine(::testing::Values(kCreates, kCreatesLargeHandles, kMoves,
                                         kCreatesAndMoves, kExtendsATail,
                                         kMovesBesideSharedPages),
                       ::testing::Bool()),
    [](const auto& info) {
      return std::get<0>(info.param).name + std::string(std::get<1>(info.param)
                                                            ? "WithAliases"
                                                            : "WithoutAliases");
    });

// A call of the growth fails, and so do calls that undo it.
class VmmUndoFaultsTest : public VmmFaultsTest,
                          public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr GrowthCase kSmallGrowth{"Small",  256 * kMiB, 26 * kMiB, "4",
                                           4 * kMiB, 6,          14 * kMiB};

  // The `nth` call of `call` fails. From then on, every `undo` fails from its
  // `from`th call on.
  void GrowWith(DeviceCall call, std::uint64_t nth, DeviceCall undo,
                std::uint64_t from) {
    Start(kSmallGrowth, GetParam());
    device().AddFault(FailNth(call, nth));
    FaultRule fault = FailNth(undo, from);
    fault.count = 1000000;
    device().AddFault(fault);
    AllocationPtr block = TryAllocate(a_, kSmallGrowth.grown_bytes);
    ExpectAllIsCounted();
    // Other growths must not use addresses that are still mapped.
    AllocationPtr small = TryAllocate(a_, 2 * kMiB);
    ExpectAllIsCounted();
    small.reset();
    block.reset();
    device().ClearFaults();
    a_->Release();
    EXPECT_EQ(reserved(), LiveBytes());
    ExpectAllIsCounted();
    block = TryAllocate(a_, kSmallGrowth.grown_bytes);
    EXPECT_NE(block, nullptr);
    ExpectAllIsCounted();
    block.reset();
    End();
  }
};

TEST_P(VmmUndoFaultsTest, WhatCannotBeUndoneIsCountedAndReleasedLater) {
  for (const DeviceCall call : {DeviceCall::kMapRange, DeviceCall::kSetAccess,
                                DeviceCall::kCreateMemory}) {
    for (const DeviceCall undo :
         {DeviceCall::kUnmapRange, DeviceCall::kReleaseMemory,
          DeviceCall::kMapRange, DeviceCall::kSetAccess}) {
      const std::uint64_t calls = call == DeviceCall::kSetAccess ? 1 : 7;
      for (std::uint64_t nth = 1; nth <= calls; ++nth) {
        for (std::uint64_t from = 1; from <= 14; ++from) {
          SCOPED_TRACE(std::string(DeviceCallName(call)) + " " +
                       std::to_string(nth) + ", " + DeviceCallName(undo) +
                       " from " + std::to_string(from));
          GrowWith(call, nth, undo, from);
        }
      }
    }
  }
}

// Access at the old addresses cannot be set, and then they cannot be unmapped.
TEST_P(VmmUndoFaultsTest, AMappingWithoutAccessServesNobody) {
  for (std::uint64_t from = 1; from <= 14; ++from) {
    SCOPED_TRACE(from);
    Start(kSmallGrowth, GetParam());
    device().AddFault(FailAll(DeviceCall::kSetAccess));
    FaultRule fault = FailNth(DeviceCall::kUnmapRange, from);
    fault.count = 1000000;
    device().AddFault(fault);
    EXPECT_EQ(TryAllocate(a_, kSmallGrowth.grown_bytes), nullptr);
    ExpectAllIsCounted();
    // Free memory still has access.
    std::vector<AllocationPtr> blocks;
    while (AllocationPtr block = TryAllocate(a_, 2 * kMiB)) {
      Access access = Access::kNone;
      EXPECT_EQ(device().GetAccess(reinterpret_cast<DevicePtr>(block->data()),
                                   {Location::Kind::kDevice, 0}, &access),
                Status::kSuccess);
      EXPECT_EQ(access, Access::kReadWrite);
      blocks.push_back(std::move(block));
    }
    device().ClearFaults();
    blocks.clear();
    a_->Release();
    EXPECT_EQ(reserved(), LiveBytes());
    End();
  }
}

INSTANTIATE_TEST_SUITE_P(Aliases, VmmUndoFaultsTest, ::testing::Bool());

TEST_F(VmmFaultsTest, ARefusedReleaseDuringAnUndoIsTriedAgain) {
  options_.limit_bytes = 32 * kMiB;
  Build();
  device().AddFault(FailNth(DeviceCall::kSetAccess, 1));
  device().AddFault(FailAll(DeviceCall::kReleaseMemory));
  EXPECT_EQ(TryAllocate(a_, 8 * kMiB), nullptr);
  EXPECT_EQ(reserved(), 8 * kMiB);
  EXPECT_EQ(pool().budget().RoomBytes(nullptr), 24 * kMiB);
  device().ClearFaults();
  EXPECT_EQ(a_->Release(), 8 * kMiB);
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(VmmFaultsTest, RefusedHandlesAreIdleAndReclaimable) {
  Build();
  a_->Allocate(8 * kMiB).reset();
  device().AddFault(FailAll(DeviceCall::kReleaseMemory));
  EXPECT_EQ(a_->Release(), 0U);
  EXPECT_EQ(reserved(), 8 * kMiB);
  EXPECT_EQ(a_.strategy->stats().idle_bytes, 8 * kMiB);
  EXPECT_EQ(a_.strategy->stats().reserved_bytes, 8 * kMiB);
  EXPECT_EQ(pool().ReclaimableBytes(/*of_limit=*/true), 8 * kMiB);
  EXPECT_EQ(pool().ReclaimableBytes(/*of_limit=*/false), 8 * kMiB);
  EXPECT_TRUE(pool().market().IsUnused());
  device().ClearFaults();
  EXPECT_EQ(a_->Release(), 8 * kMiB);
}

// The fixture detects a range that was reported wrongly to the visitors.
TEST_F(VmmFaultsTest, VisitorsAreToldAgainOfWhatCannotBeUnmapped) {
  Build();
  const std::vector<AllocationPtr> kept = LeaveHalf(a_, 8 * kMiB, 8);
  AllocationPtr large = a_->Allocate(32 * kMiB);
  device().AddFault(FailAll(DeviceCall::kUnmapRange));
  const std::size_t told = ledger_->bytes();
  EXPECT_EQ(told, device().Leaks().mapped_bytes);
  large.reset();
  EXPECT_EQ(a_->Release(), 0U);
  EXPECT_EQ(ledger_->bytes(), told);
  EXPECT_EQ(device().Leaks().mapped_bytes, told);
  device().ClearFaults();
  EXPECT_EQ(a_->Release(), 32 * kMiB);
}

// A strategy that ends while the driver refuses to unmap.
class VmmEndFaultsTest : public VmmFixture {
 protected:
  // Leaves free handles, some of which have moved, and ends the strategy with
  // `fault`.
  void EndWith(const FaultRule& fault) {
    Build();
    std::vector<AllocationPtr> kept = LeaveHalf(a_, 8 * kMiB, 8);
    AllocationPtr large = a_->Allocate(32 * kMiB);
    large.reset();
    kept.clear();
    device().AddFault(fault);
    a_ = TestChain();
    pool().Close();
  }
};

TEST_F(VmmEndFaultsTest, AnUnmapThatFailsOnceIsTriedAgain) {
  for (std::uint64_t nth = 1; nth <= 8; ++nth) {
    SCOPED_TRACE(nth);
    EndWith(FailNth(DeviceCall::kUnmapRange, nth));
    TearDown();
  }
}

TEST_F(VmmEndFaultsTest, MemoryThatCannotBeUnmappedStaysCounted) {
  EndWith(FailAll(DeviceCall::kUnmapRange));
  const SimLeaks leaks = device().Leaks();
  EXPECT_EQ(leaks.memory_block_bytes, 64 * kMiB);
  EXPECT_EQ(reserved(), leaks.memory_block_bytes);
  EXPECT_EQ(ledger_->bytes(), leaks.mapped_bytes);
  // It is lost: nothing is left that could release it.
  place_.reset();
}

}  // namespace
}  // namespace strata
