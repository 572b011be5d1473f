#include "strata/allocation/guard/guard_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/tests/allocation/guard/guard_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = GuardError::Kind;

// tf_bfc.md §2, GPUNanResetAllocator.
TEST(GuardAllocatorTest, FillsWithNan) {
  GuardedOptions options;
  options.fill = "nan";
  Guarded on(options);
  AllocationPtr block = on.guard->Allocate(sizeof(double));
  const std::uintptr_t address = AddressOf(block);
  const auto is_nan = [&] {
    double value = 0;
    float half = 0;
    const std::vector<unsigned char> bytes = on.Read(address, sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    std::memcpy(&half, bytes.data(), sizeof half);
    return value != value && half != half;
  };
  EXPECT_TRUE(is_nan());
  on.Write(address, 0);
  block.reset();
  EXPECT_TRUE(is_nan());
  on.Write(address, 0);
  on.Flush();
  EXPECT_THAT(on.errors, SizeIs(1));
}

TEST(GuardAllocatorTest, WithoutPoisonContentsAreLeftAlone) {
  GuardedOptions options;
  options.poison = false;
  Guarded on(options);
  AllocationPtr block = on.guard->Allocate(1000);
  const std::uintptr_t address = AddressOf(block);
  on.Write(address, 0x17);
  block.reset();
  EXPECT_EQ(on.Read(address, 1)[0], 0x17);
  on.Write(address, 0x18);
  on.Write(address - 1, 0x18);
  on.Flush();
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kUnderrun);
}

TEST(GuardAllocatorTest, KeepsEveryAlignmentServedBelow) {
  Guarded on;
  for (std::size_t alignment = 1; alignment <= on.guard->max_alignment();
       alignment *= 2) {
    const AllocationPtr block = on.guard->Allocate(Request{1000, alignment});
    EXPECT_EQ(AddressOf(block) % alignment, 0U);
    EXPECT_EQ(block->size(), 1000U);
    EXPECT_EQ(block->requested_bytes(), 1000U);
  }
  EXPECT_EQ(on.guard->CheckAll().errors, 0U);
  EXPECT_THROW(on.guard->Allocate(Request{1000, 2 * on.guard->max_alignment()}),
               std::invalid_argument);
}

// Host memory supports every alignment, including more than an offset can hold.
TEST(GuardAllocatorTest, KeepsTheLargestAlignment) {
  GuardedOptions options;
  options.kind = PlaceKind::kHost;
  Guarded on(options);
  const AllocationPtr block = on.guard->Allocate(Request{1000, kMaxAlignment});
  EXPECT_EQ(AddressOf(block) % kMaxAlignment, 0U);
  EXPECT_EQ(block->size(), 1000U);
  const AllocationPtr half =
      on.guard->Allocate(Request{1000, kMaxAlignment / 2});
  EXPECT_EQ(AddressOf(half) % (kMaxAlignment / 2), 0U);
  EXPECT_EQ(on.guard->CheckAll().checked, 2U);
}

TEST(GuardAllocatorTest, BaseIsWhatTheSystemGave) {
  Guarded on;
  std::uintptr_t system = 0;
  on.device().SetCallObserver([&](const CallRecord& call) {
    if (call.call == DeviceCall::kMemAlloc) system = call.ptr;
  });
  const AllocationPtr block = on.guard->Allocate(1000);
  on.device().SetCallObserver(nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->base()), system);
  EXPECT_EQ(AddressOf(block), system + on.guard->red_zone_bytes());
}

TEST(GuardAllocatorTest, RedZonesAreAsWideAsAsked) {
  GuardedOptions options;
  options.red_zone_bytes = 1000;  // rounded up to 1024
  Guarded on(options);
  AllocationPtr block = on.guard->Allocate(512);
  EXPECT_GE(on.below->last_bytes(), 512U + 2 * 1024U);
  on.Write(AddressOf(block) - 1024, 0x41);
  on.Write(AddressOf(block) + 512 + 1023, 0x41);
  EXPECT_EQ(on.guard->CheckAll().errors, 2U);
}

TEST(GuardAllocatorTest, WithoutRedZonesOnlyTheSlackIsWatched) {
  GuardedOptions options;
  options.red_zone_bytes = 0;
  Guarded on(options);
  const AllocationPtr block = on.guard->Allocate(1000);
  EXPECT_EQ(on.below->last_bytes(), 1000U);
  EXPECT_EQ(on.guard->CheckAll().errors, 0U);
}

