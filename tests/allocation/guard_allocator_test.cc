// What the Guard layer finds, on every kind of place and while work is pending.

#include "strata/allocation/guard_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/annotation.h"
#include "strata/allocation/error.h"
#include "strata/tests/allocation/guard_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = GuardError::Kind;

struct GuardCase {
  PlaceKind kind;
  const char* progress;
};

std::ostream& operator<<(std::ostream& out, const GuardCase& one) {
  const std::string place = ToString(Place{one.kind, 0});
  return out << place.substr(0, place.find(':')) << "_" << one.progress;
}

class GuardPlacesTest : public ::testing::TestWithParam<GuardCase> {
 protected:
  static GuardedOptions OptionsOf() {
    GuardedOptions options;
    options.kind = GetParam().kind;
    options.progress = GetParam().progress;
    return options;
  }
  Guarded on_{OptionsOf()};
};

TEST_P(GuardPlacesTest, ABlockThatIsUsedAsAskedPasses) {
  for (const std::size_t bytes : {1U, 255U, 256U, 1000U, 100'000U}) {
    const AllocationPtr block = on_.guard->Allocate(bytes);
    EXPECT_EQ(block->size(), bytes);
    on_.Write(AddressOf(block), 1);
    on_.Write(AddressOf(block) + bytes - 1, 1);
  }
  const MemoryCheck check = on_.guard->CheckAll();
  EXPECT_EQ(check.checked, 5U);
  EXPECT_EQ(check.skipped, 0U);
  on_.Flush();
  EXPECT_THAT(on_.errors, IsEmpty());
  EXPECT_EQ(on_.reporter->skipped(), 0U);
}

// The first and the last byte of each zone.
TEST_P(GuardPlacesTest, FindsOneByteOutsideABlockWhenItLeaves) {
  const auto zone = static_cast<std::ptrdiff_t>(on_.guard->red_zone_bytes());
  for (const std::ptrdiff_t offset :
       {-zone, std::ptrdiff_t{-1}, std::ptrdiff_t{1000}, 1000 + zone - 1}) {
    AllocationPtr block = on_.guard->Allocate(1000);
    const void* data = block->data();
    on_.Write(AddressOf(block) + static_cast<std::uintptr_t>(offset), 0x41);
    block.reset();
    on_.Flush();
    ASSERT_THAT(on_.errors, SizeIs(1)) << offset;
    const GuardError& error = on_.errors[0];
    EXPECT_EQ(error.kind, offset < 0 ? Kind::kUnderrun : Kind::kOverrun);
    EXPECT_EQ(error.data, data);
    EXPECT_EQ(error.bytes, 1000U);
    EXPECT_EQ(error.place, on_.guard->place());
    EXPECT_EQ(error.offset, offset);
    EXPECT_EQ(error.changed_bytes, 1U);
    EXPECT_EQ(error.found, 0x41);
    EXPECT_EQ(error.expected, offset < 0 ? 0xAB : 0xBA);
    on_.errors.clear();
  }
}

TEST_P(GuardPlacesTest, FindsBytesOutsideALiveBlockOnDemandOnce) {
  const AllocationPtr block = on_.guard->Allocate(1000);
  on_.Write(AddressOf(block) + 1000, 0x41);
  on_.Write(AddressOf(block) + 1003, 0x42);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
  ASSERT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.errors[0].kind, Kind::kOverrun);
  EXPECT_EQ(on_.errors[0].offset, 1000);
  EXPECT_EQ(on_.errors[0].changed_bytes, 2U);
  EXPECT_EQ(on_.errors[0].freed_by, "");
  EXPECT_EQ(on_.guard->CheckAll().errors, 0U);
  on_.Write(AddressOf(block) - 1, 0x41);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
  EXPECT_EQ(on_.errors[1].kind, Kind::kUnderrun);
}

