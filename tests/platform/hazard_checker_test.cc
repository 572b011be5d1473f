// The rules of reuse (cuda_semantics.md §5.2): streams, events, host waits and
// blocks. Programs are written as the records of their calls.

#include "strata/platform/check/hazard_checker.h"

#include <gtest/gtest.h>

#include "strata/tests/testing/record_script.h"

namespace strata {
namespace {

constexpr std::uint64_t kChunk = 0x100000;
constexpr std::uint64_t kBlock = 0x1000;  // bytes of a block
constexpr std::uint64_t kEvent = 0xe1;
constexpr std::uint64_t kOther = 0xe2;
constexpr std::uint64_t kA = 3;  // streams
constexpr std::uint64_t kB = 7;

class HazardCheckerTest : public testing::Test {
 protected:
  HazardCheckerTest() {
    run_.CreateStream(kA);
    run_.CreateStream(kB);
    run_.MemAlloc(kChunk, 1 << 20);
  }

  // A block that stream A wrote.
  void WriteOnA() {
    run_.Alloc(kChunk, kBlock, kA);
    run_.Write(kChunk, kBlock, kA);
  }
  // The same memory, for stream B, and used there.
  void ReuseOnB() {
    run_.Alloc(kChunk, kBlock, kB);
    run_.Write(kChunk, kBlock, kB);
  }

