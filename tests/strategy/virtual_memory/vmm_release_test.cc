// Releases of virtual_memory that fail, wait or meet a capture.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/chunks/loans.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/calls/device_call.h"
#include "strata/strategy/virtual_memory/sharing/exported_memory.h"
#include "strata/tests/strategy/virtual_memory/vmm_fixture.h"
#include "strata/tests/testing/layers/counting_holder.h"

namespace strata {
namespace {

class VmmReleaseTest : public VmmFixture {
 protected:
  // Leaves free memory, and retired addresses of it.
  void LeaveRetired() {
    std::vector<AllocationPtr> kept = LeaveHalf(a_, 8 * kMiB, 8);
    a_->Allocate(32 * kMiB).reset();
    EXPECT_GT(device().Leaks().mapped_bytes, reserved());
  }
};

TEST_F(VmmReleaseTest, AfterAFailedWaitAllIsReleased) {
  Build();
  LeaveRetired();
  device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  EXPECT_EQ(a_->Release(), 0U);
  EXPECT_EQ(reserved(), 64 * kMiB);
  device().ClearFaults();
  EXPECT_EQ(a_->Release(), 64 * kMiB);
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(VmmReleaseTest, WorkThatBeginsMeanwhileDelaysIt) {
  options_.progress = "manual";
  Build();
  LeaveRetired();
  const CountingHolder asking(pool());
  // The third question is asked after the memory left the lists.
  device().AddFault(FailNth(DeviceCall::kStreamQuery, 3));
  EXPECT_EQ(pool().GiveBackOfOthers(SIZE_MAX, 0, asking), 0U);
  device().ClearFaults();
  EXPECT_EQ(pool().GiveBackOfOthers(SIZE_MAX, 0, asking), 64 * kMiB);
}

TEST_F(VmmReleaseTest, TheEndOfAStreamDuringACaptureCallsNoDriver) {
  Build();
  a_->Allocate(8 * kMiB).reset();
  CaptureGate& gate = place_->timelines()->gate();
  gate.Announce();
  a_.chain_stream->timeline()->End();
  const auto calls = [&] {
    return Calls(DeviceCall::kUnmapRange) + Calls(DeviceCall::kReleaseMemory) +
           Calls(DeviceCall::kFreeRange);
  };
  const std::uint64_t before = calls();
  pool().holders().TellOwnersOfEnd(a_.stream());
  EXPECT_EQ(calls(), before);
  EXPECT_EQ(reserved(), 8 * kMiB);
  gate.Withdraw();
  EXPECT_EQ(a_->Release(), 8 * kMiB);
}

TEST_F(VmmReleaseTest, AnExportWhileTheStrategyEndsKeepsIt) {
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  a_->Allocate(16 * kMiB).reset();
  AllocationPtr block = b_->Allocate(12 * kMiB);
  EXPECT_EQ(reserved(), 16 * kMiB);
  Submit(a_);
  a_.chain_stream->timeline()->End();
  a_ = TestChain();
  device().StepAll();
  // The strategy of the lender asks whether the work of its stream is done.
  ExportedMemory exported;
  device().SetCallObserver([&](const CallRecord& record) {
    if (record.call != DeviceCall::kEventQuery || block == nullptr) return;
    EXPECT_EQ(ExportMapped(*block, &exported), Status::kSuccess);
    block.reset();
    b_->Release();
    pool().loans().Recall(ChunkHolder::LoanRecall::kIdle,
                          HolderList::Asked::kAll);
  });
  pool().loans().EndRetired();
  device().SetCallObserver(nullptr);
  EXPECT_EQ(block, nullptr);
  EXPECT_GE(reserved(), 12 * kMiB);
  exported.Close();
  pool().Release();
  EXPECT_EQ(reserved(), 0U);
}

// After the end of its chain, a program may destroy a stream without a word.
TEST_F(VmmReleaseTest, AStreamThatMayBeGoneIsNotNamed) {
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  const AllocationPtr other = b_->Allocate(2 * kMiB);
  a_->Allocate(8 * kMiB).reset();
  Submit(a_);
  const Stream stream = a_.stream();
  device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  a_ = TestChain();
  device().ClearFaults();
  device().StepAll();
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  device().SetCallObserver([&](const CallRecord& record) {
    EXPECT_NE(record.stream_uid, stream.uid) << DeviceCallName(record.call);
  });
  pool().loans().EndRetired();
  pool().market().GiveBackAll(SIZE_MAX);
  device().SetCallObserver(nullptr);
  EXPECT_EQ(reserved(), 2 * kMiB);
}

TEST_F(VmmReleaseTest, AGrowthLeavesAnIdleLoanWhole) {
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  a_->Allocate(16 * kMiB).reset();
  AllocationPtr block = b_->Allocate(16 * kMiB);
  Submit(b_);
  block.reset();
  block = b_->Allocate(4 * kMiB);
  EXPECT_EQ(reserved(), 20 * kMiB);
  device().StepAll();
}

// The handle is larger than the loan in it.
TEST_F(VmmReleaseTest, AnIdleLoanCountsWithItsHandle) {
  options_.memory_bytes = 80 * 1024 * kMiB;
  Build();
  b_ = place_->AddChain();
  a_->Allocate(64 * kMiB).reset();
  b_->Allocate(kMiB).reset();
  EXPECT_EQ(reserved(), 64 * kMiB);
  EXPECT_EQ(pool().IdleBytes(), 64 * kMiB);
}

// The block begins within a page that its lender uses.
TEST_F(VmmReleaseTest, AnIdleLoanInPartOfAPageReturnsToItsLender) {
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  a_->Allocate(24 * kMiB).reset();
  const AllocationPtr before = a_->Allocate(3 * kMiB);
  AllocationPtr free = a_->Allocate(19 * kMiB);
  const AllocationPtr after = a_->Allocate(2 * kMiB);
  const AllocationPtr rest = b_->Allocate(40 * kMiB);
  ASSERT_EQ(reserved(), 64 * kMiB);
  free.reset();
  AllocationPtr loan = b_->Allocate(19 * kMiB);
  Submit(b_);
  loan.reset();
  Failure failure;
  EXPECT_NE(a_->AllocateOrNull(Request{19 * kMiB}, failure), nullptr);
}

TEST_F(VmmReleaseTest, AnIdleLoanJoinsTheFreeMemoryBesideIt) {
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  a_->Allocate(24 * kMiB).reset();
  const AllocationPtr before = a_->Allocate(3 * kMiB);
  AllocationPtr free = a_->Allocate(19 * kMiB);
  const AllocationPtr after = a_->Allocate(2 * kMiB);
  const AllocationPtr rest = b_->Allocate(40 * kMiB);
  ASSERT_EQ(reserved(), 64 * kMiB);
  free.reset();
  AllocationPtr first = b_->Allocate(6 * kMiB);
  AllocationPtr second = b_->Allocate(13 * kMiB);
  first.reset();
  pool().loans().Recall(ChunkHolder::LoanRecall::kIdle,
                        HolderList::Asked::kAll);
  Submit(b_);
  second.reset();
  Failure failure;
  EXPECT_NE(a_->AllocateOrNull(Request{19 * kMiB}, failure), nullptr);
}

// cudaIpcGetMemHandle knows chunks only.
TEST_F(VmmReleaseTest, AnOfferedLoanServesNoLegacyRequest) {
  options_.progress = "manual";
  Build();
  b_ = place_->AddChain();
  a_->Allocate(8 * kMiB).reset();
  b_->Allocate(8 * kMiB).reset();
  EXPECT_EQ(reserved(), 8 * kMiB);
  Submit(b_);
  device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  device().AddFault(FailAll(DeviceCall::kSynchronize));
  pool().loans().Recall(ChunkHolder::LoanRecall::kWait,
                        HolderList::Asked::kAll);
  device().ClearFaults();
  Failure failure;
  const AllocationPtr chunk = a_->AllocateOrNull(
      Request{.bytes = 8 * kMiB, .flags = kLegacyIpc}, failure);
  EXPECT_NE(chunk, nullptr);
  EXPECT_EQ(Calls(DeviceCall::kMemAlloc), 1U);
  device().StepAll();
}

}  // namespace
}  // namespace strata
