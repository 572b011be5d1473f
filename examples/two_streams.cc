// Two streams use one block of memory: the stream that allocated it, and a
// stream that copies the result out. The block is freed while the copy may
// still run. The mark prevents the reuse of its memory before the copy
// completes.
//
// usage: two_streams [--allocator_strategy=…] [any flag of `strata info`]

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/platform/device.h"

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

strata::Stream NewStream(strata::Device& device) {
  strata::Stream stream;
  const strata::Status status =
      device.StreamCreate(&stream, strata::kStreamNonBlocking);
  if (status != strata::Status::kSuccess) {
    throw std::runtime_error("no stream: " + strata::ToString(status));
  }
  return stream;
}

void Run(strata::AllocatorFacade& facade) {
  const strata::Place gpu = strata::DevicePlace(0);
  strata::Device& device = facade.platform().device(0);
  const strata::Stream compute = NewStream(device);
  const strata::Stream copy = NewStream(device);

  strata::AllocationPtr host = facade.Alloc(strata::PinnedPlace(), kBytes);
  strata::AllocationPtr result = facade.Alloc(gpu, kBytes, compute);
  device.MemsetAsync(reinterpret_cast<strata::DevicePtr>(result->data()), 1,
                     kBytes, compute);
  device.StreamSynchronize(compute);
  device.MemcpyAsync(reinterpret_cast<strata::DevicePtr>(host->data()),
                     reinterpret_cast<strata::DevicePtr>(result->data()),
                     kBytes, copy);
  // After submitting the work that uses them:
  facade.RecordStream(result, copy);
  facade.RecordStream(host, copy);
  result.reset();
  host.reset();

  try {
    facade.Alloc(gpu, std::size_t{1} << 40, compute);
  } catch (const strata::OutOfMemory& error) {
    std::printf("as expected: %s\n", error.what());
  }

  std::printf("given back: %zu bytes\n", facade.Release(gpu));
  for (const strata::Stream& stream : {compute, copy}) {
    facade.StreamDestroyed(stream);
    device.StreamDestroy(stream);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (!strata::ParseCommandLine({argv + 1, argv + argc}).empty()) {
      std::fprintf(stderr, "usage: two_streams [FLAGS]\n");
      return 2;
    }
    strata::AllocatorFacade facade(strata::OptionsFromFlags());
    Run(facade);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "two_streams: %s\n", error.what());
    return 1;
  }
}
