#include "strata/platform/place.h"

#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

TEST(PlaceTest, TextNamesKindAndIndex) {
  EXPECT_EQ(ToString(HostPlace()), "host");
  EXPECT_EQ(ToString(HostPlace(3)), "host:3");
  EXPECT_EQ(ToString(DevicePlace(3)), "device:3");
  EXPECT_EQ(ToString(PinnedPlace()), "pinned:0");
  EXPECT_EQ(ToString(ManagedPlace(65535)), "managed:65535");
}

TEST(PlaceTest, WhatToStringWritesIsReadBack) {
  for (const Place& place :
       {HostPlace(), HostPlace(1), DevicePlace(0), DevicePlace(10),
        PinnedPlace(7), ManagedPlace(65535)}) {
    Place parsed{PlaceKind::kDevice, 99};
    EXPECT_TRUE(ParsePlace(ToString(place), &parsed)) << ToString(place);
    EXPECT_EQ(parsed, place);
  }
}

TEST(PlaceTest, OtherTextLeavesThePlaceAlone) {
  for (const char* text :
       {"", "host:0", "host:", "host:x", "Host", "device",
        "device:", "device:x", "device:-1", "device:1 ", "device:01",
        "device:65536", "device:1:2", "gpu:0"}) {
    Place place = ManagedPlace(4);
    EXPECT_FALSE(ParsePlace(text, &place)) << text;
    EXPECT_EQ(place, ManagedPlace(4)) << text;
  }
}

TEST(PlaceTest, EqualMeansOfOneKindAndIndex) {
  EXPECT_EQ(DevicePlace(7), DevicePlace(7));
  EXPECT_NE(DevicePlace(7), DevicePlace(8));
  EXPECT_NE(DevicePlace(7), ManagedPlace(7));
  static_assert(PinnedPlace(3) == Place{PlaceKind::kPinned, 3});
}

TEST(PlaceTest, OrderIsByKindThenIndex) {
  EXPECT_LT(HostPlace(), DevicePlace(0));
  EXPECT_LT(DevicePlace(5), PinnedPlace(0));
  EXPECT_LT(DevicePlace(0), DevicePlace(1));
}

}  // namespace
}  // namespace strata
