// Visitors of the chunks of a place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/host/facade_host_fixture.h"
#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

using testing::Contains;
using testing::ElementsAre;

struct Visit {
  Place place;
  std::string visitor;
  int change;

  friend bool operator==(const Visit&, const Visit&) = default;
};

std::ostream& operator<<(std::ostream& out, const Visit& visit) {
  return out << ToString(visit.place) << " " << visit.visitor << " "
             << visit.change;
}

TEST_F(FacadeHostTest, VisitorsSeeEachChunkOnceForwardsThenBackwards) {
  Build();
  for (const Place place : facade().places()) {
    std::vector<Visit> visits;
    for (const char* name : {"one", "two"}) {
      facade().AddVisitor(
          place,
          [&visits, name](Place at, void* data, std::size_t bytes, int change) {
            EXPECT_NE(data, nullptr);
            EXPECT_GE(bytes, 1000U);
            visits.push_back({at, name, change});
          });
    }
    for (int i = 0; i < 10; ++i) facade().Alloc(place, 1000).reset();
    EXPECT_THAT(visits,
                ElementsAre(Visit{place, "one", 1}, Visit{place, "two", 1}));
    visits.clear();
    facade().Release(place);
    EXPECT_THAT(visits,
                ElementsAre(Visit{place, "two", -1}, Visit{place, "one", -1}));
  }
}

// tf_bfc.md §2, SubAllocator: the index is the number of the NUMA node.
TEST_F(FacadeHostTest, AVisitorIsToldTheNode) {
  host_->nodes = {0, 1};
  BuildOnFakeHost("strata_numa");
  std::vector<Place> places;
  for (const int node : {0, 1}) {
    facade().AddVisitor(HostPlace(node),
                        [&places](Place place, void*, std::size_t, int change) {
                          if (change > 0) places.push_back(place);
                        });
  }
  facade().Alloc(HostPlace(1), 1).reset();
  facade().Alloc(HostPlace(0), 1).reset();
  EXPECT_THAT(places, ElementsAre(HostPlace(1), HostPlace(0)));
  facade_.reset();  // visits the released chunks while `places` lives
}

// tf_bfc.md §2, ProcessState: with visitors, the host has a pool.
TEST_F(FacadeHostTest, AVisitorMakesThePlainHostAPool) {
  BuildOnFakeHost("");
  EXPECT_THAT(facade().Layers(HostPlace()), Contains("direct"));
  facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
  EXPECT_THAT(facade().Layers(HostPlace()), Contains("pool"));
  void* first = facade().Alloc(HostPlace(), Mebibytes(1))->data();
  EXPECT_EQ(facade().Alloc(HostPlace(), Mebibytes(1))->data(), first);
  EXPECT_EQ(host_->locked().size(), 1U);
}

TEST_F(FacadeHostTest, AVisitorLeavesAStrategyThatWasAskedFor) {
  Build("strata_host_strategy=direct");
  facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
  EXPECT_THAT(facade().Layers(HostPlace()), Contains("direct"));
}

TEST_F(FacadeHostTest, CallbacksStayWhenAVisitorChangesTheStrategy) {
  Build("strata_host_limit=1MiB");
  int asked = 0;
  const auto callback =
      facade().AddOutOfMemoryCallback(HostPlace(), [&](Place, std::size_t) {
        ++asked;
        return std::size_t{0};
      });
  facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
  EXPECT_THROW(facade().Alloc(HostPlace(), Mebibytes(2)), OutOfMemory);
  EXPECT_EQ(asked, 1);
}

TEST_F(FacadeHostTest, AVisitorThatCannotBeAddedChangesNothing) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  facade_.reset();
  const auto users = platform_.use_count();
  bool is_added = false;
  std::uint64_t fault = 0;
  while (!is_added) {
    SCOPED_TRACE("call " + std::to_string(++fault));
    Build("");
    {
      const HeapFailure failure(fault);
      try {
        facade().AddVisitor(HostPlace(), [](Place, void*, std::size_t, int) {});
      } catch (const std::bad_alloc&) {
      }
      is_added = failure.calls() < fault;
    }
    EXPECT_THAT(facade().Layers(HostPlace()),
                Contains(is_added ? "pool" : "direct"));
    EXPECT_NE(facade().Alloc(HostPlace(), 1000), nullptr);
    facade_.reset();
    EXPECT_EQ(platform_.use_count(), users);  // no chain remains
  }
  EXPECT_GT(fault, 10U);
}

// "Visitors must be added before creation".
TEST_F(FacadeHostTest, RefusesAVisitorAfterTheFirstChunk) {
  Build();
  const auto visitor = [](Place, void*, std::size_t, int) {};
  for (const Place place : facade().places()) {
    facade().Alloc(place, 1).reset();
    EXPECT_THROW(facade().AddVisitor(place, visitor), std::logic_error);
  }
  EXPECT_THROW(facade().AddVisitor(DevicePlace(7), visitor),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
