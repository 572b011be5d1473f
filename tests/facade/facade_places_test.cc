// Places, zero size, layers: the facade without streams.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class FacadePlacesTest : public FacadeFixture {
 protected:
  FacadePlacesTest() : FacadeFixture(2) {}
};

TEST_F(FacadePlacesTest, BuildingMakesNoDeviceCall) {
  Build("gpu_memory_limit_mb=10,alloc_fill_value=1,strata_check_streams");
  EXPECT_EQ(CountAll(0) + CountAll(1), 0U);
}

TEST_F(FacadePlacesTest, ADeviceIsTouchedByItsFirstAllocationOnly) {
  Build();
  const AllocationPtr allocation = facade().Alloc(DevicePlace(1), 1);
  EXPECT_EQ(CountAll(0), 0U);
  EXPECT_GT(CountAll(1), 0U);
}

TEST_F(FacadePlacesTest, ServesEveryKindOfMemoryOfEveryDevice) {
  Build();
  EXPECT_THAT(
      facade().places(),
      ElementsAre(HostPlace(), DevicePlace(0), DevicePlace(1), PinnedPlace(0),
                  PinnedPlace(1), ManagedPlace(0), ManagedPlace(1)));
}

TEST_F(FacadePlacesTest, GivesWhatWasAskedAtEveryPlace) {
  Build();
  for (const Place place : facade().places()) {
    const AllocationPtr allocation = facade().Alloc(place, 1000);
    EXPECT_NE(allocation->data(), nullptr);
    EXPECT_GE(allocation->size(), 1000U);
    EXPECT_EQ(allocation->requested_bytes(), 1000U);
    EXPECT_EQ(allocation->place(), place);
    EXPECT_EQ(allocation->owner(), &facade().GetAllocator(place));
  }
}

TEST_F(FacadePlacesTest, HostMemoryCanBeWritten) {
  Build();
  for (const Place place : {HostPlace(), PinnedPlace(1), ManagedPlace(0)}) {
    const AllocationPtr allocation = facade().Alloc(place, 1000);
    std::memset(allocation->data(), 1, allocation->size());
    EXPECT_EQ(static_cast<const char*>(allocation->data())[999], 1);
  }
}

