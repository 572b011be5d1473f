#include "strata/tensor/device_context.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/devices/toy_platform.h"

namespace strata {
namespace {

DenseTensor TensorOf(Shape dims) {
  DenseTensorMeta meta;
  meta.dtype = DataType::kFloat32;
  meta.dims = std::move(dims);
  return DenseTensor(meta);
}

class DeviceContextTest : public FacadeFixture {
 protected:
  DeviceContextTest() : FacadeFixture(2) {}

  DeviceContext& Context(const std::string& options = "") {
    Build(options);
    stream_ = NewStream();
    context_.emplace(facade(), DevicePlace(0), stream_);
    return *context_;
  }

  Stream stream_;
  std::optional<DeviceContext> context_;
};

TEST_F(DeviceContextTest, AllocatesAtItsPlaceAndStream) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({100});
  float* data = context.Alloc<float>(tensor);
  EXPECT_EQ(data, tensor.data<float>());
  EXPECT_EQ(tensor.place(), DevicePlace(0));
  EXPECT_EQ(facade().GetStream(*tensor.holder()), stream_);
  EXPECT_EQ(context.Alloc(tensor, DataType::kInt32), data);
  EXPECT_EQ(tensor.dtype(), DataType::kInt32);
}

TEST_F(DeviceContextTest, PinnedAndHostMemoryAreBesideIt) {
  const DeviceContext& context = Context();
  DenseTensor pinned = TensorOf({100});
  context.Alloc<float>(pinned, 0, /*pinned=*/true);
  EXPECT_EQ(pinned.place(), PinnedPlace(0));
  DenseTensor host = TensorOf({100});
  context.HostAlloc<float>(host)[99] = 1.0F;
  EXPECT_EQ(host.place(), HostPlace());
}

TEST_F(DeviceContextTest, RequestedSizeMakesRoom) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({2});
  context.Alloc<float>(tensor, 5000);
  EXPECT_EQ(tensor.holder()->requested_bytes(), 5000U);
  context.HostAlloc<float>(tensor, 6000);
  EXPECT_EQ(tensor.holder()->requested_bytes(), 6000U);
  DenseTensor large = TensorOf({2000});
  EXPECT_THROW(context.Alloc<float>(large, 7999), std::invalid_argument);
}

TEST_F(DeviceContextTest, NoElementsComeFromTheZeroAllocator) {
  const DeviceContext& context = Context();
  for (const bool pinned : {false, true}) {
    DenseTensor tensor = TensorOf({0});
    EXPECT_EQ(context.Alloc<float>(tensor, 0, pinned), nullptr);
    EXPECT_FALSE(tensor.initialized());
    EXPECT_EQ(tensor.place(), pinned ? PinnedPlace(0) : DevicePlace(0));
  }
  DenseTensor host = TensorOf({0});
  EXPECT_EQ(context.HostAlloc<float>(host), nullptr);
  EXPECT_EQ(host.place(), HostPlace());
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).allocations, 0U);
}

TEST_F(DeviceContextTest, NoElementsWithARequestedSizeGetIt) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({0});
  EXPECT_NE(context.Alloc<float>(tensor, 1000), nullptr);
  EXPECT_GE(tensor.capacity_bytes(), 1000U);
}

TEST_F(DeviceContextTest, AFakeAllocationTakesNoMemory) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({1000});
  EXPECT_EQ(context.Alloc<std::int64_t>(tensor, 0, false, true), nullptr);
  EXPECT_EQ(tensor.dtype(), DataType::kInt64);
  EXPECT_EQ(context.HostAlloc<std::int64_t>(tensor, 0, true), nullptr);
  // A requested size takes no memory either, and builds no chain.
  DenseTensor requested = TensorOf({1000});
  EXPECT_EQ(context.Alloc<float>(requested, 5000, false, true), nullptr);
  EXPECT_EQ(requested.capacity_bytes(), 0U);
  EXPECT_EQ(requested.holder()->owner(), &context.GetZeroAllocator());
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).allocations, 0U);
  EXPECT_EQ(facade().GetStats(HostPlace()).allocations, 0U);
}

