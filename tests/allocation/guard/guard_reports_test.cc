// Reports of the Guard layer about misuse, and about checks that it cannot do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/allocation/guard/guard_allocator.h"
#include "strata/tests/allocation/guard/guard_fixture.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = GuardError::Kind;

TEST(GuardReportsTest, NamesWhoAllocatedAndWhoFreed) {
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

TEST(GuardReportsTest, ADoubleFreeChangesNothing) {
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

TEST(GuardReportsTest, NamingAStreamForAFreedBlockIsAnError) {
  Guarded on;
  const Stream stream = on.place.NewStream();
  Allocation* freed = on.guard->Allocate(1000).release();
  AllocationPtr(freed).reset();
  EXPECT_FALSE(freed->owner()->RecordStream(freed, stream));
  ASSERT_THAT(on.errors, SizeIs(1));
  EXPECT_EQ(on.errors[0].kind, Kind::kUseAfterFree);
  freed->owner()->EraseStream(freed, stream);
  ASSERT_THAT(on.errors, SizeIs(2));
  EXPECT_EQ(on.errors[1].kind, Kind::kUseAfterFree);
}

TEST(GuardReportsTest, ACallbackMayAllocateAndFree) {
  Guarded on;
  on.reporter->AddCallback(
      [&](const GuardError& /*error*/) { on.guard->Allocate(100).reset(); });
  AllocationPtr block = on.guard->Allocate(1000);
  on.Write(AddressOf(block) + 1000, 0x41);
  EXPECT_EQ(on.guard->CheckAll().errors, 1U);
  EXPECT_EQ(on.guard->stats().allocations, 2U);
}

TEST(GuardReportsTest, ACallbackThatFailsHarmsNobody) {
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

TEST(GuardReportsDeathTest, EndsTheProcessWithTheError) {
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

TEST(GuardReportsDeathTest, EndsTheProcessWithADoubleFree) {
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

// After the quarantine its record is blank.
TEST(GuardReportsDeathTest, ADoubleFreeAfterTheQuarantineEndsTheProcess) {
  Guarded on;
  Allocation* freed = on.guard->Allocate(1000).release();
  AllocationPtr(freed).reset();
  on.Flush();
  EXPECT_DEATH(AllocationPtr(freed).reset(), "double free");
}

// Fails every call of each kind that the guard makes, one per run. Nothing
// leaks, no false error is reported, and unchecked blocks are counted.
TEST(GuardReportsTest, AFailedDeviceCallCostsACheckAlone) {
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

TEST(GuardReportsTest, SaysOnceWhatItCannotDo) {
  Guarded on;
  on.device().AddFault(FailAll(DeviceCall::kMemsetAsync));
  ::testing::internal::CaptureStderr();
  on.guard->Allocate(1000).reset();
  on.guard->Allocate(1000).reset();
  const std::string log = ::testing::internal::GetCapturedStderr();
  on.device().ClearFaults();
  EXPECT_THAT(log, HasSubstr("cannot fill a new block"));
  EXPECT_EQ(log.find("cannot"), log.rfind("cannot"));
  EXPECT_EQ(on.reporter->skipped(), 2U);  // a free fills blocks that have zones
}

}  // namespace
}  // namespace strata
