// Calls that conflict with a capture in every mode: check A of
// cuda_semantics.md §2.2 (C12, C16) and T26, T27, T30-T33.

#include <atomic>
#include <string>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class CaptureConflictsConformanceTest : public CaptureFixture {
 protected:
  // The capture was invalidated: expects that it ends without a graph.
  void ExpectHit(const Stream& stream) {
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kInvalidated);
    ExpectEnd(stream, Status::kStreamCaptureInvalidated);
  }

  // The result of Synchronize in another thread, during a capture of `mode`.
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureConflictsConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(CaptureConflictsConformanceTest, T26CapturingStreamCannotBeQueried) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    Begin(stream, mode);
    EXPECT_EQ(device().StreamQuery(stream), Status::kStreamCaptureUnsupported)
        << NameOf(mode);
    ExpectHit(stream);
  }
}

TEST_P(CaptureConflictsConformanceTest, T26CapturingStreamCannotBeWaitedFor) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    Begin(stream, mode);
    EXPECT_EQ(device().StreamSynchronize(stream),
              Status::kStreamCaptureUnsupported)
        << NameOf(mode);
    ExpectHit(stream);
  }
}

// The mode of the thread does not matter either.
TEST_P(CaptureConflictsConformanceTest, T26RelaxedThreadIsRefusedToo) {
  const Stream stream = NewStream();
  Begin(stream);
  {
    const ThreadCaptureMode relaxed(&device(), CaptureMode::kRelaxed);
    EXPECT_EQ(device().StreamQuery(stream), Status::kStreamCaptureUnsupported);
  }
  ExpectHit(stream);
}

TEST_P(CaptureConflictsConformanceTest, T27CapturedEventCannotBeQueried) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    const Event event = NewEvent();
    Begin(stream, mode);
    ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
    EXPECT_EQ(device().EventQuery(event), Status::kCapturedEvent)
        << NameOf(mode);
    ExpectHit(stream);
  }
}

TEST_P(CaptureConflictsConformanceTest, T27CapturedEventCannotBeWaitedFor) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    const Event event = NewEvent();
    Begin(stream, mode);
    ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
    EXPECT_EQ(device().EventSynchronize(event), Status::kCapturedEvent)
        << NameOf(mode);
    ExpectHit(stream);
  }
}

// Calls with an event of an ended capture.
TEST_P(CaptureConflictsConformanceTest, T27EventsOfAFinishedCaptureAreOfNoUse) {
  const Stream stream = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  End(stream);
  EXPECT_EQ(device().EventQuery(event), Status::kInvalidValue);
  EXPECT_EQ(device().EventSynchronize(event), Status::kInvalidValue);
  EXPECT_EQ(device().StreamWaitEvent(stream, event, 0), Status::kInvalidValue);
  Begin(stream);
  EXPECT_EQ(device().StreamWaitEvent(stream, event, 0), Status::kInvalidValue);
  ExpectHit(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
}

TEST_P(CaptureConflictsConformanceTest, T30DeviceCannotBeWaitedFor) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    Begin(stream, mode);
    EXPECT_EQ(device().Synchronize(), Status::kStreamCaptureUnsupported)
        << NameOf(mode);
    ExpectHit(stream);
  }
}

// C23: in any mode.
TEST_P(CaptureConflictsConformanceTest, T30OtherThreadsCannotWaitEither) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    Begin(stream, mode);
    Elsewhere([&] {
      EXPECT_EQ(device().Synchronize(), Status::kStreamCaptureUnsupported)
          << NameOf(mode);
    });
    ExpectHit(stream);
  }
}

TEST_P(CaptureConflictsConformanceTest, T31OtherDevicesTakeNoPart) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Stream stream = NewStream(kStreamDefault, 0);
  const DevicePtr ptr = NewMemory(kBlockBytes, 1);
  std::atomic<int>* const runs = NewCounter();
  Begin(stream, CaptureMode::kThreadLocal);
  Elsewhere([&] {
    EXPECT_EQ(
        device(1).MemsetAsync(ptr, 0x11, kBlockBytes, device(1).LegacyStream()),
        Status::kSuccess);
    EXPECT_EQ(device(1).Synchronize(), Status::kSuccess);
  });
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
  Count(stream, runs);
  Replay(NewExec(End(stream)));
  EXPECT_EQ(*runs, 1);
  ExpectWords(ptr, kBlockBytes, kFirst, 1);
}

