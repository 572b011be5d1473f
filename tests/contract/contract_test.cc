// The contract of every allocator for one thread (allocator.h, allocation.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/tests/contract/contract_fixture.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {
namespace {

constexpr std::size_t kMaxSize = std::numeric_limits<std::size_t>::max();

std::uintptr_t AddressOf(const AllocationPtr& allocation) {
  return reinterpret_cast<std::uintptr_t>(allocation->data());
}

TEST_P(ContractTest, AlignsEveryResultNaturally) {
  std::vector<AllocationPtr> live;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257},
        std::size_t{100'001}, Mebibytes(1) - 1, Mebibytes(3) + 1}) {
    live.push_back(allocator().Allocate(bytes));
    EXPECT_EQ(AddressOf(live.back()) % allocator().natural_alignment(), 0U)
        << bytes;
  }
}

TEST_P(ContractTest, AlignsAsAskedUpToItsMaximum) {
  std::vector<AllocationPtr> live;
  for (std::size_t alignment = 1; alignment <= allocator().max_alignment();
       alignment *= 2) {
    live.push_back(allocator().Allocate(Request{1000, alignment}));
    EXPECT_EQ(AddressOf(live.back()) % alignment, 0U) << alignment;
    EXPECT_GE(live.back()->size(), 1000U);
    EXPECT_EQ(live.back()->requested_bytes(), 1000U);
  }
}

TEST_P(ContractTest, RefusesAlignmentsItDoesNotServe) {
  const std::size_t above = allocator().max_alignment() * 2;
  for (const std::size_t alignment :
       {std::size_t{3}, std::size_t{384}, above, kMaxAlignment * 2,
        (kMaxSize >> 1) + 1, kMaxSize}) {
    const Snapshot before(subject());
    EXPECT_THROW(allocator().Allocate(Request{1000, alignment}),
                 std::invalid_argument)
        << alignment;
    ExpectUnchanged(before, Snapshot(subject()));
  }
  EXPECT_THROW(allocator().Allocate(Request{0, 3}), std::invalid_argument);
}

TEST_P(ContractTest, SaysWhatItGave) {
  const AllocationPtr allocation = allocator().Allocate(1000);
  EXPECT_GE(allocation->size(), 1000U);
  EXPECT_EQ(allocation->requested_bytes(), 1000U);
  EXPECT_EQ(allocation->place(), allocator().place());
  EXPECT_EQ(allocation->owner(), &allocator());
  ASSERT_NE(allocation->base(), nullptr);
  EXPECT_LE(allocation->base(), allocation->data());
}

TEST_P(ContractTest, ZeroBytesAreNullAndUncounted) {
  const Snapshot before(subject());
  const std::uint64_t calls = subject().place.DeviceCalls();
  AllocationPtr first = allocator().Allocate(0);
  const AllocationPtr second = allocator().Allocate(Request{0, 256, kNoGrowth});
  EXPECT_EQ(first->data(), nullptr);
  EXPECT_EQ(first->size(), 0U);
  EXPECT_EQ(first->requested_bytes(), 0U);
  EXPECT_EQ(first->base(), nullptr);
  EXPECT_EQ(first->place(), allocator().place());
  EXPECT_EQ(first->owner(), &allocator());
  EXPECT_NE(first, second);
  EXPECT_FALSE(allocator().RecordStream(first.get(), device().LegacyStream()));
  allocator().Free(std::move(first), device().LegacyStream());
  ExpectUnchanged(before, Snapshot(subject()));
  EXPECT_EQ(subject().place.DeviceCalls(), calls);
}

TEST_P(ContractTest, NeverHandsOutAByteTwice) {
  std::mt19937_64 random(7);
  LiveRanges ranges;
  std::vector<AllocationPtr> live;
  for (int i = 0; i < 600; ++i) {
    if (!live.empty() && (live.size() > 60 || random() % 5 < 2)) {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_TRUE(ranges.Remove(*live.back()));
      live.pop_back();
    } else {
      const std::size_t bytes = 1 + random() % (1U << (4 + random() % 17));
      live.push_back(allocator().Allocate(bytes));
      ASSERT_GE(live.back()->size(), bytes);
      ASSERT_TRUE(ranges.Add(*live.back())) << "operation " << i;
    }
  }
}

TEST_P(ContractTest, ReusesFreedMemory) {
  const std::size_t bytes = GetParam().options.memory_bytes / 8;
  // Three times the memory.
  for (int i = 0; i < 12; ++i) {
    const AllocationPtr one = allocator().Allocate(bytes);
    const AllocationPtr other = allocator().Allocate(bytes + 1);
  }
}

