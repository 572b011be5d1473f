// A capture without an announcement: the error names the calls that announce
// one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

const auto kNamesTheCalls = testing::AllOf(
    testing::HasSubstr("announced"), testing::HasSubstr("CaptureGuard"),
    testing::HasSubstr("PrepareMemoryPoolForCUDAGraph"),
    testing::HasSubstr("strata_capture_begin"));

class UnannouncedCaptureTest : public FacadeFixture {
 protected:
  void Begin(Stream stream) {
    ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kGlobal),
              Status::kSuccess);
  }
  void End(Stream stream) {
    Graph graph;
    if (device().StreamEndCapture(stream, &graph) == Status::kSuccess) {
      EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    }
  }
};

// virtual_memory makes no call that a capture forbids.
TEST_F(UnannouncedCaptureTest, AMissNamesTheCalls) {
  for (const Place place : {kPlace, PinnedPlace(), ManagedPlace(0)}) {
    Build("allocator_strategy=auto_growth");
    const Stream stream = NewStream();
    Begin(stream);
    // The second request finds the capture that the first one broke.
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(TextOf<DeviceError>([&] { facade().Alloc(place, 1000); }),
                  kNamesTheCalls);
    }
    End(stream);
    facade().Alloc(place, 1000).reset();
  }
}

TEST_F(UnannouncedCaptureTest, TheDriversPoolNamesTheCalls) {
  Build("allocator_strategy=cuda_malloc_async");
  const Stream stream = NewStream();
  Begin(stream);
  EXPECT_THAT(TextOf<DeviceError>([&] { facade().Alloc(kPlace, 1000); }),
              kNamesTheCalls);
  End(stream);
}

TEST_F(UnannouncedCaptureTest, CheckedStreamsNameTheCalls) {
  Build("strata_check_streams");
  const Stream stream = NewStream();
  facade().Alloc(kPlace, 1000, stream).reset();
  Begin(stream);
  EXPECT_THAT(
      TextOf<std::logic_error>([&] { facade().Alloc(kPlace, 1000, stream); }),
      kNamesTheCalls);
  End(stream);
}

TEST_F(UnannouncedCaptureTest, BesideAnAnnouncedOneTheCallsAreNamedOnce) {
  Build();
  const Stream announced = NewStream();
  const Stream other = NewStream();
  facade().Alloc(kPlace, 1000, other).reset();
  {
    const CaptureGuard guard(facade(), announced);
    ASSERT_EQ(device().StreamBeginCapture(other, CaptureMode::kThreadLocal),
              Status::kSuccess);
    const std::string text =
        TextOf<DeviceError>([&] { facade().Alloc(kPlace, 1000, other); });
    EXPECT_THAT(text, kNamesTheCalls);
    EXPECT_EQ(text.find("CaptureGuard"), text.rfind("CaptureGuard"));
    End(other);
  }
}

// A failure in an announced capture has another cause.
TEST_F(UnannouncedCaptureTest, AnnouncedOnesAreNotBlamed) {
  Build();
  const Stream stream = NewStream();
  const CaptureGuard guard(facade(), stream);
  EXPECT_THAT(TextOf<OutOfMemory>(
                  [&] { facade().Alloc(kPlace, kMemoryBytes * 2, stream); }),
              testing::Not(testing::HasSubstr("CaptureGuard")));
}

}  // namespace
}  // namespace strata
