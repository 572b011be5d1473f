// The front that a thread remembers, and the cases in which it must not.

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class FrontRouteTest : public FacadeFixture {
 protected:
  FrontRouteTest() : FacadeFixture(/*devices=*/2) {}

  // Allocates three times. The second and third time use the remembered front.
  void ExpectFrom(const Stream& stream) {
    for (int i = 0; i < 3; ++i) {
      const Place place = DevicePlace(stream.device);
      EXPECT_EQ(StreamOf(facade().Alloc(place, 1000, stream)), stream);
      EXPECT_EQ(StreamOf(facade().Alloc(place, 1000, stream.handle)), stream);
    }
  }
  static Stream StreamOf(const AllocationPtr& allocation) {
    return allocation->owner()->stream();
  }
};

TEST_F(FrontRouteTest, StreamsThatTakeTurns) {
  Build();
  const Stream first = NewStream();
  const Stream second = NewStream();
  for (int i = 0; i < 3; ++i) {
    ExpectFrom(first);
    ExpectFrom(second);
  }
}

// The two streams have equal uids and handles.
TEST_F(FrontRouteTest, LegacyStreamsOfTwoDevices) {
  Build();
  for (int i = 0; i < 2; ++i) {
    for (const int ordinal : {0, 1}) {
      ExpectFrom(device(ordinal).LegacyStream());
      EXPECT_EQ(StreamOf(facade().Alloc(DevicePlace(ordinal), 1000)).device,
                ordinal);
    }
  }
}

TEST_F(FrontRouteTest, PlacesOfOneStream) {
  Build();
  const Stream stream = device().LegacyStream();
  for (int i = 0; i < 2; ++i) {
    for (const Place place : {DevicePlace(0), ManagedPlace(0)}) {
      EXPECT_EQ(facade().Alloc(place, 1000, stream)->place(), place);
      EXPECT_EQ(facade().Alloc(place, 1000, stream.handle)->place(), place);
      EXPECT_EQ(facade().Alloc(place, 1000)->place(), place);
    }
  }
}

// The driver reuses the handle of a destroyed stream for the next one.
TEST_F(FrontRouteTest, AHandleThatComesAgainIsAnotherStream) {
  Build();
  std::set<void*> handles;
  bool came_again = false;
  std::vector<AllocationPtr> kept;  // keeps the old fronts alive
  for (int i = 0; i < 20; ++i) {
    const Stream stream = NewStream();
    came_again |= !handles.insert(stream.handle).second;
    kept.push_back(facade().Alloc(kPlace, 1000, stream.handle));
    EXPECT_EQ(StreamOf(kept.back()), stream);
    ExpectFrom(stream);
    facade().StreamDestroyed(stream);
    Destroy(stream);
  }
  EXPECT_TRUE(came_again);
}

// A request of 0 bytes does not fix the default stream yet.
TEST_F(FrontRouteTest, TheDefaultStreamMayChangeAfterItWasFound) {
  Build();
  facade().Alloc(kPlace, 0).reset();
  facade().Alloc(kPlace, 0).reset();
  const Stream stream = NewStream();
  facade().SetDefaultStream(kPlace, stream);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(StreamOf(facade().Alloc(kPlace, 1000)), stream);
  }
}

TEST_F(FrontRouteTest, FacadesOneAfterTheOther) {
  const Stream stream = NewStream();
  for (int i = 0; i < 20; ++i) {
    Build();
    ExpectFrom(stream);
    facade().Alloc(kPlace, 1000).reset();
    EXPECT_EQ(facade().GetStats(kPlace).frees, 7U);
  }
}

TEST_F(FrontRouteTest, FacadesSideBySide) {
  Build();
  AllocatorFacade other(Options(), platform_);
  const Stream stream = device().LegacyStream();
  for (std::size_t i = 1; i <= 4; ++i) {
    facade().Alloc(kPlace, 1000, stream).reset();
    facade().Alloc(kPlace, 1000).reset();
    other.Alloc(kPlace, 1000, stream).reset();
    other.Alloc(kPlace, 1000).reset();
    EXPECT_EQ(facade().GetStats(kPlace).allocations, 2 * i);
    EXPECT_EQ(other.GetStats(kPlace).allocations, 2 * i);
  }
}

// If every stream is checked, the thread remembers no front.
TEST_F(FrontRouteTest, AStreamThatIsGoneIsFoundOut) {
  Build("strata_check_streams");
  const Stream stream = NewStream();
  ExpectFrom(stream);
  Destroy(stream);
  EXPECT_THROW(facade().Alloc(kPlace, 1000, stream), std::invalid_argument);
  EXPECT_THROW(facade().Alloc(kPlace, 1000, stream.handle),
               std::invalid_argument);
}

TEST_F(FrontRouteTest, ThreadsRememberTheirOwn) {
  Build();
  const Stream first = NewStream();
  const Stream second = NewStream();
  ExpectFrom(first);
  std::thread([&] { ExpectFrom(second); }).join();
  ExpectFrom(first);
}

}  // namespace
}  // namespace strata