TEST_F(DeviceContextTest, MemoryElsewhereIsReplaced) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({100});
  context.HostAlloc<float>(tensor);
  context.Alloc<float>(tensor);
  EXPECT_EQ(tensor.place(), DevicePlace(0));
  EXPECT_EQ(facade().GetStats(HostPlace()).live_allocations(), 0U);
  const DeviceContext other(facade(), DevicePlace(1), device(1).LegacyStream());
  other.Alloc<float>(tensor);
  EXPECT_EQ(tensor.place(), DevicePlace(1));
  EXPECT_EQ(facade().GetStats(DevicePlace(0)).live_allocations(), 0U);
}

// A holder of 0 bytes has a place too.
TEST_F(DeviceContextTest, ATensorWithoutElementsMovesToo) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({0});
  context.HostAlloc<float>(tensor);
  EXPECT_EQ(tensor.place(), HostPlace());
  context.Alloc<float>(tensor);
  EXPECT_EQ(tensor.place(), DevicePlace(0));
}

TEST_F(DeviceContextTest, AFailureLeavesMemoryElsewhere) {
  const DeviceContext& context = Context();
  DenseTensor tensor = TensorOf({100});
  float* data = context.HostAlloc<float>(tensor);
  EXPECT_THROW(context.Alloc<float>(tensor, Gibibytes(1)), OutOfMemory);
  EXPECT_EQ(tensor.data<float>(), data);
  EXPECT_EQ(tensor.place(), HostPlace());
}

// The original reuses memory of one stream in another without a mark.
TEST_F(DeviceContextTest, KeptMemoryOfAnotherStreamIsMarked) {
  PlatformOptions lazy;
  lazy.sim_memory_bytes = kMemoryBytes;
  lazy.sim_progress = "lazy";
  const auto platform = std::make_shared<SimPlatform>(lazy);
  SimDevice& sim = platform->sim_device(0);
  Stream writer;
  Stream reader;
  ASSERT_EQ(sim.StreamCreate(&writer, kStreamNonBlocking), Status::kSuccess);
  ASSERT_EQ(sim.StreamCreate(&reader, kStreamNonBlocking), Status::kSuccess);
  AllocatorFacade facade(Options(), platform);
  const DeviceContext first(facade, DevicePlace(0), writer);
  const DeviceContext second(facade, DevicePlace(0), reader);
  DenseTensor tensor = TensorOf({1000});
  float* data = first.Alloc<float>(tensor);
  EXPECT_EQ(second.Alloc<float>(tensor), data);
  ASSERT_EQ(sim.MemsetAsync(reinterpret_cast<DevicePtr>(data), 1, 4000, reader),
            Status::kSuccess);
  tensor.ResetHolder(nullptr);
  // The first stream gets it only after the work of the second completes.
  DenseTensor next = TensorOf({1000});
  const bool got_it = first.Alloc<float>(next) == data;
  EXPECT_TRUE(!got_it || sim.StreamQuery(reader) == Status::kSuccess);
  ASSERT_EQ(sim.StreamSynchronize(reader), Status::kSuccess);
}

// An ended stream cannot be marked as a user of another stream's memory.
TEST_F(DeviceContextTest, AMarkThatFailsLeavesTheType) {
  const DeviceContext& context = Context("--strata_check_streams");
  DenseTensor tensor = TensorOf({100});
  const DeviceContext other(facade(), DevicePlace(0), NewStream());
  float* data = other.Alloc<float>(tensor);
  const auto foreign = context.Alloc<float>(tensor);
  EXPECT_EQ(foreign, data);
  Destroy(stream_);
  // Without elements, because a request for elements would fail earlier, at the
  // chain of the destroyed stream.
  tensor.Resize({0});
  EXPECT_THROW(context.Alloc<std::int32_t>(tensor), std::invalid_argument);
  EXPECT_EQ(tensor.data<float>(), data);
}