TEST_P(GuardPlacesTest, FindsAWriteAfterTheFree) {
  AllocationPtr block = on_.guard->Allocate(100'000);
  const std::uintptr_t address = AddressOf(block);
  block.reset();
  on_.Write(address + 70'000, 0x41);
  on_.Flush();
  ASSERT_THAT(on_.errors, SizeIs(1));
  EXPECT_EQ(on_.errors[0].kind, Kind::kUseAfterFree);
  EXPECT_EQ(on_.errors[0].offset, 70'000);
  EXPECT_EQ(on_.errors[0].found, 0x41);
  EXPECT_EQ(on_.errors[0].expected, 0xDD);
}

TEST_P(GuardPlacesTest, ChecksTheQuarantineOnDemand) {
  AllocationPtr block = on_.guard->Allocate(1000);
  const std::uintptr_t address = AddressOf(block);
  block.reset();
  EXPECT_EQ(on_.guard->CheckAll().checked, 1U);
  on_.Write(address, 0x41);
  EXPECT_EQ(on_.guard->CheckAll().errors, 1U);
  EXPECT_THAT(on_.errors, SizeIs(1));
}

TEST_P(GuardPlacesTest, FillsNewAndFreedBlocks) {
  AllocationPtr block = on_.guard->Allocate(1000);
  const std::uintptr_t address = AddressOf(block);
  EXPECT_THAT(on_.Read(address, 1000), Each(Eq(0xCD)));
  block.reset();
  EXPECT_THAT(on_.Read(address, 1000), Each(Eq(0xDD)));
}

// paddle.md §5 B10, §6.10: never a wait for the whole device.
TEST_P(GuardPlacesTest, NeverWaitsForTheDevice) {
  AllocationPtr block = on_.guard->Allocate(1000);
  on_.guard->CheckAll();
  block.reset();
  on_.Flush();
  EXPECT_EQ(on_.device().CallCount(DeviceCall::kSynchronize), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, GuardPlacesTest,
    ::testing::Values(GuardCase{PlaceKind::kDevice, "inline"},
                      GuardCase{PlaceKind::kDevice, "lazy"},
                      GuardCase{PlaceKind::kDevice, "manual"},
                      GuardCase{PlaceKind::kManaged, "inline"},
                      GuardCase{PlaceKind::kManaged, "lazy"},
                      GuardCase{PlaceKind::kPinned, "inline"},
                      GuardCase{PlaceKind::kHost, "inline"}),
    ::testing::PrintToStringParamName());

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

TEST(GuardAllocatorTest, NamesWhoAllocatedAndWhoFreed) {
  Guarded on;
  AllocationPtr block;
  {
    const ScopedAnnotation layer("conv1");
    const ScopedAnnotation op("MatMul");
    SetAnnotationStep(3);
    block = on.guard->Allocate(1000);
    SetAnnotationStep(-1);
  }
  const std::uintptr_t address = AddressOf(block);
  {
    const ScopedAnnotation op("Drop");
    block.reset();
  }
  on.Write(address + 7, 0x41);
  on.Flush();
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].allocated_by, "step 3: conv1 / MatMul");
  EXPECT_EQ(on.errors[0].freed_by, "Drop");
  EXPECT_THAT(on.errors[0].ToString(),
              AllOf(HasSubstr("use after free"), HasSubstr("1000 B"),
                    HasSubstr("device:0"), HasSubstr("offset 7"),
                    HasSubstr("0x41 instead of 0xdd"),
                    HasSubstr("step 3: conv1 / MatMul"), HasSubstr("Drop")));
}

TEST(GuardAllocatorTest, ADoubleFreeChangesNothing) {
  Guarded on;
  AllocationPtr neighbour = on.guard->Allocate(1000);
  Allocation* freed = on.guard->Allocate(1000).release();
  {
    const ScopedAnnotation op("first");
    AllocationPtr(freed).reset();
  }
  const Stats before = on.guard->stats();
  const std::size_t kept = on.guard->quarantine_bytes();
  AllocationPtr(freed).reset();
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kDoubleFree);
  EXPECT_EQ(on.errors[0].freed_by, "first");
  EXPECT_EQ(on.guard->stats().frees, before.frees);
  EXPECT_EQ(on.guard->quarantine_bytes(), kept);
  on.Flush();
  EXPECT_EQ(on.below->live(), 1U);
  EXPECT_THAT(on.errors, SizeIs(1));
}

TEST(GuardAllocatorTest, NamingAStreamForAFreedBlockIsAnError) {
  Guarded on;
  Allocation* freed = on.guard->Allocate(1000).release();
  AllocationPtr(freed).reset();
  EXPECT_FALSE(freed->owner()->RecordStream(freed, on.place.NewStream()));
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kUseAfterFree);
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

// From host memory every alignment is served, more than an offset can hold.
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

TEST(GuardAllocatorTest, TheQuarantineStaysWithinItsLimit) {
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

TEST(GuardAllocatorTest, TheFirstFreedLeavesFirst) {
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
  first.reset();  // one too many: the third goes
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].data, third_data);
  on.Flush();
  ASSERT_THAT(on.errors, SizeIs(3));
  EXPECT_EQ(on.errors[1].data, second_data);
}

