// A memory resource of CCCL over a facade of two simulated devices, with the
// concepts of CCCL 3.0 and of 3.1 and newer. Prints the first error.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/bindings/adapters/cuda_mr.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/device.h"

namespace {

using strata::mr::device_resource;

constexpr std::size_t kBytes = std::size_t{1} << 20;

void Require(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::exit(1);
}

#if CCCL_VERSION >= 3001000
using ResourceRef = cuda::mr::resource_ref<cuda::mr::device_accessible>;
void* Allocate(ResourceRef resource, cuda::stream_ref stream) {
  return resource.allocate(stream, kBytes, 256);
}
void Deallocate(ResourceRef resource, cuda::stream_ref stream, void* data) {
  resource.deallocate(stream, data, kBytes, 256);
}
#else
using ResourceRef = cuda::mr::async_resource_ref<cuda::mr::device_accessible>;
void* Allocate(ResourceRef resource, cuda::stream_ref stream) {
  return resource.allocate_async(kBytes, 256, stream);
}
void Deallocate(ResourceRef resource, cuda::stream_ref stream, void* data) {
  resource.deallocate_async(data, kBytes, 256, stream);
}
#endif

std::size_t Live(strata::AllocatorFacade& facade, int device) {
  return facade.GetStats(strata::DevicePlace(device)).live_allocations();
}

strata::Stream NewStream(strata::AllocatorFacade& facade) {
  strata::Stream stream;
  const strata::Status status = facade.platform().device(0).StreamCreate(
      &stream, strata::kStreamNonBlocking);
  Require(status == strata::Status::kSuccess, "a stream can be made");
  return stream;
}

cuda::stream_ref RefOf(strata::Stream stream) {
  return cuda::stream_ref(static_cast<cudaStream_t>(stream.handle));
}

// The block is reused in its stream at once. After a deallocation in another
// stream, it is reused only when that stream is complete.
void CheckStreams(strata::AllocatorFacade& facade, device_resource resource) {
  const strata::Stream own = NewStream(facade);
  const strata::Stream other = NewStream(facade);
  void* const block = Allocate(resource, RefOf(own));
  Require(block != nullptr, "there is memory");
  Require(reinterpret_cast<std::uintptr_t>(block) % 256 == 0, "it is aligned");
  Deallocate(resource, RefOf(own), block);
  void* const again = Allocate(resource, RefOf(own));
  Require(again == block, "a stream reuses its memory at once");
  facade.platform().device(0).LaunchHostFunc(
      other, [](void*) {}, nullptr);
  Deallocate(resource, RefOf(other), again);
  void* const next = Allocate(resource, RefOf(own));
  Require(next != block, "memory waits for the stream that deallocates it");
  Deallocate(resource, RefOf(own), next);
  Require(Live(facade, 0) == 0, "nothing is live");
}

void CheckErrors(device_resource resource) {
  try {
    resource.allocate_sync(std::size_t{65} << 20);
    Require(false, "65 MiB are refused");
  } catch (const std::bad_alloc& error) {
    Require(std::string(error.what()).find("65.0 MiB on device:0") !=
                std::string::npos,
            "the exception has the numbers");
  }
  int unknown = 0;
  resource.deallocate_sync(&unknown, sizeof unknown);  // logged
  Require(resource.allocate_sync(0) == nullptr, "nothing is null");
  resource.deallocate_sync(nullptr, 0);
}

void CheckCopies(const std::shared_ptr<strata::AllocatorFacade>& facade) {
  device_resource first(facade);
  device_resource copy = first;
  Require(copy == first, "copies are equal");
  Require(first != device_resource(facade), "others are not");
  copy.deallocate_sync(first.allocate_sync(kBytes), kBytes);
  Require(Live(*facade, 0) == 0, "a copy deallocates");
  {
    device_resource second(facade, 1);
    second.allocate_sync(kBytes);
    Require(Live(*facade, 1) == 1, "the second device has memory");
  }
  Require(Live(*facade, 1) == 0, "the last copy frees the rest");
  for (const int nowhere : {-1, 2}) {
    try {
      const device_resource third(facade, nowhere);
      Require(false, "there is no third device");
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace

int main() {
  const auto facade = std::make_shared<strata::AllocatorFacade>(
      strata::Options::Parse("strata_platform=sim,strata_sim_devices=2,"
                             "strata_sim_memory=64MiB,"
                             "strata_sim_progress=lazy"));
  const device_resource resource(facade);
  CheckStreams(*facade, resource);
  CheckErrors(resource);
  CheckCopies(facade);
  std::printf("CCCL %d is served\n", CCCL_VERSION);
  return 0;
}
