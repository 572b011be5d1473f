// A copy on a stream, a limit, the exception beyond it, and statistics.
// usage: limit [flags of `strata info`]
#include <cstdio>
#include <exception>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/platform/device.h"

int main(int argc, char** argv) try {
  strata::ParseCommandLine({argv + 1, argv + argc});
  strata::Options options = strata::OptionsFromFlags();
  options.gpu_memory_limit_mb = 64;
  strata::AllocatorFacade facade(options);
  strata::Device& device = facade.platform().device(0);
  strata::Stream stream;  // or facade.Wrap(a cudaStream_t, 0)
  device.StreamCreate(&stream, strata::kStreamNonBlocking);
  const strata::Place gpu = strata::DevicePlace(0);
  auto host = facade.Alloc(strata::PinnedPlace(), 1 << 20);
  auto block = facade.Alloc(gpu, 1 << 20, stream);
  device.MemcpyAsync(reinterpret_cast<strata::DevicePtr>(block->data()),
                     reinterpret_cast<strata::DevicePtr>(host->data()), 1 << 20,
                     stream);
  facade.RecordStream(host, stream);  // host memory belongs to no stream
  host.reset();                       // is reused when the copy is done
  try {
    facade.Alloc(gpu, 100 << 20, stream);
  } catch (const strata::OutOfMemory& error) {
    std::printf("as expected: %s\n", error.what());
  }
  const strata::Stats stats = facade.GetStats(gpu);
  std::printf("in use: %zu bytes, at most %zu; reserved: %zu\n",
              stats.in_use_bytes, stats.peak_in_use_bytes,
              stats.reserved_bytes);
  block.reset();
  facade.StreamDestroyed(stream);
  device.StreamDestroy(stream);
} catch (const std::exception& error) {
  std::fprintf(stderr, "limit: %s\n", error.what());
  return 1;
}