TEST_F(FacadePlacesTest, NamesAPlaceThatDoesNotExist) {
  Build();
  EXPECT_THAT(
      TextOf<std::invalid_argument>([&] { facade().Alloc(DevicePlace(2), 1); }),
      AllOf(HasSubstr("device:2"), HasSubstr("2 device(s)")));
  EXPECT_THROW(facade().Alloc(ManagedPlace(7), 1), std::invalid_argument);
  EXPECT_THROW(facade().Alloc(Place{PlaceKind::kHost, 1}, 1),
               std::invalid_argument);
  EXPECT_THROW(facade().Alloc(Place{static_cast<PlaceKind>(9), 0}, 1),
               std::invalid_argument);
  EXPECT_THROW(facade().GetStats(DevicePlace(2)), std::invalid_argument);
  EXPECT_THROW(facade().Release(DevicePlace(2)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(
                   facade().AddOutOfMemoryCallback(DevicePlace(2), nullptr)),
               std::invalid_argument);
}

TEST_F(FacadePlacesTest, ZeroBytesGiveNullWithoutADeviceCall) {
  Build("alloc_fill_value=1,sync_after_alloc");
  for (const Place place : facade().places()) {
    const AllocationPtr zero = facade().Alloc(place, 0);
    ASSERT_NE(zero, nullptr);
    EXPECT_EQ(zero->data(), nullptr);
    EXPECT_EQ(zero->size(), 0U);
    EXPECT_EQ(zero->place(), place);
    EXPECT_EQ(facade().GetBasePtr(*zero), nullptr);
    EXPECT_EQ(facade().GetZeroAllocator(place).Allocate(0)->data(), nullptr);
  }
  EXPECT_EQ(CountAll(0) + CountAll(1), 0U);
}

TEST_F(FacadePlacesTest, ZeroBytesNeedNoMarkAndOutliveTheFacade) {
  Build();
  const Stream stream = NewStream();
  AllocationPtr zero = facade().Alloc(DevicePlace(0), 0, stream);
  EXPECT_FALSE(facade().RecordStream(zero, NewStream()));
  facade().EraseStream(*zero, stream);
  EXPECT_EQ(facade().GetStream(*zero),
            facade().GetDefaultStream(DevicePlace(0)));
  facade_.reset();
  EXPECT_EQ(zero->size(), 0U);
}

TEST_F(FacadePlacesTest, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  Build();
  EXPECT_THAT(TextOf<std::invalid_argument>([&] {
                facade().GetAllocator(DevicePlace(0)).Allocate(Request{64, 3});
              }),
              HasSubstr("power of two"));
}

TEST_F(FacadePlacesTest, AlignsAtEveryPlaceThatHasStreams) {
  Build();
  for (const Place place : {DevicePlace(0), ManagedPlace(1)}) {
    for (std::size_t alignment = 1; alignment <= Mebibytes(1); alignment *= 4) {
      const AllocationPtr allocation =
          facade().GetAllocator(place).Allocate(Request{1000, alignment});
      const auto address = reinterpret_cast<std::uintptr_t>(allocation->data());
      EXPECT_EQ(address % alignment, 0U);
      EXPECT_GE(allocation->size(), 1000U);
    }
  }
}

TEST_F(FacadePlacesTest, SharedAllocationsAreFreedWithTheLastOwner) {
  Build();
  const Place place = DevicePlace(0);
  std::shared_ptr<Allocation> first = facade().AllocShared(place, 1000);
  std::shared_ptr<Allocation> second = first;
  first.reset();
  EXPECT_EQ(facade().GetStats(place).live_allocations(), 1U);
  second.reset();
  EXPECT_EQ(facade().GetStats(place).live_allocations(), 0U);
}

TEST_F(FacadePlacesTest, BasePtrIsTheStartOfTheSystemsChunk) {
  Build("allocator_strategy=auto_growth");
  const CallLog log(device());
  const AllocationPtr first = facade().Alloc(DevicePlace(0), 1000);
  const AllocationPtr second = facade().Alloc(DevicePlace(0), 1000);
  const std::vector<CallRecord> chunks = log.Of(DeviceCall::kMemAlloc);
  ASSERT_EQ(chunks.size(), 1U);
  const auto* base = reinterpret_cast<void*>(chunks[0].ptr);
  EXPECT_EQ(facade().GetBasePtr(*first), base);
  EXPECT_EQ(facade().GetBasePtr(*second), base);
  EXPECT_NE(first->data(), second->data());
}

TEST_F(FacadePlacesTest, TryAllocSaysWhyWithoutThrowing) {
  Build();
  const Stream stream = device().LegacyStream();
  Failure failure;
  const AllocationPtr none = facade().TryAlloc(
      DevicePlace(0), Request{2 * kMemoryBytes}, stream, failure);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_NE(facade().TryAlloc(DevicePlace(0), Request{1}, stream, failure),
            nullptr);
}

TEST_F(FacadePlacesTest, GivesIdleMemoryBack) {
  Build();
  const Place place = DevicePlace(0);
  facade().Alloc(place, Mebibytes(30)).reset();
  EXPECT_EQ(facade().GetStats(place).reserved_bytes, Mebibytes(30));
  EXPECT_EQ(facade().Release(place), Mebibytes(30));
  EXPECT_EQ(facade().GetStats(place).reserved_bytes, 0U);
  EXPECT_EQ(device().Leaks().allocations, 0U);
}

TEST_F(FacadePlacesTest, KeepsWhatIsInUseWhenItGivesMemoryBack) {
  Build("allocator_strategy=auto_growth");
  const Place place = DevicePlace(0);
  const AllocationPtr used = facade().Alloc(place, Mebibytes(12));
  facade().Alloc(place, Mebibytes(14)).reset();
  EXPECT_EQ(facade().Release(place), Mebibytes(14));
  EXPECT_EQ(device().Leaks().allocation_bytes, Mebibytes(12));
}

TEST_F(FacadePlacesTest, ReleasesTheMemoryOfOneStreamAlone) {
  Build();
  const Place place = DevicePlace(0);
  const Stream stream = NewStream();
  facade().Alloc(place, Mebibytes(12)).reset();
  facade().Alloc(place, Mebibytes(14), stream).reset();
  EXPECT_EQ(facade().Release(place, stream), Mebibytes(14));
  EXPECT_EQ(facade().GetStats(place).reserved_bytes, Mebibytes(12));
}

class LayerNames final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& layer) override {
    names_.emplace_back(layer.name());
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

TEST_F(FacadePlacesTest, HasTheDefaultLayers) {
  Build();
  EXPECT_THAT(facade().Layers(DevicePlace(0)),
              ElementsAre("front", "stat", "retry", "cuda_graph", "stream_safe",
                          "aligned", "virtual_memory", "chunk_pool", "device"));
  EXPECT_THAT(facade().Layers(ManagedPlace(0)),
              ElementsAre("front", "stat", "retry", "cuda_graph", "stream_safe",
                          "aligned", "auto_growth", "chunk_pool", "managed"));
  EXPECT_THAT(facade().Layers(PinnedPlace(0)),
              ElementsAre("front", "stat", "retry", "cuda_graph", "stream_safe",
                          "aligned", "auto_growth", "chunk_pool", "pinned"));
  EXPECT_THAT(facade().Layers(HostPlace()),
              ElementsAre("front", "stat", "cuda_graph", "stream_safe",
                          "aligned", "direct", "chunk_pool", "host"));
}

TEST_F(FacadePlacesTest, HasEveryLayerThatIsAskedFor) {
  const std::string path = testing::TempDir() + "strata_layers.csv";
  Build("strata_trace_file=" + path +
        ",strata_in_use_limit=1GiB,strata_fault=nth=9,use_system_allocator");
  EXPECT_THAT(facade().Layers(DevicePlace(0)),
              ElementsAre("front", "trace", "stat", "limit", "retry",
                          "cuda_graph", "stream_safe", "aligned", "direct",
                          "chunk_pool", "fault", "device"));
  std::remove(path.c_str());
}

TEST_F(FacadePlacesTest, HasNoLayerThatIsTurnedOff) {
  Build(
      "strata_stat=0,use_stream_safe_cuda_allocator=0,strata_aligned=0,"
      "strata_cuda_graph=0,"
      "gpu_allocator_retry_time=0,allocator_strategy=direct");
  EXPECT_THAT(facade().Layers(DevicePlace(0)),
              ElementsAre("front", "direct", "chunk_pool", "device"));
  const AllocationPtr allocation = facade().Alloc(DevicePlace(0), 100);
  EXPECT_NE(allocation->data(), nullptr);
}

TEST_F(FacadePlacesTest, AVisitorSeesTheLayersInOrder) {
  Build();
  LayerNames visitor;
  facade().Accept(DevicePlace(0), visitor);
  EXPECT_THAT(visitor.names(),
              ElementsAreArray(facade().Layers(DevicePlace(0))));
}

TEST_F(FacadePlacesTest, AVisitorOfAllSeesEveryStreamsChainAndNoLayerTwice) {
  Build();
  facade().Alloc(DevicePlace(0), 1, NewStream()).reset();
  facade().Alloc(DevicePlace(0), 1, NewStream()).reset();
  LayerNames visitor;
  facade().AcceptAll(DevicePlace(0), visitor);
  // The pool and the device are below all of them.
  const std::size_t layers = facade().Layers(DevicePlace(0)).size();
  EXPECT_EQ(visitor.names().size(), 3 * (layers - 2) + 2);
}

TEST_F(FacadePlacesTest, TwoFacadesOnOnePlatformShareNothingElse) {
  Build("gpu_memory_limit_mb=10");
  AllocatorFacade other(Options::Parse("allocator_strategy=direct"), platform_);
  AllocationPtr mine = facade().Alloc(DevicePlace(0), Mebibytes(10));
  AllocationPtr its = other.Alloc(DevicePlace(0), Mebibytes(20));
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).reserved_bytes, Mebibytes(10));
  EXPECT_EQ(other.GetStats(DevicePlace(0)).reserved_bytes, Mebibytes(20));
  EXPECT_THROW(facade().Alloc(DevicePlace(0), Mebibytes(1)), OutOfMemory);
  facade_.reset();
  its.reset();
  EXPECT_EQ(other.GetStats(DevicePlace(0)).live_allocations(), 0U);
}

TEST_F(FacadePlacesTest, TwoFacadesCanHaveAPlatformEach) {
  const Options options =
      Options::Parse("strata_platform=sim,strata_sim_memory=16MiB");
  AllocatorFacade first(options);
  AllocatorFacade second(options);
  const AllocationPtr a = first.Alloc(DevicePlace(0), Mebibytes(16));
  const AllocationPtr b = second.Alloc(DevicePlace(0), Mebibytes(16));
  EXPECT_NE(&first.platform(), &second.platform());
}

TEST_F(FacadePlacesTest, NamesAPlatformThatDoesNotExist) {
  EXPECT_THAT(TextOf<std::invalid_argument>([] {
                AllocatorFacade facade(Options::Parse("strata_platform=none"));
              }),
              HasSubstr("strata_platform"));
}

}  // namespace
}  // namespace strata