  RecordScript run_;
};

// cuda_semantics M1, T77
TEST_F(HazardCheckerTest, SameStreamMayReuseAtOnce) {
  WriteOnA();
  run_.Free(kChunk, kA);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M2, M3, T77
TEST_F(HazardCheckerTest, OtherStreamMayReuseBehindAnEventOfTheFree) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.Wait(kB, kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics R2: waits are transitive.
TEST_F(HazardCheckerTest, WaitThroughAThirdStreamCounts) {
  run_.CreateStream(9);
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.Wait(9, kEvent);
  run_.Record(kOther, 9);
  run_.Wait(kB, kOther);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M4, T77
TEST_F(HazardCheckerTest, OtherStreamMayReuseWhatTheHostSawDone) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M5, T77
TEST_F(HazardCheckerTest, OtherStreamMayReuseAfterADeviceSync) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.SyncDevice();
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, ReuseWithoutAnyWaitIsARaceThatNamesBothSides) {
  WriteOnA();
  run_.Free(kChunk, kA);
  ReuseOnB();
  ASSERT_GE(run_.checker.hazards().size(), 2U);
  // The hand-out shows it, and then the use.
  const HazardReport& report = run_.checker.hazards().back();
  EXPECT_EQ(report.kind, HazardKind::kReuseRace);
  EXPECT_EQ(report.first.stream_uid, kA);
  EXPECT_EQ(report.second.stream_uid, kB);
  EXPECT_EQ(report.second.call, DeviceCall::kMemsetAsync);
  EXPECT_EQ(report.ptr, kChunk);
  EXPECT_EQ(report.bytes, kBlock);
  ASSERT_TRUE(report.first_life && report.second_life);
  ASSERT_TRUE(report.first_life->freed);
  EXPECT_EQ(report.first_life->freed->number, 6U);
  EXPECT_EQ(report.second_life->allocated.number, 7U);
  EXPECT_FALSE(report.second_life->freed);
  EXPECT_NE(report.missing.find("stream 7 never waited for stream 3's"),
            std::string::npos)
      << report.missing;
}

// cuda_semantics R4: an answer "not ready" proves nothing.
TEST_F(HazardCheckerTest, QueryThatIsNotReadyProvesNothing) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.Query(kEvent, Status::kNotReady);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, T81: the event is recorded when the block is marked, not when it is
// freed, and misses what B does in between.
TEST_F(HazardCheckerTest, EventOfTheMarkMissesLaterUses) {
  WriteOnA();
  run_.Record(kOther, kA);
  run_.Wait(kB, kOther);
  run_.Read(kChunk, kBlock, kB);
  run_.Mark(kChunk, kB);
  run_.Record(kEvent, kB);
  run_.Read(kChunk, kBlock, kB);
  run_.Free(kChunk, kA);
  run_.SyncEvent(kEvent);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T81: after the event of the free it is clean.
TEST_F(HazardCheckerTest, EventAfterTheLastUseOfAMarkedStreamSuffices) {
  WriteOnA();
  run_.Record(kOther, kA);
  run_.Wait(kB, kOther);
  run_.Read(kChunk, kBlock, kB);
  run_.Mark(kChunk, kB);
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kB);
  run_.SyncEvent(kEvent);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "");
}

// T77
TEST_F(HazardCheckerTest, EventBeforeTheLastUseProvesNothing) {
  WriteOnA();
  run_.Record(kEvent, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Wait(kB, kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77: B uses the block, only A is asked.
TEST_F(HazardCheckerTest, AskingOnlyTheOwnersStreamIsNotEnough) {
  run_.CreateStream(9);
  WriteOnA();
  run_.Record(kOther, kA);
  run_.Wait(kB, kOther);
  run_.Read(kChunk, kBlock, kB);
  run_.Mark(kChunk, kB);
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.SyncEvent(kEvent);
  run_.Alloc(kChunk, kBlock, 9);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
  const HazardReport& report = run_.checker.hazards().front();
  EXPECT_EQ(report.first.stream_uid, kB);
  EXPECT_NE(report.missing.find("knew of stream 7"), std::string::npos)
      << report.missing;
}

// The same without a mark: the report says which one is missing.
TEST_F(HazardCheckerTest, MissingMarkIsNamed) {
  WriteOnA();
  run_.Record(kOther, kA);
  run_.Wait(kB, kOther);
  run_.Read(kChunk, kBlock, kB);
  run_.Free(kChunk, kA);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
  EXPECT_NE(run_.checker.hazards().front().missing.find(
                "freed in stream 3 without RecordStream(7)"),
            std::string::npos)
      << run_.checker.hazards().front().missing;
}

// T77, cuda_semantics S7: a new stream with an old handle is another stream.
TEST_F(HazardCheckerTest, WaitForARecycledHandleProvesNothing) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.DestroyStream(kA);
  run_.CreateStream(11);  // with the handle of A
  run_.Sync(11);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics M9: what a destroyed stream recorded before still counts, and
// so does a wait for the device.
TEST_F(HazardCheckerTest, DestroyedStreamIsCoveredByItsLastEvent) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.DestroyStream(kA);
  run_.Wait(kB, kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, DestroyedStreamIsCoveredByADeviceSync) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.DestroyStream(kA);
  run_.SyncDevice();
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// A component that goes to a new stream proves nothing about the old one.
TEST_F(HazardCheckerTest, StreamInThePlaceOfADestroyedOneProvesNothing) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.SyncDevice();
  run_.DestroyStream(kA);
  run_.CreateStream(11);  // by a thread that has seen all of A
  run_.Write(kChunk + kBlock, kBlock, 11);
  run_.Alloc(kChunk + 2 * kBlock, kBlock, 11);
  run_.Write(kChunk + 2 * kBlock, kBlock, 11);
  run_.Free(kChunk + 2 * kBlock, 11);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Alloc(kChunk + 2 * kBlock, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, cuda_semantics S6
TEST_F(HazardCheckerTest, LegacyStreamOfAnotherDeviceProvesNothing) {
  run_.CreateStream(5, 0);
  run_.Alloc(kChunk, kBlock, 5);
  run_.Write(kChunk, kBlock, 5);
  run_.Free(kChunk, 5);
  run_.device = 1;
  run_.Sync(1);
  run_.device = 0;
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardCheckerTest, LegacyStreamOfTheDeviceCoversBlockingStreams) {
  run_.CreateStream(5, 0);
  run_.Alloc(kChunk, kBlock, 5);
  run_.Write(kChunk, kBlock, 5);
  run_.Free(kChunk, 5);
  run_.Sync(1);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// T82, T77
TEST_F(HazardCheckerTest, LegacyEventDoesNotCoverANonBlockingStream) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, 1);
  run_.Wait(kB, kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics R3: the legacy stream stands between two blocking ones.
TEST_F(HazardCheckerTest, LegacyWorkOrdersBlockingStreams) {
  run_.CreateStream(5, 0);
  run_.CreateStream(6, 0);
  run_.Alloc(kChunk, kBlock, 5);
  run_.Write(kChunk, kBlock, 5);
  run_.Free(kChunk, 5);
  run_.Write(kChunk + kBlock, kBlock, 1);
  run_.Alloc(kChunk, kBlock, 6);
  run_.Write(kChunk, kBlock, 6);
  EXPECT_EQ(run_.Kinds(), "");
}

// T77, cuda_semantics H3: a free does not wait for anything.
TEST_F(HazardCheckerTest, FreeOfOtherMemoryProvesNothing) {
  run_.MemAlloc(0x900000, 4096);
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.MemFree(0x900000);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, cuda_semantics E1: what a wait is for is what the event stands for then.
TEST_F(HazardCheckerTest, EventRecordedAgainElsewhereProvesNothing) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.Record(kEvent, kB);
  run_.SyncEvent(kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics E2, T3
TEST_F(HazardCheckerTest, WaitIsNotChangedByALaterRecord) {
  WriteOnA();
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kA);
  run_.Wait(kB, kEvent);
  run_.Record(kEvent, kB);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics R5: what one thread saw, another one does not know.
TEST_F(HazardCheckerTest, WhatAThreadSawIsItsOwnUntilItSaysSo) {
  WriteOnA();
  run_.Write(kChunk + kBlock, kBlock, kA);
  run_.Sync(kA);
  run_.thread = 2;
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

TEST_F(HazardCheckerTest, ReleaseAndAcquireHandOnWhatAThreadSaw) {
  WriteOnA();
  run_.Sync(kA);
  run_.Release(0x77);
  run_.thread = 2;
  run_.Acquire(0x77);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics R5: an allocator's lock orders its calls.
TEST_F(HazardCheckerTest, BlockEventsHandOnWhatAThreadSaw) {
  WriteOnA();
  run_.Sync(kA);
  run_.Free(kChunk, kA);
  run_.thread = 2;
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

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
  WriteOnA();
  run_.Free(kChunk, kA);
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

// cuda_semantics M10: parts of a former block keep its obligations.
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
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk + kBlock, kBlock, kB);
  run_.Write(kChunk + kBlock, kBlock, kB);
  run_.Free(kChunk + kBlock, kB);
  run_.Record(kEvent, kA);
  run_.Wait(9, kEvent);
  run_.Alloc(kChunk, 2 * kBlock, 9);  // knows of A alone
  ASSERT_EQ(run_.Kinds(), "reuse-race");
  EXPECT_EQ(run_.checker.hazards()[0].first.stream_uid, kB);
}

// The first life's use is found behind a second life that nobody used.
TEST_F(HazardCheckerTest, UsesOutliveALifeWithoutUses) {
  WriteOnA();
  run_.Free(kChunk, 0);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  run_.Alloc(kChunk, kBlock, kB);
  run_.Free(kChunk, 0);
  EXPECT_EQ(run_.Kinds(), "");
  run_.thread = 2;
  run_.CreateStream(9);  // by a thread that has seen nothing
  run_.Write(kChunk + kBlock, 8, 9);
  run_.Read(kChunk, kBlock, 9);
  EXPECT_EQ(run_.Kinds(), "use-after-free reuse-race");
}

// A GPU does not say what kernels use: marks and frees stand for it.
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

// A stream that did nothing since it was created used nothing.
TEST_F(HazardCheckerTest, MarkForAnIdleStreamIsNoUse) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Mark(kChunk, kB);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M7, T78
TEST_F(HazardCheckerTest, PinnedBlockGoesToTheHostOnlyWhenItSawTheEnd) {
  run_.MallocHost(0x700000, 0x10000);
  run_.Alloc(0x700000, kBlock, kA);
  run_.Copy(kChunk, 0x700000, kBlock, kA);
  run_.Mark(0x700000, kA);
  run_.Free(0x700000, kA);
  run_.Alloc(0x700000, kBlock, kA);  // the same stream is not enough
  EXPECT_EQ(run_.Kinds(), "host-reuse");
}

TEST_F(HazardCheckerTest, PinnedBlockAfterAHostWaitIsClean) {
  run_.MallocHost(0x700000, 0x10000);
  run_.Alloc(0x700000, kBlock, kA);
  run_.Copy(kChunk, 0x700000, kBlock, kA);
  run_.Free(0x700000, kA);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  run_.Alloc(0x700000, kBlock, kA);
  run_.Sync(kA);
  run_.FreeHost(0x700000);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics H6: a copy to pageable memory has happened when it returns.
TEST_F(HazardCheckerTest, CopyToPageableMemoryIsAHostWait) {
  WriteOnA();
  run_.Copy(0x4000, kChunk, kBlock, kA);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics P1, P2
TEST_F(HazardCheckerTest, PoolMemoryIsThereBetweenItsOperations) {
  const std::uint64_t ptr = 0x800000;
  run_.PoolAlloc(ptr, kBlock, kA);
  run_.Write(ptr, kBlock, kA);
  run_.Record(kEvent, kA);
  run_.Wait(kB, kEvent);
  run_.Write(ptr, kBlock, kB);
  run_.PoolFree(ptr, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerTest, PoolMemoryBeforeItsAllocationIsFound) {
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.Write(0x800000, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "use-before-alloc");
}

TEST_F(HazardCheckerTest, PoolMemoryFreedBesideAUseIsFound) {
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.Record(kEvent, kA);
  run_.Wait(kB, kEvent);
  run_.Write(0x800000, kBlock, kB);
  run_.PoolFree(0x800000, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

TEST_F(HazardCheckerTest, PoolMemoryUsedBehindItsFreeIsFound) {
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.PoolFree(0x800000, kA);
  run_.Write(0x800000, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// cuda_semantics R7, P4: the pool orders its own reuse.
TEST_F(HazardCheckerTest, PoolMayGiveToOtherStreamsWhatItHas) {
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.Write(0x800000, kBlock, kA);
  run_.PoolFree(0x800000, kA);
  run_.PoolAlloc(0x800000, kBlock, kB);
  run_.Write(0x800000, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics H3, M6
TEST_F(HazardCheckerTest, MemFreeOfPoolMemoryInUseIsFound) {
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.Write(0x800000, kBlock, kA);
  run_.MemFree(0x800000);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

class HazardCheckerMappingTest : public HazardCheckerTest {
 protected:
  static constexpr std::uint64_t kPage = 2 << 20;
  static constexpr std::uint64_t kLow = 0x10000000;
  static constexpr std::uint64_t kHigh = 0x20000000;
  HazardCheckerMappingTest() {
    run_.CreateMemory(0x51, kPage);
    run_.CreateMemory(0x52, kPage);
    run_.Map(kLow, kPage, 0x51);
  }
};

// T83, cuda_semantics V9
TEST_F(HazardCheckerMappingTest, AliasWithoutOrderIsFound) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Write(kLow, kBlock, kA);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "alias-incoherent");
}

TEST_F(HazardCheckerMappingTest, AliasInOrderIsClean) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Write(kLow, kBlock, kA);
  run_.Record(kEvent, kA);
  run_.Wait(kB, kEvent);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerMappingTest, AliasesThatOnlyReadAreClean) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Read(kLow, kBlock, kA);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// T75, cuda_semantics V8
TEST_F(HazardCheckerMappingTest, UnmapInUseIsFound) {
  run_.Write(kLow, kBlock, kA);
  run_.Unmap(kLow, kPage);
  EXPECT_EQ(run_.Kinds(), "unmap-in-use");
}

TEST_F(HazardCheckerMappingTest, UnmapBesideAUseThroughTheOtherAliasIsClean) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Write(kHigh, kBlock, kA);
  run_.Unmap(kLow, kPage);
  EXPECT_EQ(run_.Kinds(), "");
}

// Physical identity: the same memory behind other addresses.
TEST_F(HazardCheckerMappingTest, BlockIsKnownAgainAtOtherAddresses) {
  run_.Map(kHigh, kPage, 0x51);
  run_.Alloc(kLow, kBlock, kA);
  run_.Write(kLow, kBlock, kA);
  run_.Free(kLow, 0);
  run_.Alloc(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardCheckerMappingTest, OtherMemoryAtTheSameAddressesIsClean) {
  run_.Write(kLow, kBlock, kA);
  run_.Sync(kA);
  run_.Unmap(kLow, kPage);
  run_.Map(kLow, kPage, 0x52);
  run_.Write(kLow, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCheckerMappingTest, MemoryOutlivesItsHandleWhileItIsMapped) {
  run_.Map(kHigh, kPage, 0x51);
  run_.ReleaseMemory(0x51);
  run_.Write(kLow, kBlock, kA);
  run_.Read(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "alias-incoherent");
}

// cuda_semantics V12
TEST_F(HazardCheckerMappingTest, RetainedHandleIsTheSameMemory) {
  run_.Add(DeviceCall::kRetainMemory, kLow, 0, 0x99);
  run_.Map(kHigh, kPage, 0x99);
  run_.Write(kLow, kBlock, kA);
  run_.Write(kHigh, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "alias-incoherent");
}

TEST_F(HazardCheckerTest, KeepsTheFirstReportsAndCountsAll) {
  for (int i = 0; i < 100; ++i) {
    run_.Alloc(kChunk, kBlock, kA);
    run_.Write(kChunk, kBlock, kA);
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
}  // namespace strata
