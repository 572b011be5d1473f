// Calls that a capture refuses although they do not use it: check B of
// cuda_semantics.md §2.2 (C17-C22) and T28, T29, T39.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "strata/tests/testing/devices/capture_fixture.h"
#include "strata/tests/testing/devices/unsafe_calls.h"

namespace strata {
namespace {

// One way to make a call during a capture.
struct Cell {
  CaptureMode thread;   // mode of the calling thread
  CaptureMode capture;  // mode of the capture
  bool elsewhere;       // by another thread than the capturing one
  bool refused;         // C17, for potentially unsafe calls
};

constexpr CaptureMode kGlobal = CaptureMode::kGlobal;
constexpr CaptureMode kLocal = CaptureMode::kThreadLocal;
constexpr CaptureMode kRelaxed = CaptureMode::kRelaxed;

constexpr std::array<Cell, 18> kCells = {{
    {kGlobal, kGlobal, false, true},
    {kGlobal, kGlobal, true, true},
    {kGlobal, kLocal, false, true},
    {kGlobal, kLocal, true, false},
    {kGlobal, kRelaxed, false, false},
    {kGlobal, kRelaxed, true, false},
    {kLocal, kGlobal, false, true},
    {kLocal, kGlobal, true, false},
    {kLocal, kLocal, false, true},
    {kLocal, kLocal, true, false},
    {kLocal, kRelaxed, false, false},
    {kLocal, kRelaxed, true, false},
    {kRelaxed, kGlobal, false, false},
    {kRelaxed, kGlobal, true, false},
    {kRelaxed, kLocal, false, false},
    {kRelaxed, kLocal, true, false},
    {kRelaxed, kRelaxed, false, false},
    {kRelaxed, kRelaxed, true, false},
}};

std::string Describe(const UnsafeCall& call, const Cell& cell) {
  std::ostringstream out;
  out << call.name << " by a " << NameOf(cell.thread) << " thread, "
      << NameOf(cell.capture) << " capture "
      << (cell.elsewhere ? "of another thread" : "of its own");
  return out.str();
}

class CaptureRefusalsConformanceTest : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (!IsSkipped()) stream_ = NewStream();
  }

  // The result of `call`. Only a refusal invalidates the capture.
  Status CallBesideACapture(const UnsafeCall& call, const Cell& cell) {
    SCOPED_TRACE(Describe(call, cell));
    CallSubject subject(&device());
    (subject.*call.prepare)();
    Status status = Status::kUnknown;
    Begin(stream_, cell.capture);
    const auto make = [&] {
      const ThreadCaptureMode mode(&device(), cell.thread);
      status = call.call(subject);
    };
    if (cell.elsewhere) {
      Elsewhere(make);
    } else {
      make();
    }
    if (status == Status::kSuccess) {
      EXPECT_EQ(StatusOf(stream_), CaptureStatus::kActive);
      EXPECT_EQ(Abandon(stream_), Status::kSuccess);
    } else {
      EXPECT_EQ(status, Status::kStreamCaptureUnsupported);
      EXPECT_EQ(StatusOf(stream_), CaptureStatus::kInvalidated);
      ExpectEnd(stream_, Status::kStreamCaptureInvalidated);
    }
    (subject.*
     (status == Status::kSuccess ? call.undo_made : call.undo_refused))();
    // Frees memory that waits for work to complete.
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    return status;
  }

  // Bit i is set if the call is refused in the i-th cell.
  std::uint64_t RefusedCells(const UnsafeCall& call) {
    std::uint64_t refused = 0;
    for (std::size_t i = 0; i < kCells.size(); ++i) {
      if (CallBesideACapture(call, kCells[i]) != Status::kSuccess) {
        refused |= std::uint64_t{1} << i;
      }
    }
    return refused;
  }

 private:
  Stream stream_;  // of CallBesideACapture
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureRefusalsConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(CaptureRefusalsConformanceTest, T28AllocationsByModesAndThreads) {
  const UnsafeCall call = CallsKnownToBeUnsafe().front();
  ASSERT_EQ(std::string(call.name), "mem_alloc");
  for (const Cell& cell : kCells) {
    EXPECT_EQ(
        CallBesideACapture(call, cell),
        cell.refused ? Status::kStreamCaptureUnsupported : Status::kSuccess)
        << Describe(call, cell);
  }
}

// C19: as in the table for MemAlloc.
TEST_P(CaptureRefusalsConformanceTest, T29UnsafeCallsByModesAndThreads) {
  for (const UnsafeCall& call : CallsKnownToBeUnsafe()) {
    if (!call.available(device().caps())) continue;
    for (const Cell& cell : kCells) {
      EXPECT_EQ(
          CallBesideACapture(call, cell),
          cell.refused ? Status::kStreamCaptureUnsupported : Status::kSuccess)
          << Describe(call, cell);
    }
  }
}

TEST_P(CaptureRefusalsConformanceTest, T29SafeCallsAreNeverRefused) {
  for (const UnsafeCall& call : CallsKnownToBeSafe()) {
    if (!call.available(device().caps())) continue;
    EXPECT_EQ(RefusedCells(call), 0u) << call.name;
  }
}

// C17: a call is refused because of captures of its own thread, or otherwise
// because of any global-mode capture of another thread.
TEST_P(CaptureRefusalsConformanceTest, T28OnlyOffendingCapturesAreHit) {
  const Stream global = NewStream();
  const Stream local = NewStream();
  const Stream relaxed = NewStream();
  Begin(global, kGlobal);
  Begin(local, kLocal);
  Begin(relaxed, kRelaxed);
  Elsewhere([&] {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MemAlloc(&ptr, kBlockBytes),
              Status::kStreamCaptureUnsupported);
  });
  EXPECT_EQ(StatusOf(global), CaptureStatus::kInvalidated);
  EXPECT_EQ(StatusOf(local), CaptureStatus::kActive);
  EXPECT_EQ(StatusOf(relaxed), CaptureStatus::kActive);
  ExpectEnd(global, Status::kStreamCaptureInvalidated);
  End(local);
  End(relaxed);
}

