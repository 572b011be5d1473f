// Hazards of memory uses (cuda_semantics.md §5.2): blocks, their parts and
// owners, and the reports.

#include "strata/platform/check/hazard_checker.h"

#include <gtest/gtest.h>

#include "strata/tests/platform/check/hazard_fixture.h"

namespace strata::check {
namespace {

class HazardCheckerTest : public HazardFixture {};

// cuda_semantics M6, T18
TEST_F(HazardCheckerTest, MemFreeInUseIsFoundWhateverTheFreeDoes) {
  WriteOnA();
  run_.MemFree(kChunk);
  ASSERT_EQ(run_.Kinds(), "free-in-use");
  EXPECT_NE(run_.checker.hazards()[0].missing.find(
                "thread 1 never waited for stream 3's memset_async"),
            std::string::npos);
}

TEST_F(HazardCheckerTest, MemFreeAfterTheHostWaitedIsClean) {
  WriteOnA();
  run_.Sync(kA);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, UseOfFreedMemoryIsFound) {
  run_.MemFree(kChunk);
  run_.Write(kChunk + 64, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

TEST_F(HazardCheckerTest, UseOfAFreedBlockIsFound) {
  UseOnA();
  run_.Write(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

TEST_F(HazardCheckerTest, MemoryThatNoCallMadeIsNobodysAffair) {
  run_.Write(0x5000, kBlock, kA);
  run_.Write(0x5000, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, OrderWithinOneBlockIsTheProgramsAffair) {
  WriteOnA();
  run_.Write(kChunk, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, BlocksOfNothingAreIgnored) {
  run_.Alloc(0, 0, kA);
  run_.Free(0, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, BlockInALiveBlockIsFound) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Alloc(kChunk + kBlock - 1, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "overlap");
}

TEST_F(HazardCheckerTest, CallThatFailedDidNothing) {
  WriteOnA();
  run_.Add(DeviceCall::kMemFree, kChunk, 0, 0, 0, Status::kInvalidValue);
  run_.Free(kChunk, kA);
  run_.Add(DeviceCall::kStreamSynchronize, 0, 0, 0, kA,
           Status::kIllegalAddress);
  EXPECT_EQ(run_.Kinds(), "");
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics M10: parts of a former block inherit its uses.
TEST_F(HazardCheckerTest, PartsInheritTheUsesOfTheWhole) {
  run_.Alloc(kChunk, 4 * kBlock, kA);
  run_.Write(kChunk + 2 * kBlock, kBlock, kA);
  run_.Free(kChunk, 0);
  run_.Alloc(kChunk, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");  // nothing used this part
  run_.Alloc(kChunk + 2 * kBlock, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardCheckerTest, WholeInheritsTheUsesOfItsParts) {
  run_.CreateStream(9);
  UseOnA();
  run_.AllocWriteFree(kChunk + kBlock, kBlock, kB);
  run_.Order(kEvent, kA, 9);
  run_.Alloc(kChunk, 2 * kBlock, 9);  // ordered only behind A
  ASSERT_EQ(run_.Kinds(), "reuse-race");
  EXPECT_EQ(run_.checker.hazards()[0].first.stream_uid, kB);
}

// A use of the first life is found through an unused second life.
TEST_F(HazardCheckerTest, UsesOutliveALifeWithoutUses) {
  WriteOnA();
  run_.Free(kChunk, 0);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  run_.Alloc(kChunk, kBlock, kB);
  run_.Free(kChunk, 0);
  EXPECT_EQ(run_.Kinds(), "");
  run_.thread = 2;
  run_.CreateStream(9);  // by a thread without any waits
  run_.Write(kChunk + kBlock, 8, 9);
  run_.Read(kChunk, kBlock, 9);
  EXPECT_EQ(run_.Kinds(), "use-after-free reuse-race");
}

// A GPU does not report the memory that kernels use: marks and frees stand for
// those uses.
TEST_F(HazardCheckerTest, MarkCountsAsAUseOfTheStreamsWork) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Read(kChunk + kBlock, 8, kB);  // stands for a kernel in B
  run_.Mark(kChunk, kB);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kA);
  ASSERT_EQ(run_.Kinds(), "reuse-race");
  EXPECT_EQ(run_.checker.hazards()[0].first.call, DeviceCall::kBlockMark);
}

TEST_F(HazardCheckerTest, FreeCountsAsAUseOfTheStreamsWork) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Read(kChunk + kBlock, 8, kA);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kB);
  ASSERT_EQ(run_.Kinds(), "reuse-race");
  EXPECT_EQ(run_.checker.hazards()[0].first.call, DeviceCall::kBlockFree);
}

// A stream without work since its creation has no uses.
TEST_F(HazardCheckerTest, MarkForAnIdleStreamIsNoUse) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Mark(kChunk, kB);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M7, T78
TEST_F(HazardCheckerTest, PinnedBlockGoesToTheHostOnlyWhenItSawTheEnd) {
  run_.MallocHost(kPinned, 0x10000);
  run_.Alloc(kPinned, kBlock, kA);
  run_.Copy(kChunk, kPinned, kBlock, kA);
  run_.Mark(kPinned, kA);
  run_.Free(kPinned, kA);
  run_.Alloc(kPinned, kBlock, kA);  // not enough: needs a host wait
  EXPECT_EQ(run_.Kinds(), "host-reuse");
}

TEST_F(HazardCheckerTest, PinnedBlockAfterAHostWaitIsClean) {
  run_.MallocHost(kPinned, 0x10000);
  run_.Alloc(kPinned, kBlock, kA);
  run_.Copy(kChunk, kPinned, kBlock, kA);
  run_.Free(kPinned, kA);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  run_.Alloc(kPinned, kBlock, kA);
  run_.Sync(kA);
  run_.FreeHost(kPinned);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics H6: a copy to pageable memory is complete when it returns.
TEST_F(HazardCheckerTest, CopyToPageableMemoryIsAHostWait) {
  WriteOnA();
  run_.Copy(0x4000, kChunk, kBlock, kA);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, KeepsTheFirstReportsAndCountsAll) {
  for (int i = 0; i < 100; ++i) {
    WriteOnA();
    run_.Free(kChunk, 0);
    run_.Alloc(kChunk, kBlock, kB);
    run_.Free(kChunk, 0);
    run_.SyncDevice();
  }
  EXPECT_EQ(run_.checker.hazards().size(), HazardLog::kMaxKept);
  EXPECT_EQ(run_.checker.hazard_count(), 100U);
}

TEST_F(HazardCheckerTest, HandlerIsToldAtOnce) {
  int told = 0;
  HazardChecker checker([&](const HazardReport& report) {
    ++told;
    EXPECT_EQ(report.kind, HazardKind::kFreeInUse);
  });
  WriteOnA();
  run_.MemFree(kChunk);
  for (const CallRecord& record : run_.records) checker.Observe(record);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace strata::check