TEST_P(ContractTest, GivesEverythingBackWhenIdle) {
  const SimLeaks before = LeaksButPools(device());
  std::vector<AllocationPtr> live;
  for (const std::size_t kib : {1U, 300U, 3000U, 30'000U}) {
    live.push_back(allocator().Allocate(Kibibytes(kib)));
  }
  live.clear();
  allocator().Release();
  EXPECT_EQ(LeaksButPools(device()), before);
  EXPECT_EQ(subject().place.pool()->reserved_bytes(), 0U);
}

TEST_P(ContractTest, ReleaseReturnsTheBytesItGave) {
  std::vector<AllocationPtr> live;
  for (const std::size_t kib : {1U, 3000U, 30'000U}) {
    live.push_back(allocator().Allocate(Kibibytes(kib)));
  }
  live.clear();
  const std::size_t held = subject().place.pool()->reserved_bytes();
  EXPECT_EQ(allocator().Release(), held);
  EXPECT_EQ(allocator().Release(), 0U);
}

TEST_P(ContractTest, ReleaseKeepsLiveMemory) {
  const AllocationPtr kept = allocator().Allocate(Kibibytes(700));
  allocator().Allocate(Mebibytes(30)).reset();
  allocator().Release();
  LiveRanges ranges;
  ASSERT_TRUE(ranges.Add(*kept));
  // The device refuses access to memory that is not allocated.
  if (kept->place().kind == PlaceKind::kDevice) {
    EXPECT_EQ(device().MemsetAsync(AddressOf(kept), 1, kept->size(),
                                   device().LegacyStream()),
              Status::kSuccess);
  } else {
    std::memset(kept->data(), 1, kept->size());
  }
  const AllocationPtr next = allocator().Allocate(Mebibytes(1));
  EXPECT_TRUE(ranges.Add(*next));
}

// The expected stats() of a layer. A layer fills in the fields that it knows
// (stats.h).
void ExpectCounts(const Subject& subject,
                  const std::vector<AllocationPtr>& live,
                  std::uint64_t allocations, std::uint64_t peak) {
  const std::string name = subject.Counter().name();
  const Stats stats = subject.top->stats();
  std::uint64_t in_use = 0;
  std::uint64_t requested = 0;
  for (const AllocationPtr& allocation : live) {
    in_use += allocation->size();
    requested += allocation->requested_bytes();
  }
  const bool counts_calls = !IsAutoGrowth(name) && name != "limit";
  if (counts_calls) {
    EXPECT_EQ(stats.allocations, allocations);
    EXPECT_EQ(stats.live_allocations(), live.size());
    EXPECT_EQ(stats.failures, 0U);
  }
  if (name != "chunk_pool" && name != "limit") {
    EXPECT_EQ(stats.in_use_bytes, in_use);
  }
  if (name == "chunk_pool") {
    EXPECT_EQ(stats.reserved_bytes, in_use);
    EXPECT_EQ(stats.peak_reserved_bytes, peak);
  }
  if (name != "chunk_pool" && !IsAutoGrowth(name)) {
    EXPECT_EQ(stats.requested_bytes, requested);
  }
  if (counts_calls && name != "chunk_pool") {
    EXPECT_EQ(stats.peak_in_use_bytes, peak);
  }
  if (name == "stat") {
    EXPECT_GE(stats.total_requested_bytes, requested);
  }
}

TEST_P(ContractTest, CountsExactly) {
  std::mt19937_64 random(11);
  std::vector<AllocationPtr> live;
  std::uint64_t allocations = 0;
  std::uint64_t in_use = 0;
  std::uint64_t peak = 0;
  for (int i = 0; i < 200; ++i) {
    if (!live.empty() && random() % 5 < 2) {
      std::swap(live[random() % live.size()], live.back());
      in_use -= live.back()->size();
      live.pop_back();
    } else {
      live.push_back(allocator().Allocate(1 + random() % 70'000));
      ++allocations;
      in_use += live.back()->size();
      peak = std::max(peak, in_use);
    }
    if (i == 100) {
      allocator().ResetPeak();
      peak = in_use;
    }
    ExpectCounts(subject(), live, allocations, peak);
  }
}

// Also if a layer requests more to align the address.
TEST_P(ContractTest, CountsWhatWasAskedForWithAnyAlignment) {
  const std::string name = subject().Counter().name();
  if (name == "chunk_pool" || IsAutoGrowth(name)) {
    GTEST_SKIP() << "does not know what was asked for";
  }
  const Request request{1000, std::min(allocator().max_alignment(),
                                       static_cast<std::size_t>(8192))};
  for (int i = 0; i < 3; ++i) {  // cached memory serves the later ones
    const AllocationPtr live = allocator().Allocate(request);
    EXPECT_EQ(allocator().stats().requested_bytes, 1000U);
  }
  EXPECT_EQ(allocator().stats().requested_bytes, 0U);
}

TEST_P(ContractTest, OverflowingSizesFailAndChangeNothing) {
  const AllocationPtr live = allocator().Allocate(1000);
  for (const std::size_t bytes :
       {kMaxSize, kMaxSize - 1, kMaxSize - 255, kMaxSize - 256, kMaxSize / 2,
        std::size_t{1} << 62, std::size_t{1} << 50, std::size_t{1} << 48}) {
    for (const std::size_t alignment :
         {std::size_t{0}, allocator().max_alignment()}) {
      const Snapshot before(subject());
      EXPECT_THROW(allocator().Allocate(Request{bytes, alignment}), BadAlloc)
          << bytes;
      ExpectUnchanged(before, Snapshot(subject()));
    }
  }
}

TEST_P(ContractTest, ExhaustionIsOutOfMemoryAndRecovers) {
  if (GetParam().options.kind != PlaceKind::kDevice) {
    GTEST_SKIP() << "only the device's memory is bounded here";
  }
  std::vector<AllocationPtr> live;
  Failure failure;
  while (AllocationPtr one =
             allocator().AllocateOrNull(Request{Mebibytes(5)}, failure)) {
    live.push_back(std::move(one));
    ASSERT_LE(live.size(), GetParam().options.memory_bytes / Mebibytes(5));
  }
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  const Snapshot before(subject());
  EXPECT_THROW(allocator().Allocate(Mebibytes(5)), OutOfMemory);
  ExpectUnchanged(before, Snapshot(subject()));
  live.pop_back();
  EXPECT_NE(allocator().Allocate(Mebibytes(5)), nullptr);
}

// The device calls that `act` makes on a new subject without a failure.
template <class Act>
std::vector<DeviceCall> CallsOf(Act act) {
  Subject on(ContractTest::GetParam());
  act(on);
  std::vector<DeviceCall> calls;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    if (on.place.device().CallCount(call) != 0) calls.push_back(call);
  }
  return calls;
}

// Fails every device call of an allocation, one per run.
TEST_P(ContractTest, AFailedDeviceCallLeavesEverythingAsItWas) {
  const auto allocate = [](Subject& on) {
    Failure failure;
    return on.top->AllocateOrNull(Request{Mebibytes(3)}, failure);
  };
  for (const DeviceCall call : CallsOf([&](Subject& on) {
         const AllocationPtr live = on.top->Allocate(Kibibytes(3));
         AllocationPtr(allocate(on)).reset();
       })) {
    for (std::uint64_t nth = 1;; ++nth) {
      Subject on(GetParam());
      const AllocationPtr live = on.top->Allocate(Kibibytes(3));
      const Snapshot before(on);
      const std::uint64_t calls = on.place.device().CallCount(call);
      on.place.device().AddFault(FailNth(call, nth));
      const AllocationPtr hit = allocate(on);
      on.place.device().ClearFaults();
      if (hit == nullptr) ExpectUnchanged(before, Snapshot(on));
      EXPECT_NE(allocate(on), nullptr) << DeviceCallName(call) << " " << nth;
      if (on.place.device().CallCount(call) < calls + nth) break;
    }
  }
}

// Likewise for the free of everything: objects kept after a failed call are
// released by the next Release.
TEST_P(ContractTest, AFailedDeviceCallDuringAFreeLosesNothing) {
  for (const DeviceCall call : CallsOf([](Subject& on) {
         on.top->Allocate(Kibibytes(3));
         on.top->Allocate(Mebibytes(3));
         on.top->Release();
       })) {
    for (std::uint64_t nth = 1;; ++nth) {
      std::uint64_t made = 0;
      {
        Subject on(GetParam());
        AllocationPtr small = on.top->Allocate(Kibibytes(3));
        AllocationPtr large = on.top->Allocate(Mebibytes(3));
        const std::uint64_t calls = on.place.device().CallCount(call);
        on.place.device().AddFault(FailNth(call, nth));
        small.reset();
        large.reset();
        on.top->Release();
        on.place.device().ClearFaults();
        on.top->Release();
        // Offers the memory to the device again.
        on.place.pool()->Release();
        made = on.place.device().CallCount(call) - calls;
        EXPECT_EQ(LeakedAllocations(on.place.device()), 0U)
            << DeviceCallName(call) << " " << nth;
        EXPECT_EQ(on.place.pool()->reserved_bytes(), 0U);
      }
      if (made < nth) break;
    }
  }
}

TEST_P(ContractTest, NoGrowthNeverAsksTheSystem) {
  if (!GetParam().is_chain()) GTEST_SKIP() << "the system has no cache";
  const std::uint64_t calls = subject().place.DeviceCalls();
  Failure failure;
  EXPECT_EQ(allocator().AllocateOrNull(Request{1000, 0, kNoGrowth}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kNoGrowth);
  EXPECT_EQ(subject().place.DeviceCalls(), calls);
  EXPECT_THROW(allocator().Allocate(Request{1000, 0, kNoGrowth}), BadAlloc);
}

class CountingSource final : public Reclaimer::Source {
 public:
  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return 0;
  }
  std::size_t Reclaim(Stream /*stream*/,
                      std::size_t /*bytes*/) noexcept override {
    ++asked;
    return 0;
  }
  int asked = 0;
};

TEST_P(ContractTest, NoRetryDoesNotClimbTheLadder) {
  if (GetParam().part == ContractCase::Part::kSystem) {
    GTEST_SKIP() << "the system has no ladder";
  }
  CountingSource source;
  const auto registration = Reclaimer::Register(
      subject().place.reclaimer(), Reclaimer::Step::kCallbacks, source);
  Failure failure;
  // More than any device, address space or budget has. But no strategy refuses
  // the size as too large, even after layers have added to it.
  const std::size_t bytes = (std::size_t{1} << 47) - Mebibytes(64);
  EXPECT_EQ(allocator().AllocateOrNull(Request{bytes, 0, kNoRetry}, failure),
            nullptr);
  EXPECT_EQ(source.asked, 0);
  EXPECT_EQ(allocator().AllocateOrNull(Request{bytes}, failure), nullptr);
  EXPECT_EQ(source.asked, 1);
}

TEST_P(ContractTest, ServesLongLivedRequests) {
  std::vector<AllocationPtr> live;
  LiveRanges ranges;
  for (int i = 0; i < 8; ++i) {
    live.push_back(
        allocator().Allocate(Request{Kibibytes(300), 0, kLongLived}));
    EXPECT_TRUE(ranges.Add(*live.back()));
  }
}

class LayerLister final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& layer) override {
    EXPECT_EQ(HeldLocks(), 0);
    layers.push_back(&layer);
  }
  void VisitBlocks(const Allocator& layer,
                   const std::vector<BlockInfo>& blocks) override {
    EXPECT_EQ(HeldLocks(), 0);
    EXPECT_EQ(&layer, layers.back());
    for (const BlockInfo& block : blocks) {
      if (!block.is_free()) in_use.push_back(block.data);
    }
  }
  std::vector<const Allocator*> layers;
  std::vector<void*> in_use;
};

TEST_P(ContractTest, AcceptVisitsEveryLayerOnceFromOutsideInwards) {
  const AllocationPtr live = allocator().Allocate(1000);
  LayerLister lister;
  allocator().Accept(lister);
  std::vector<const Allocator*> chain;
  for (const Allocator* layer = &allocator(); layer != nullptr;
       layer = layer->underlying()) {
    chain.push_back(layer);
  }
  EXPECT_EQ(lister.layers, chain);
  if (GetParam().is_chain() && IsAutoGrowth(GetParam().options.strategy)) {
    ASSERT_THAT(lister.in_use, ::testing::SizeIs(1));
    // A guarded allocation lies within the block of the strategy.
    const auto offset = static_cast<std::byte*>(live->data()) -
                        static_cast<std::byte*>(lister.in_use[0]);
    EXPECT_EQ(offset != 0, GetParam().options.decorators.guard);
    EXPECT_GE(offset, 0);
  }
}

using ContractDeathTest = ContractTest;

TEST_P(ContractDeathTest, FreeingTwiceEndsTheProcess) {
  const AllocationPtr neighbour = allocator().Allocate(1000);
  Allocation* allocation = allocator().Allocate(1000).release();
  AllocationPtr(allocation).reset();
  EXPECT_DEATH(AllocationPtr(allocation).reset(), "double free");
}

INSTANTIATE_TEST_SUITE_P(All, ContractTest,
                         ::testing::ValuesIn(ContractCases()),
                         [](const auto& one) { return one.param.name; });
INSTANTIATE_TEST_SUITE_P(All, ContractDeathTest,
                         ::testing::ValuesIn(ContractCases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace strata
