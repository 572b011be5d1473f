// A copy on a stream, a limit, the exception when it is exceeded, and
// statistics.
#include <cstdio>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/platform/device.h"

int main(int argc, char** argv) try {
  strata::ParseCommandLine({argv + 1, argv + argc});
  strata::Options options = strata::OptionsFromFlags();
  options.gpu_memory_limit_mb = 64;
  strata::AllocatorFacade facade(options);
  strata::Stream stream;  // or facade.Wrap(a cudaStream_t, 0)
  facade.platform().device(0).StreamCreate(&stream, strata::kStreamNonBlocking);
  auto host = facade.Alloc(strata::PinnedPlace(), 1 << 20);
  auto gpu = facade.Alloc(strata::DevicePlace(0), 1 << 20, stream);
  auto at = [](auto& p) { return reinterpret_cast<std::uintptr_t>(p->data()); };
  facade.platform().device(0).MemcpyAsync(at(gpu), at(host), 1 << 20, stream);
  facade.RecordStream(host, stream);  // host memory belongs to no stream
  try {
    facade.Alloc(strata::DevicePlace(0), 100 << 20, stream);
  } catch (const strata::OutOfMemory& error) {
    std::printf("as expected: %s\n", error.what());
  }
  std::puts(strata::ToJson(facade.GetStats(strata::DevicePlace(0))).c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "limit: %s\n", error.what());
  return 1;
}
