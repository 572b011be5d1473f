// RMM over a facade of a simulated device: as the resource of the device, below
// buffers and adaptors. Prints the first error.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

#include "strata/bindings/adapters/cuda_mr.h"
#include "strata/facade/allocator_facade.h"

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

void Require(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::exit(1);
}

template <class Body>
bool RunsOutOfMemory(Body body) {
  try {
    body();
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace

int main() {
  const auto facade = std::make_shared<strata::AllocatorFacade>(
      strata::Options::Parse("strata_platform=sim,strata_sim_memory=64MiB"));
  const auto live = [&] {
    return facade->GetStats(strata::DevicePlace(0)).live_allocations();
  };
  const strata::mr::device_resource resource(facade);
  const cuda::stream_ref stream{cudaStream_t{}};

  rmm::mr::set_current_device_resource(resource);
  {
    const rmm::device_buffer current(kBytes, stream);
    const rmm::device_buffer own(kBytes, stream, resource);
    Require(current.data() != own.data(), "buffers have memory of their own");
    Require(live() == 2, "the facade has both");
    Require(RunsOutOfMemory([&] { rmm::device_buffer(kBytes * 65, stream); }),
            "65 MiB are refused");
  }
  Require(live() == 0, "buffers give their memory back");

  rmm::mr::statistics_resource_adaptor counted(resource);
  rmm::mr::limiting_resource_adaptor limited(counted, 2 * kBytes);
  {
    const rmm::device_buffer first(kBytes, stream, limited);
    Require(RunsOutOfMemory(
                [&] { rmm::device_buffer(2 * kBytes, stream, limited); }),
            "RMM's limit holds");
    Require(
        counted.get_bytes_counter().value == static_cast<std::int64_t>(kBytes),
        "RMM counts");
  }
  Require(live() == 0, "adaptors give their memory back");
  std::puts("RMM is served");
  return 0;
}
