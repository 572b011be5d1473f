#include "strata/allocation/streams/side_streams.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

constexpr std::size_t kMost = SideStreams::kMost;

// Streams with work that runs on request of the test.
class SideStreamsTest : public ::testing::Test {
 protected:
  static PoolPlaceOptions Manual() {
    PoolPlaceOptions options;
    options.progress = "manual";
    return options;
  }
  SideStreamsTest() {
    EXPECT_EQ(device().MemAlloc(&scratch_, 4096), Status::kSuccess);
  }
  ~SideStreamsTest() override {
    device().StepAll();
    EXPECT_EQ(device().MemFree(scratch_), Status::kSuccess);
  }

  SimDevice& device() { return place_.device(); }
  // The stream of `key`, with pending work if `is_busy`.
  Stream Of(SideStreams::Key key, bool is_busy) {
    const Stream stream = sides_.Of(key, nullptr);
    if (is_busy) {
      EXPECT_EQ(device().MemsetAsync(scratch_, 1, 64, stream),
                Status::kSuccess);
    }
    return stream;
  }
  std::size_t Streams() {
    std::array<Stream, kMost> streams;
    return sides_.List(streams);
  }
  std::uint64_t Queries() {
    return device().CallCount(DeviceCall::kStreamQuery);
  }

  PoolPlace place_{Manual()};
  DevicePtr scratch_ = 0;
  SideStreams sides_{device()};
};

TEST_F(SideStreamsTest, ASetHasOneStreamInWhateverOrder) {
  const Stream a = place_.NewStream();
  const Stream b = place_.NewStream();
  const auto with = &SideStreams::With;
  const SideStreams::Key both = with(with(SideStreams::kNone, a), b);
  EXPECT_EQ(both, with(with(SideStreams::kNone, b), a));
  const Stream stream = sides_.Of(both, nullptr);
  EXPECT_EQ(sides_.Of(both, nullptr), stream);
  EXPECT_NE(sides_.Of(with(SideStreams::kNone, a), nullptr), stream);
  EXPECT_NE(sides_.Of(SideStreams::kNone, nullptr), stream);
  EXPECT_EQ(Streams(), 3U);
  EXPECT_TRUE(sides_.Has(stream));
  EXPECT_FALSE(sides_.Has(a));
  EXPECT_EQ(Queries(), 0U);
}

TEST_F(SideStreamsTest, BeyondTheMostAKeyTakesOverAnIdleStream) {
  std::vector<Stream> streams;
  for (std::size_t i = 1; i <= kMost; ++i) {
    streams.push_back(Of(i, /*is_busy=*/i != 3 && i != 4));
  }
  EXPECT_EQ(Of(100, true), streams[2]);
  EXPECT_EQ(Queries(), 3U) << "the least recently used ones come first";
  EXPECT_EQ(Of(100, true), streams[2]);
  EXPECT_EQ(Of(3, true), streams[3]);
  EXPECT_EQ(Streams(), kMost);
}

// The least recently used streams may be slow, so no new key should wait behind
// them.
TEST_F(SideStreamsTest, WhereAllAreBusyAKeySharesTheOneUsedLast) {
  for (std::size_t i = 1; i < kMost; ++i) Of(i, true);
  const Stream last = Of(kMost, true);
  EXPECT_EQ(Of(100, true), last);
  EXPECT_EQ(Queries(), SideStreams::kAsked);
  EXPECT_EQ(Of(kMost, true), last);
  EXPECT_EQ(Queries(), SideStreams::kAsked);
}

TEST_F(SideStreamsTest, NoStreamIsAskedBesideAnAnnouncedCapture) {
  CaptureGate gate;
  for (std::size_t i = 1; i <= kMost; ++i) Of(i, false);
  gate.Announce();
  EXPECT_NE(sides_.Of(100, &gate).uid, 0U);
  EXPECT_EQ(Queries(), 0U);
  gate.Withdraw();
  EXPECT_NE(sides_.Of(100, &gate).uid, 0U);
  EXPECT_EQ(Queries(), 1U);
}

TEST_F(SideStreamsTest, WithoutANewStreamAKeySharesAnother) {
  device().AddFault(FailNth(DeviceCall::kStreamCreate, 2));
  const Stream first = Of(1, false);
  EXPECT_EQ(Of(2, false), first);
  EXPECT_NE(Of(2, false), first);
}

TEST_F(SideStreamsTest, WithoutAnyStreamThereIsNone) {
  device().AddFault(FailAll(DeviceCall::kStreamCreate));
  EXPECT_EQ(sides_.Of(1, nullptr).uid, 0U);
  device().ClearFaults();
  EXPECT_NE(sides_.Of(1, nullptr).uid, 0U);
}

TEST_F(SideStreamsTest, TheEndDestroysTheStreams) {
  const std::uint64_t streams = device().Leaks().streams;
  Of(1, false);
  Of(2, false);
  EXPECT_EQ(device().Leaks().streams, streams + 2);
  sides_.End();
  EXPECT_EQ(device().Leaks().streams, streams);
  EXPECT_EQ(Streams(), 0U);
}

TEST_F(SideStreamsTest, ThreadsAgreeOnTheStreamOfAKey) {
  std::array<Stream, 4> streams;
  std::vector<std::thread> threads;
  for (Stream& stream : streams) {
    threads.emplace_back([&] { stream = sides_.Of(7, nullptr); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Stream& stream : streams) EXPECT_EQ(stream, streams[0]);
  EXPECT_EQ(Streams(), 1U);
}

}  // namespace
}  // namespace strata
