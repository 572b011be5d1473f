// The capture mode of a thread after the device refused to relax it.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "strata/allocation/error.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/tests/facade/graphs/graph_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class CaptureModeTest : public GraphFixture {
 protected:
  CaptureMode ModeOfThread() {
    CaptureMode mode = CaptureMode::kRelaxed;
    EXPECT_EQ(device().ThreadExchangeCaptureMode(&mode), Status::kSuccess);
    CaptureMode relaxed = mode;
    EXPECT_EQ(device().ThreadExchangeCaptureMode(&relaxed), Status::kSuccess);
    return mode;
  }
};

// The graph cannot hold its pool, so the guard destroys it.
TEST_F(CaptureModeTest, AnEndThatFailsLeavesTheModeAsItWas) {
  Build();
  const Stream stream = NewStream();
  int refused = 0;
  for (std::uint64_t nth = 1; nth <= 12; ++nth) {
    SCOPED_TRACE(nth);
    CaptureGuard guard(facade(), stream);
    Alloc(4096, stream).reset();
    bool is_relaxing = false;  // the call that failed
    device().SetCallObserver([&](const CallRecord& call) {
      if (call.call != DeviceCall::kThreadExchangeCaptureMode) return;
      if (call.status == Status::kSuccess) return;
      is_relaxing =
          call.value == static_cast<std::uint64_t>(CaptureMode::kRelaxed);
    });
    device().AddFault(FailAll(DeviceCall::kGraphRetainUserObject));
    device().AddFault(FailNth(DeviceCall::kThreadExchangeCaptureMode, nth));
    EXPECT_THROW(guard.End(), DeviceError);
    device().ClearFaults();
    device().SetCallObserver(nullptr);
    if (is_relaxing) {
      ++refused;
      EXPECT_EQ(ModeOfThread(), CaptureMode::kGlobal);
    }
    CaptureMode mode = CaptureMode::kGlobal;
    device().ThreadExchangeCaptureMode(&mode);
  }
  EXPECT_GE(refused, 2);
}

}  // namespace
}  // namespace strata
