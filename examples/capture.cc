// The smallest program that captures safely. It captures work with a temporary
// from the facade into a CUDA graph. Every launch of the graph gives the same
// result, even if memory was allocated in between.
//
// usage: capture [--strata_sim_check_hazards=abort] [any flag of `strata info`]

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/device.h"

namespace {

constexpr std::size_t kBytes = 4096;
constexpr strata::Place kGpu = strata::DevicePlace(0);

void Check(strata::Status status, const char* what) {
  if (status != strata::Status::kSuccess) {
    throw strata::DeviceError(what, status);
  }
}
strata::DevicePtr AddressOf(const strata::AllocationPtr& allocation) {
  return reinterpret_cast<strata::DevicePtr>(allocation->data());
}

// A graph that writes sevens to `result`, through a temporary.
strata::Graph Capture(strata::AllocatorFacade& facade, strata::Stream stream,
                      const strata::AllocationPtr& result) {
  strata::Device& device = facade.platform().device(0);
  strata::CaptureGuard guard(facade, stream);
  strata::AllocationPtr temporary = facade.Alloc(kGpu, kBytes, stream);
  Check(device.MemsetAsync(AddressOf(temporary), 7, kBytes, stream), "fill");
  Check(device.MemcpyAsync(AddressOf(result), AddressOf(temporary), kBytes,
                           stream),
        "copy");
  temporary.reset();  // the graph holds its memory
  return guard.End();
}

// True if each launch gives the same result after other uses of memory.
bool Replay(strata::AllocatorFacade& facade, strata::Stream stream,
            strata::GraphExec exec, const strata::AllocationPtr& result) {
  strata::Device& device = facade.platform().device(0);
  const strata::AllocationPtr host =
      facade.Alloc(strata::PinnedPlace(), kBytes);
  const std::vector<char> expected(kBytes, 7);
  bool same = true;
  for (int launch = 0; launch < 3; ++launch) {
    strata::AllocationPtr other = facade.Alloc(kGpu, kBytes, stream);
    Check(device.MemsetAsync(AddressOf(other), launch, kBytes, stream), "fill");
    other.reset();
    Check(device.MemsetAsync(AddressOf(result), 0, kBytes, stream), "clear");
    Check(device.GraphLaunch(exec, stream), "launch the graph");
    Check(
        device.MemcpyAsync(AddressOf(host), AddressOf(result), kBytes, stream),
        "copy");
    Check(device.StreamSynchronize(stream), "wait");
    same = same && (device.caps().phantom_memory ||
                    std::memcmp(host->data(), expected.data(), kBytes) == 0);
  }
  return same;
}

int Run(const strata::Options& options) {
  strata::AllocatorFacade facade(options);
  strata::Device& device = facade.platform().device(0);
  strata::Stream stream;
  Check(device.StreamCreate(&stream, strata::kStreamNonBlocking), "stream");
  strata::AllocationPtr result = facade.Alloc(kGpu, kBytes, stream);

  const strata::Graph graph = Capture(facade, stream, result);
  strata::GraphExec exec;
  Check(device.GraphInstantiate(&exec, graph, 0), "instantiate");
  const bool same = Replay(facade, stream, exec, result);
  std::printf("three launches, the same result: %s\n", same ? "yes" : "NO");

  Check(device.GraphExecDestroy(exec), "destroy");
  Check(device.GraphDestroy(graph), "destroy");
  result.reset();
  facade.EmptyCache();  // also releases the memory of the graph
  const std::size_t held = facade.GetStats(kGpu).reserved_bytes;
  std::printf("held when the graph is gone: %zu bytes\n", held);
  facade.StreamDestroyed(stream);
  device.StreamDestroy(stream);
  return same && held == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (!strata::ParseCommandLine({argv + 1, argv + argc}).empty()) {
      std::fprintf(stderr, "usage: capture [FLAGS]\n");
      return 2;
    }
    return Run(strata::OptionsFromFlags());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "capture: %s\n", error.what());
    return 1;
  }
}
