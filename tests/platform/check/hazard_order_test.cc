// Order before a reuse (cuda_semantics.md §5.2): streams, events, waits of the
//   host, and messages between threads.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/platform/stream.h"
#include "strata/tests/platform/check/hazard_fixture.h"

namespace strata::check {
namespace {

class HazardOrderTest : public HazardFixture {};

// cuda_semantics M1, T77
TEST_F(HazardOrderTest, SameStreamMayReuseAtOnce) {
  UseOnA();
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M2, M3, T77
TEST_F(HazardOrderTest, OtherStreamMayReuseBehindAnEventOfTheFree) {
  UseOnA();
  run_.Order(kEvent, kA, kB);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics R2: waits are transitive.
TEST_F(HazardOrderTest, WaitThroughAThirdStreamCounts) {
  run_.CreateStream(9);
  UseOnA();
  run_.Order(kEvent, kA, 9);
  run_.Order(kOther, 9, kB);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M4, T77
TEST_F(HazardOrderTest, OtherStreamMayReuseWhatTheHostSawDone) {
  UseOnA();
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics M5, T77
TEST_F(HazardOrderTest, OtherStreamMayReuseAfterADeviceSync) {
  UseOnA();
  run_.SyncDevice();
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardOrderTest, ReuseWithoutAnyWaitIsARaceThatNamesBothSides) {
  UseOnA();
  ReuseOnB();
  ASSERT_GE(run_.checker.hazards().size(), 2U);
  // Reported at the allocation, and again at the use.
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
TEST_F(HazardOrderTest, QueryThatIsNotReadyProvesNothing) {
  UseOnA();
  run_.Record(kEvent, kA);
  run_.Query(kEvent, Status::kNotReady);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, T81: the event is recorded at the mark, not at the free, so it misses
// the work of B in between.
TEST_F(HazardOrderTest, EventOfTheMarkMissesLaterUses) {
  WriteOnA();
  run_.Order(kOther, kA, kB);
  run_.Read(kChunk, kBlock, kB);
  run_.Mark(kChunk, kB);
  run_.Record(kEvent, kB);
  run_.Read(kChunk, kBlock, kB);
  run_.Free(kChunk, kA);
  run_.SyncEvent(kEvent);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T81: after the event of the free, the reuse is clean.
TEST_F(HazardOrderTest, EventAfterTheLastUseOfAMarkedStreamSuffices) {
  WriteOnA();
  run_.Order(kOther, kA, kB);
  run_.Read(kChunk, kBlock, kB);
  run_.Mark(kChunk, kB);
  run_.Free(kChunk, kA);
  run_.Record(kEvent, kB);
  run_.SyncEvent(kEvent);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "");
}

// The caller knows that the use ends with the event, whatever the stream does
// afterwards.
TEST_F(HazardOrderTest, MarkUpToAnEventIsNoUseBehindTheEvent) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Read(kChunk + kBlock, 8, kB);  // stands for a kernel in B
  run_.Record(kEvent, kB);
  run_.Read(kChunk + kBlock, 8, kB);
  run_.Mark(kChunk, kB);
  run_.Add(DeviceCall::kBlockMark, kChunk, 0, kEvent, kB);
  run_.Free(kChunk, kA);
  run_.SyncEvent(kEvent);
  run_.Alloc(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardOrderTest, MarkUpToAnEventIsAUseBeforeTheEvent) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Read(kChunk + kBlock, 8, kB);
  run_.Record(kEvent, kB);
  run_.Add(DeviceCall::kBlockMark, kChunk, 0, kEvent, kB);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77
TEST_F(HazardOrderTest, EventBeforeTheLastUseProvesNothing) {
  WriteOnA();
  run_.Record(kEvent, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Wait(kB, kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77: B uses the block, but only A is queried.
TEST_F(HazardOrderTest, AskingOnlyTheOwnersStreamIsNotEnough) {
  run_.CreateStream(9);
  WriteOnA();
  run_.Order(kOther, kA, kB);
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

// Likewise without a mark: the report names the missing one.
TEST_F(HazardOrderTest, MissingMarkIsNamed) {
  WriteOnA();
  run_.Order(kOther, kA, kB);
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
TEST_F(HazardOrderTest, WaitForARecycledHandleProvesNothing) {
  UseOnA();
  run_.DestroyStream(kA);
  run_.CreateStream(11);  // with the handle of A
  run_.Sync(11);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics M9: events that a destroyed stream recorded still count, and
// so does a wait for the device.
TEST_F(HazardOrderTest, DestroyedStreamIsCoveredByItsLastEvent) {
  UseOnA();
  run_.Record(kEvent, kA);
  run_.DestroyStream(kA);
  run_.Wait(kB, kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardOrderTest, DestroyedStreamIsCoveredByADeviceSync) {
  UseOnA();
  run_.DestroyStream(kA);
  run_.SyncDevice();
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// A component reused by a new stream proves nothing about the old one.
TEST_F(HazardOrderTest, StreamInThePlaceOfADestroyedOneProvesNothing) {
  UseOnA();
  run_.SyncDevice();
  run_.DestroyStream(kA);
  run_.CreateStream(11);  // by a thread that saw all work of A
  run_.Write(kChunk + kBlock, kBlock, 11);
  run_.AllocWriteFree(kChunk + 2 * kBlock, kBlock, 11);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Alloc(kChunk + 2 * kBlock, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, cuda_semantics S6
TEST_F(HazardOrderTest, LegacyStreamOfAnotherDeviceProvesNothing) {
  run_.CreateStream(5, 0);
  run_.AllocWriteFree(kChunk, kBlock, 5);
  run_.device = 1;
  run_.Sync(1);
  run_.device = 0;
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardOrderTest, LegacyStreamOfTheDeviceCoversBlockingStreams) {
  run_.CreateStream(5, 0);
  run_.AllocWriteFree(kChunk, kBlock, 5);
  run_.Sync(1);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// T82, T77
TEST_F(HazardOrderTest, LegacyEventDoesNotCoverANonBlockingStream) {
  UseOnA();
  run_.Order(kEvent, 1, kB);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics R3: the legacy stream lies between two blocking ones.
TEST_F(HazardOrderTest, LegacyWorkOrdersBlockingStreams) {
  run_.CreateStream(5, 0);
  run_.CreateStream(6, 0);
  run_.AllocWriteFree(kChunk, kBlock, 5);
  run_.Write(kChunk + kBlock, kBlock, 1);
  run_.AllocWrite(kChunk, kBlock, 6);
  EXPECT_EQ(run_.Kinds(), "");
}

// The per-thread streams of a GPU have uids from 2^63.
TEST_F(HazardOrderTest, StreamWithAHighUidIsNotTheLegacyStream) {
  run_.CreateStream(5, 0);
  run_.Write(kChunk + kBlock, kBlock, 5);
  run_.AllocWriteFree(kChunk, kBlock, std::uint64_t{1} << 63);
  run_.AllocWrite(kChunk, kBlock, 5);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// A stream that the runtime created is known only from its wrapping.
TEST_F(HazardOrderTest, WrappedStreamIsBlockingOrNotAsItsFlagsSay) {
  run_.Add(DeviceCall::kWrapStream, 0x77, 0, kStreamNonBlocking, 5);
  run_.Add(DeviceCall::kWrapStream, 0x78, 0, 0, 6);
  run_.AllocWriteFree(kChunk, kBlock, 6);
  run_.AllocWrite(kChunk, kBlock, 1);
  EXPECT_EQ(run_.Kinds(), "");
  run_.AllocWriteFree(kChunk + kBlock, kBlock, 5);
  run_.AllocWrite(kChunk + kBlock, kBlock, 1);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// Some devices did not report the flags of wrapped streams.
TEST_F(HazardOrderTest, WrappingACreatedStreamChangesNothing) {
  UseOnA();
  run_.Add(DeviceCall::kWrapStream, 0x77, 0, 0, kA);
  run_.Write(kChunk + kBlock, kBlock, 1);
  run_.AllocWrite(kChunk, kBlock, 1);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, cuda_semantics H3: a free does not wait for other memory.
TEST_F(HazardOrderTest, FreeOfOtherMemoryProvesNothing) {
  run_.MemAlloc(0x900000, 4096);
  UseOnA();
  run_.MemFree(0x900000);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// T77, cuda_semantics E1: a wait covers the work that the event covers at that
// time.
TEST_F(HazardOrderTest, EventRecordedAgainElsewhereProvesNothing) {
  UseOnA();
  run_.Record(kEvent, kA);
  run_.Record(kEvent, kB);
  run_.SyncEvent(kEvent);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

// cuda_semantics E2, T3
TEST_F(HazardOrderTest, WaitIsNotChangedByALaterRecord) {
  UseOnA();
  run_.Order(kEvent, kA, kB);
  run_.Record(kEvent, kB);
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics R5: a thread does not know the waits of another thread.
TEST_F(HazardOrderTest, WhatAThreadSawIsItsOwnUntilItSaysSo) {
  WriteOnA();
  run_.Write(kChunk + kBlock, kBlock, kA);
  run_.Sync(kA);
  run_.thread = 2;
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

TEST_F(HazardOrderTest, ReleaseAndAcquireHandOnWhatAThreadSaw) {
  WriteOnA();
  run_.Sync(kA);
  run_.Release(0x77);
  run_.thread = 2;
  run_.Acquire(0x77);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics R5: an allocator's lock orders its calls.
TEST_F(HazardOrderTest, BlockEventsHandOnWhatAThreadSaw) {
  WriteOnA();
  run_.Sync(kA);
  run_.Free(kChunk, kA);
  run_.thread = 2;
  ReuseOnB();
  EXPECT_EQ(run_.Kinds(), "");
}

}  // namespace
}  // namespace strata::check