// C22: the call had no effect.
TEST_P(CaptureRefusalsConformanceTest, RuleC22RefusedCallsTakeNothing) {
  const Stream stream = NewStream();
  const std::size_t before = FreeBytes();
  DevicePtr ptr = 77;
  Begin(stream);
  EXPECT_EQ(device().MemAlloc(&ptr, kLargeBytes),
            Status::kStreamCaptureUnsupported);
  ExpectEnd(stream, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(ptr, 77u);
  ExpectFreeBytes(before);
}

TEST_P(CaptureRefusalsConformanceTest, RuleC22RefusedFreesFreeNothing) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  Write(ptr, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  Begin(stream);
  EXPECT_EQ(device().MemFree(ptr), Status::kStreamCaptureUnsupported);
  ExpectEnd(stream, Status::kStreamCaptureInvalidated);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

// C18.
TEST_P(CaptureRefusalsConformanceTest, RuleC18ModeIsOfTheThread) {
  CaptureMode mode = kRelaxed;
  ASSERT_EQ(device().ThreadExchangeCaptureMode(&mode), Status::kSuccess);
  EXPECT_EQ(mode, kGlobal);
  Elsewhere([&] {
    CaptureMode other = kLocal;
    EXPECT_EQ(device().ThreadExchangeCaptureMode(&other), Status::kSuccess);
    EXPECT_EQ(other, kGlobal);
  });
  ASSERT_EQ(device().ThreadExchangeCaptureMode(&mode), Status::kSuccess);
  EXPECT_EQ(mode, kRelaxed);
}

TEST_P(CaptureRefusalsConformanceTest, RuleC18NoModeIsRefused) {
  EXPECT_EQ(device().ThreadExchangeCaptureMode(nullptr), Status::kInvalidValue);
  auto mode = static_cast<CaptureMode>(7);
  EXPECT_EQ(device().ThreadExchangeCaptureMode(&mode), Status::kInvalidValue);
  EXPECT_EQ(mode, static_cast<CaptureMode>(7));
}

// C20: they run, and are not part of the graph.
TEST_P(CaptureRefusalsConformanceTest, RuleC20OtherStreamsGoOn) {
  for (const CaptureMode mode : kCaptureModes) {
    const Stream stream = NewStream();
    const Stream other = NewStream();
    const Stream third = NewStream();
    const Event event = NewEvent();
    const DevicePtr ptr = NewMemory(kBlockBytes);
    const DevicePtr copy = NewMemory(kBlockBytes);
    std::atomic<int>* const runs = NewCounter();
    Begin(stream, mode);
    Write(copy, kBlockBytes, kFirst, other);
    EXPECT_EQ(device().MemsetAsync(ptr, 0x22, kBlockBytes, other),
              Status::kSuccess);
    Order(other, third, event);
    Copy(copy, ptr, third);
    Count(third, runs);
    EXPECT_TRUE(InfoOf(stream).dependencies.empty());
    EXPECT_EQ(StatusOf(third), CaptureStatus::kNone);
    End(stream);
    ASSERT_EQ(device().Synchronize(), Status::kSuccess);
    EXPECT_EQ(*runs, 1);
    ExpectWords(copy, kBlockBytes, kSecond);
  }
}

// C21: memory that a relaxed thread allocates exists at once, and at each
// replay.
TEST_P(CaptureRefusalsConformanceTest, T39AllocationByARelaxedThread) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  Begin(stream, kGlobal);
  {
    const ThreadCaptureMode relaxed(&device(), kRelaxed);
    ptr = NewMemory(kBlockBytes);
  }
  Write(ptr, kBlockBytes, kFirst, stream);
  const GraphExec exec = NewExec(End(stream));
  for (int i = 0; i < 2; ++i) {
    Write(ptr, kBlockBytes, kSecond, stream);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    Replay(exec);
    ExpectWords(ptr, kBlockBytes, kFirst);
  }
}

// Whether a capture of one device refuses calls on another.
TEST_P(CaptureRefusalsConformanceTest, RuleC17PinsCallsAboutOtherDevices) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  Begin(stream);
  const Status status = device(1).MemAlloc(&ptr, kBlockBytes);
  Pin("mem_alloc_on_another_device", status);
  EXPECT_EQ(StatusOf(stream), status == Status::kSuccess
                                  ? CaptureStatus::kActive
                                  : CaptureStatus::kInvalidated);
  Abandon(stream);
  if (status == Status::kSuccess) {
    EXPECT_EQ(device(1).MemFree(ptr), Status::kSuccess);
  }
}

}  // namespace
}  // namespace strata