TEST_P(CaptureConflictsConformanceTest, T32LegacyWorkHitsBlockingStreams) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const DevicePtr other = NewMemory(kBlockBytes);
  const Stream legacy = device().LegacyStream();
  std::atomic<int>* const runs = NewCounter();
  Write(ptr, kBlockBytes, kFirst, legacy);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream(kStreamDefault);
    Begin(stream, mode);
    EXPECT_EQ(device().MemsetAsync(ptr, 0, kBlockBytes, legacy),
              Status::kStreamCaptureImplicit);
    ExpectHit(stream);
    Begin(stream, mode);
    EXPECT_EQ(device().MemcpyAsync(other, ptr, kBlockBytes, legacy),
              Status::kStreamCaptureImplicit);
    ExpectHit(stream);
    Begin(stream, mode);
    EXPECT_EQ(
        device().LaunchHostFunc(
            legacy, [](void*) { ADD_FAILURE() << "refused and run"; }, runs),
        Status::kStreamCaptureImplicit);
    ExpectHit(stream);
  }
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(CaptureConflictsConformanceTest, T32LegacyWaitsHitBlockingStreams) {
  const Stream legacy = device().LegacyStream();
  const Stream stream = NewStream(kStreamDefault);
  Begin(stream, CaptureMode::kRelaxed);
  EXPECT_EQ(device().StreamQuery(legacy), Status::kStreamCaptureImplicit);
  ExpectHit(stream);
  Begin(stream, CaptureMode::kRelaxed);
  EXPECT_EQ(device().StreamSynchronize(legacy), Status::kStreamCaptureImplicit);
  ExpectHit(stream);
}

// A blocking stream that joins a capture is a capturing stream as well.
TEST_P(CaptureConflictsConformanceTest, T32LegacyWorkHitsBlockingForks) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream(kStreamNonBlocking);
  const Stream fork = NewStream(kStreamDefault);
  const Event event = NewEvent();
  Begin(stream);
  Order(stream, fork, event);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, kBlockBytes, device().LegacyStream()),
            Status::kStreamCaptureImplicit);
  ExpectHit(stream);
}

TEST_P(CaptureConflictsConformanceTest, T32LegacyWorkBesideNonBlockingStreams) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream(kStreamNonBlocking);
  Begin(stream, CaptureMode::kThreadLocal);
  Elsewhere([&] {
    EXPECT_EQ(
        device().MemsetAsync(ptr, 0x11, kBlockBytes, device().LegacyStream()),
        Status::kSuccess);
  });
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
  End(stream);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

// C12: a query is no use of the stream.
TEST_P(CaptureConflictsConformanceTest, T33AskingTheLegacyStreamIsRefused) {
  const Stream stream = NewStream(kStreamDefault);
  Begin(stream);
  auto status = static_cast<CaptureStatus>(7);
  EXPECT_EQ(device().StreamIsCapturing(device().LegacyStream(), &status),
            Status::kStreamCaptureImplicit);
  EXPECT_EQ(status, static_cast<CaptureStatus>(7));
  CaptureInfo info;
  EXPECT_EQ(device().StreamCaptureInfo(device().LegacyStream(), &info),
            Status::kStreamCaptureImplicit);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
  End(stream);
}

TEST_P(CaptureConflictsConformanceTest, T33LegacyStreamIsNeverCapturing) {
  const Stream stream = NewStream(kStreamNonBlocking);
  EXPECT_EQ(StatusOf(device().LegacyStream()), CaptureStatus::kNone);
  Begin(stream);
  EXPECT_EQ(StatusOf(device().LegacyStream()), CaptureStatus::kNone);
  End(stream);
}

// The effect of destroying a stream on its capture. A fork may be destroyed,
// but its captured work must be joined all the same.
TEST_P(CaptureConflictsConformanceTest, RuleC3ForksMayBeDestroyed) {
  for (const bool works : {false, true}) {
    const Stream stream = NewStream();
    const Event event = NewEvent();
    std::atomic<int>* const runs = NewCounter();
    Stream fork;
    ASSERT_EQ(device().StreamCreate(&fork, kStreamNonBlocking),
              Status::kSuccess);
    Begin(stream);
    Order(stream, fork, event);
    if (works) Count(fork, runs);
    EXPECT_EQ(device().StreamDestroy(fork), Status::kSuccess);
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
    Count(stream, runs);
    if (works) {
      ExpectEnd(stream, Status::kStreamCaptureUnjoined);
    } else {
      Replay(NewExec(End(stream)));
      EXPECT_EQ(*runs, 1);
    }
  }
}

}  // namespace
}  // namespace strata