// Its chain has ended, so the facade must serve each request.
TEST_F(DeviceContextTest, AfterTheEndOfItsStreamItIsServedAsByTheFacade) {
  const DeviceContext& context = Context();
  facade().StreamDestroyed(stream_);
  DenseTensor tensor = TensorOf({100});
  EXPECT_NE(context.Alloc<float>(tensor), nullptr);
  EXPECT_EQ(&context.GetAllocator(),
            &facade().GetAllocator(DevicePlace(0), stream_));
  EXPECT_EQ(&context.GetAllocator(AllocatorAttributes()),
            &context.GetAllocator());
  EXPECT_EQ(tensor.holder()->owner(), &context.GetAllocator());
  tensor.ResetHolder(nullptr);
  facade().StreamDestroyed(stream_);
}

TEST_F(DeviceContextTest, AStreamThatIsGoneIsNamed) {
  const DeviceContext& context = Context("--strata_check_streams");
  facade().StreamDestroyed(stream_);
  Destroy(stream_);
  DenseTensor tensor = TensorOf({100});
  EXPECT_THROW(context.Alloc<float>(tensor), std::invalid_argument);
  EXPECT_FALSE(tensor.initialized());
}

TEST_F(DeviceContextTest, KnowsItsAllocators) {
  const DeviceContext& context = Context();
  EXPECT_EQ(context.place(), DevicePlace(0));
  EXPECT_EQ(context.stream(), stream_);
  EXPECT_EQ(context.GetAllocator().stream(), stream_);
  EXPECT_EQ(context.GetHostAllocator().place(), HostPlace());
  EXPECT_EQ(context.GetPinnedAllocator().place(), PinnedPlace(0));
  EXPECT_EQ(context.GetZeroAllocator().Allocate(0)->place(), DevicePlace(0));
  EXPECT_EQ(context.GetHostZeroAllocator().Allocate(0)->place(), HostPlace());
}

// tf_bfc §2: AllocatorAttributes choose the allocator.
TEST_F(DeviceContextTest, AttributesChooseThePlace) {
  const DeviceContext& context = Context();
  AllocatorAttributes attributes;
  EXPECT_EQ(context.PlaceFor(attributes), DevicePlace(0));
  EXPECT_EQ(&context.GetAllocator(attributes), &context.GetAllocator());
  attributes.set_gpu_compatible(true);
  EXPECT_EQ(context.PlaceFor(attributes), DevicePlace(0));
  attributes.set_on_host(true);
  EXPECT_EQ(context.PlaceFor(attributes), PinnedPlace(0));
  EXPECT_EQ(&context.GetAllocator(attributes), &context.GetPinnedAllocator());
  attributes.set_gpu_compatible(false);
  EXPECT_EQ(context.PlaceFor(attributes), HostPlace());
  EXPECT_EQ(&context.GetAllocator(attributes), &context.GetHostAllocator());
  attributes.set_nic_compatible(true);
  EXPECT_EQ(context.PlaceFor(attributes), PinnedPlace(0));
}

TEST_F(DeviceContextTest, AHostContextNeedsNoStream) {
  Build();
  const DeviceContext context(facade(), HostPlace());
  DenseTensor tensor = TensorOf({10});
  context.Alloc<float>(tensor)[9] = 2.0F;
  EXPECT_EQ(tensor.place(), HostPlace());
  DenseTensor pinned = TensorOf({10});
  context.Alloc<float>(pinned, 0, /*pinned=*/true);
  EXPECT_EQ(pinned.place(), PinnedPlace(0));
}

TEST_F(DeviceContextTest, RefusesPlacesAndStreamsThatAreNotThere) {
  Build();
  EXPECT_THROW(DeviceContext(facade(), DevicePlace(7), device().LegacyStream()),
               std::invalid_argument);
  EXPECT_THROW(DeviceContext(facade(), DevicePlace(0)), std::invalid_argument);
  EXPECT_THROW(
      DeviceContext(facade(), DevicePlace(0), device(1).LegacyStream()),
      std::invalid_argument);
}

TEST_F(DeviceContextTest, WithoutPinnedMemoryItSaysSo) {
  const auto toy = MakeToyPlatform(PlatformOptions());
  AllocatorFacade facade(Options(), toy);
  const DeviceContext context(facade, DevicePlace(0),
                              toy->device(0).LegacyStream());
  DenseTensor tensor = TensorOf({10});
  EXPECT_THROW(context.Alloc<float>(tensor, 0, /*pinned=*/true),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
