#include "strata/platform/check/happens_before.h"

#include <gtest/gtest.h>

#include "strata/platform/stream.h"

namespace strata::check {
namespace {

constexpr HappensBefore::StreamName kA{0, 3};
constexpr HappensBefore::StreamName kB{0, 4};
constexpr HappensBefore::StreamName kLegacy{0, kLegacyStreamUid};

TEST(HappensBeforeTest, StreamIsFirstInFirstOut) {
  HappensBefore order;
  const Epoch first = order.Submit(kA, 1);
  const Epoch second = order.Submit(kA, 1);
  EXPECT_TRUE(order.OfStream(kA).Covers(first));
  EXPECT_TRUE(order.OfStream(kA).Covers(second));
  EXPECT_FALSE(order.OfThread(1).Covers(first));
}

// cuda_semantics S3: in both directions, only for blocking streams of the
// device.
TEST(HappensBeforeTest, LegacyStreamOrdersBlockingStreams) {
  HappensBefore order;
  order.CreateStream(kA, true, 1);
  order.CreateStream(kB, false, 1);
  const Epoch a = order.Submit(kA, 1);
  const Epoch b = order.Submit(kB, 1);
  const Epoch legacy = order.Submit(kLegacy, 1);
  EXPECT_TRUE(order.OfStream(kLegacy).Covers(a));
  EXPECT_FALSE(order.OfStream(kLegacy).Covers(b));
  order.Submit(kA, 1);
  order.Submit(kB, 1);
  EXPECT_TRUE(order.OfStream(kA).Covers(legacy));
  EXPECT_FALSE(order.OfStream(kB).Covers(legacy));
}

// A stream without later work does not wait for the legacy stream, and neither
// does a wait for that stream.
TEST(HappensBeforeTest, WaitForABlockingStreamIsNoneForTheLegacyStream) {
  HappensBefore order;
  order.CreateStream(kA, true, 1);
  const Epoch legacy = order.Submit(kLegacy, 1);
  order.AwaitStream(kA, 1);
  EXPECT_FALSE(order.OfThread(1).Covers(legacy));
  order.Submit(kA, 1);
  order.AwaitStream(kA, 1);
  EXPECT_TRUE(order.OfThread(1).Covers(legacy));
}

// cuda_semantics H1
TEST(HappensBeforeTest, WaitForTheLegacyStreamCoversBlockingOnes) {
  HappensBefore order;
  order.CreateStream(kA, true, 1);
  const Epoch a = order.Submit(kA, 1);
  order.AwaitStream(kLegacy, 1);
  EXPECT_TRUE(order.OfThread(1).Covers(a));
}

TEST(HappensBeforeTest, BeforeNextIsWhatSubmittingWouldBring) {
  HappensBefore order;
  order.CreateStream(kA, true, 1);
  const Epoch a = order.Submit(kA, 1);
  EXPECT_FALSE(order.OfStream(kLegacy).Covers(a));
  EXPECT_TRUE(order.BeforeNext(kLegacy, 1).Covers(a));
  EXPECT_FALSE(order.OfStream(kLegacy).Covers(a));
}

TEST(HappensBeforeTest, StreamStartsWithWhatItsCreatorSaw) {
  HappensBefore order;
  const Epoch a = order.Submit(kA, 1);
  order.AwaitStream(kA, 1);
  order.CreateStream(kB, false, 1);
  EXPECT_TRUE(order.BeforeNext(kB, 2).Covers(a));
}

TEST(HappensBeforeTest, LastSaysNothingOfTheFormerStreamInItsPlace) {
  HappensBefore order;
  order.CreateStream(kA, false, 1);
  const Epoch a = order.Submit(kA, 1);
  EXPECT_EQ(order.Last(kA), a);
  order.AwaitStream(kA, 1);
  order.DestroyStream(kA);
  order.CreateStream(kB, false, 1);
  EXPECT_EQ(order.Last(kB).count, 0U);
  const Epoch b = order.Submit(kB, 1);
  EXPECT_EQ(b.component, a.component);  // in the same slot
  EXPECT_GT(b.count, a.count);
}

TEST(HappensBeforeTest, PlaceOfAStreamThatMayStillRunIsNotGivenAway) {
  HappensBefore order;
  order.CreateStream(kA, false, 1);
  const Epoch a = order.Submit(kA, 1);
  order.DestroyStream(kA);
  order.CreateStream(kB, false, 1);
  EXPECT_NE(order.Submit(kB, 1).component, a.component);
}

TEST(HappensBeforeTest, WaitForTheDeviceCoversDestroyedStreams) {
  HappensBefore order;
  order.CreateStream(kA, false, 1);
  const Epoch a = order.Submit(kA, 1);
  order.DestroyStream(kA);
  order.AwaitDevice(1, 1);
  EXPECT_FALSE(order.OfThread(1).Covers(a));
  order.AwaitDevice(0, 1);
  EXPECT_TRUE(order.OfThread(1).Covers(a));
}

// cuda_semantics E3
TEST(HappensBeforeTest, EventThatWasNeverRecordedStandsForNothing) {
  HappensBefore order;
  order.Submit(kA, 1);
  order.Wait(kB, 0x1, 1);
  order.AwaitEvent(0x1, 1);
  EXPECT_FALSE(order.OfStream(kB).Covers({0, 1}));
}

}  // namespace
}  // namespace strata::check