TEST(GuardAllocatorTest, SizesThatOverflowAreTooLarge) {
  Guarded on;
  Failure failure;
  EXPECT_EQ(on.guard->AllocateOrNull(
                Request{std::numeric_limits<std::size_t>::max()}, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kTooLarge);
  EXPECT_STREQ(failure.layer, "guard");
  EXPECT_EQ(on.guard->stats().failures, 1U);
}

TEST(GuardAllocatorTest, ARefusedRequestChangesNothing) {
  Guarded on;
  const AllocationPtr live = on.guard->Allocate(1000);
  const Stats before = on.guard->stats();
  Failure failure;
  EXPECT_EQ(on.guard->AllocateOrNull(Request{Mebibytes(40)}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(failure.requested_bytes, Mebibytes(40));
  EXPECT_EQ(on.below->live(), 1U);
  EXPECT_EQ(on.guard->stats().allocations, before.allocations);
  EXPECT_EQ(on.guard->stats().in_use_bytes, before.in_use_bytes);
  EXPECT_GT(on.guard->stats().failures, before.failures);
}

TEST(GuardAllocatorTest, CountsWhatUsersHold) {
  Guarded on;
  AllocationPtr block = on.guard->Allocate(1000);
  AllocationPtr other = on.guard->Allocate(500);
  other.reset();
  const Stats stats = on.guard->stats();
  EXPECT_EQ(stats.allocations, 2U);
  EXPECT_EQ(stats.frees, 1U);
  EXPECT_EQ(stats.requested_bytes, 1000U);
  EXPECT_EQ(stats.in_use_bytes, 1000U);
  EXPECT_EQ(stats.peak_in_use_bytes, 1500U);
  EXPECT_EQ(stats.total_requested_bytes, 1500U);
  on.guard->ResetPeak();
  EXPECT_EQ(on.guard->stats().peak_in_use_bytes, 1000U);
  EXPECT_EQ(on.below->live(), 2U);  // one of them in quarantine
}

TEST(GuardAllocatorTest, AFreeMakesNoHeapCall) {
  Guarded on;
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(on.guard->Allocate(1000));
  on.guard->RecordStream(blocks[1].get(), on.place.NewStream());
  // The simulated device makes some: the two runs differ only in the frees.
  const auto calls_of = [&](int fills, bool free) {
    const HeapCallCounter counter;
    const ScopedAnnotation op("a name that is too long for a small string");
    if (free) {
      blocks[0].reset();
    } else {
      for (int i = 0; i < fills; ++i) {
        on.device().MemsetAsync(AddressOf(blocks[3]), 0, 1,
                                on.stream->stream());
      }
    }
    return counter.calls();
  };
  const std::uint64_t device = calls_of(1, false);
  EXPECT_EQ(calls_of(0, true), device);
}

// A device without stored bytes: contents are not checked, but frees are.
TEST(GuardAllocatorTest, PhantomMemoryGivesDoubleFreesAlone) {
  GuardedOptions options;
  options.data = "phantom";
  Guarded on(options);
  ::testing::internal::CaptureStderr();
  AllocationPtr block = on.guard->Allocate(1000);
  AllocationPtr other = on.guard->Allocate(1000);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("keeps no data"));
  EXPECT_EQ(log.find("keeps no data"), log.rfind("keeps no data"));
  EXPECT_EQ(on.below->last_bytes(), 1000U + 2 * on.guard->red_zone_bytes());
  EXPECT_EQ(on.guard->CheckAll().skipped, 2U);
  Allocation* freed = block.release();
  AllocationPtr(freed).reset();
  AllocationPtr(freed).reset();
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kDoubleFree);
  EXPECT_EQ(on.device().CallCount(DeviceCall::kMemcpyAsync), 0U);
}

// tf_bfc.md §2: allocators of opaque handles.
class HandleAllocator final : public Decorator {
 public:
  using Decorator::Decorator;
  bool returns_handles() const override { return true; }
  const char* name() const override { return "handles"; }
};

TEST(GuardAllocatorTest, NothingIsWrittenAroundHandles) {
  Guarded on;
  on.guard.reset();
  DecoratorOptions options;
  ChainContext context;
  context.platform = on.place.platform();
  context.stream = on.stream;
  context.place_services = on.services;
  on.guard = std::make_shared<GuardAllocator>(
      std::make_shared<HandleAllocator>(on.below), GuardSettings::From(options),
      context);
  Allocation* handle = on.guard->Allocate(1000).release();
  EXPECT_EQ(on.below->last_bytes(), 1000U);
  AllocationPtr(handle).reset();
  AllocationPtr(handle).reset();
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kDoubleFree);
  on.Flush();
  EXPECT_EQ(on.device().CallCount(DeviceCall::kMemsetAsync), 0U);
  EXPECT_EQ(on.device().CallCount(DeviceCall::kMemcpyAsync), 0U);
}

TEST(GuardAllocatorTest, ManyThreadsMayAllocateFreeAndCheck) {
  GuardedOptions options;
  options.quarantine_bytes = Kibibytes(32);
  Guarded on(options);
  const Stream marked = on.place.NewStream();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        AllocationPtr block =
            on.guard->Allocate(1 + static_cast<std::size_t>(i) * 37 % 5000);
        if (i % 7 == t) on.guard->RecordStream(block.get(), marked);
        if (i % 20 == t) on.guard->CheckAll();
        if (i % 50 == t) on.guard->Release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  on.Flush();
  EXPECT_THAT(on.errors, IsEmpty());
  EXPECT_EQ(on.below->live(), 0U);
  EXPECT_EQ(on.guard->stats().live_allocations(), 0U);
}

}  // namespace
}  // namespace strata