TEST(GuardAllocatorTest, WithoutAQuarantineEveryFreeIsChecked) {
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

TEST(GuardAllocatorTest, ExhaustionEmptiesTheQuarantinesOfAllStreams) {
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

TEST(GuardAllocatorTest, ARequestThatMayNotRetryEmptiesItsOwnQuarantine) {
  GuardedOptions options;
  options.quarantine_bytes = Mebibytes(64);
  Guarded on(options);
  on.guard->Allocate(Mebibytes(20)).reset();
  const AllocationPtr large =
      on.guard->Allocate(Request{Mebibytes(20), 0, kNoRetry});
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(on.guard->stats().failures, 0U);
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

TEST(GuardAllocatorTest, ReleaseEmptiesTheQuarantine) {
  Guarded on;
  on.guard->Allocate(1000).reset();
  const std::size_t held = on.place.pool()->reserved_bytes();
  EXPECT_GT(held, 0U);
  EXPECT_EQ(on.guard->Release(), held);
  EXPECT_EQ(on.place.pool()->reserved_bytes(), 0U);
  EXPECT_EQ(on.guard->Release(), 0U);
}

TEST(GuardAllocatorTest, TheQuarantineIsCheckedWhenTheChainGoes) {
  Guarded on;
  AllocationPtr block = on.guard->Allocate(1000);
  on.Write(AddressOf(block) + 1000, 0x41);
  block.reset();
  on.guard.reset();
  EXPECT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.below->live(), 0U);
  EXPECT_EQ(LeakedAllocations(on.device()), 0U);
}

TEST(GuardAllocatorTest, AFreeMakesNoHeapCall) {
  Guarded on;
  std::vector<AllocationPtr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(on.guard->Allocate(1000));
  on.guard->RecordStream(blocks[1].get(), on.place.NewStream());
  // The simulated device makes some: two runs differ in the frees alone.
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

TEST(GuardAllocatorTest, ACallbackMayAllocateAndFree) {
  Guarded on;
  on.reporter->AddCallback(
      [&](const GuardError& /*error*/) { on.guard->Allocate(100).reset(); });
  AllocationPtr block = on.guard->Allocate(1000);
  on.Write(AddressOf(block) + 1000, 0x41);
  EXPECT_EQ(on.guard->CheckAll().errors, 1U);
  EXPECT_EQ(on.guard->stats().allocations, 2U);
}

TEST(GuardAllocatorTest, ACallbackThatFailsHarmsNobody) {
  Guarded on;
  on.reporter->AddCallback(
      [](const GuardError& /*error*/) { throw std::runtime_error("no"); });
  AllocationPtr block = on.guard->Allocate(1000);
  on.Write(AddressOf(block) + 1000, 0x41);
  block.reset();
  on.Flush();
  EXPECT_EQ(on.reporter->errors(), 1U);
  EXPECT_EQ(on.below->live(), 0U);
}

// A device that keeps no data: contents go unchecked, frees do not.
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
  context.guard_reporter = on.reporter;
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

TEST(GuardAllocatorDeathTest, EndsTheProcessWithTheError) {
  GuardedOptions options;
  options.log = false;
  options.quarantine_bytes = 0;
  Guarded on(options);
  AllocationPtr block;
  {
    const ScopedAnnotation op("MatMul");
    block = on.guard->Allocate(1000);
  }
  on.Write(AddressOf(block) + 1000, 0x41);
  EXPECT_DEATH(block.reset(), "overrun of .*offset 1000: 0x41 .*MatMul");
  on.Write(AddressOf(block) + 1000, kGuardBackByte);
}

TEST(GuardAllocatorDeathTest, EndsTheProcessWithADoubleFree) {
  GuardedOptions options;
  options.log = false;
  Guarded on(options);
  Allocation* freed = on.guard->Allocate(1000).release();
  {
    const ScopedAnnotation op("Drop");
    AllocationPtr(freed).reset();
  }
  EXPECT_DEATH(AllocationPtr(freed).reset(), "double free of .*by Drop");
}

// Once it has left the quarantine its record is blank.
TEST(GuardAllocatorDeathTest, ADoubleFreeAfterTheQuarantineEndsTheProcess) {
  Guarded on;
  Allocation* freed = on.guard->Allocate(1000).release();
  AllocationPtr(freed).reset();
  on.Flush();
  EXPECT_DEATH(AllocationPtr(freed).reset(), "double free");
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

// ---- Failures of device calls.

// Fails, one run each, every call of each kind that the guard makes: nothing is
// lost, nothing wrong is reported, and what goes unchecked is counted.
TEST(GuardAllocatorTest, AFailedDeviceCallCostsACheckAlone) {
  for (const DeviceCall call :
       {DeviceCall::kMemsetAsync, DeviceCall::kMemcpyAsync,
        DeviceCall::kStreamSynchronize, DeviceCall::kEventCreate,
        DeviceCall::kEventRecord, DeviceCall::kStreamWaitEvent,
        DeviceCall::kEventDestroy}) {
    for (std::uint64_t nth = 1;; ++nth) {
      Guarded on;
      const Stream marked = on.place.NewStream();
      on.device().AddFault(FailNth(call, nth));
      AllocationPtr block = on.guard->Allocate(1000);
      ASSERT_NE(block, nullptr);
      on.guard->RecordStream(block.get(), marked);
      on.guard->CheckAll();
      block.reset();
      on.guard->CheckAll();
      on.Flush();
      const std::uint64_t made = on.device().CallCount(call);
      on.device().ClearFaults();
      EXPECT_THAT(on.errors, IsEmpty()) << DeviceCallName(call) << " " << nth;
      EXPECT_EQ(on.below->live(), 0U);
      EXPECT_EQ(LeakedAllocations(on.device()), 0U);
      if (made < nth) {
        EXPECT_EQ(on.reporter->skipped(), 0U);
        EXPECT_GT(nth, 1U) << DeviceCallName(call);
        break;
      }
      const bool has_another_way = call == DeviceCall::kEventCreate ||
                                   call == DeviceCall::kEventRecord ||
                                   call == DeviceCall::kStreamWaitEvent ||
                                   call == DeviceCall::kEventDestroy;
      EXPECT_EQ(on.reporter->skipped(), has_another_way ? 0U : 1U)
          << DeviceCallName(call) << " " << nth;
    }
  }
}

TEST(GuardAllocatorTest, SaysOnceWhatItCannotDo) {
  Guarded on;
  on.device().AddFault(FailAll(DeviceCall::kMemsetAsync));
  ::testing::internal::CaptureStderr();
  on.guard->Allocate(1000).reset();
  on.guard->Allocate(1000).reset();
  const std::string log = ::testing::internal::GetCapturedStderr();
  on.device().ClearFaults();
  EXPECT_THAT(log, HasSubstr("cannot fill a new block"));
  EXPECT_EQ(log.find("cannot"), log.rfind("cannot"));
  EXPECT_EQ(on.reporter->skipped(), 2U);  // a free fills what has zones
}

}  // namespace
}  // namespace strata
