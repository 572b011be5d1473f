// The C ABI: captures of CUDA graphs.

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/bindings/c/c_api_call.h"
#include "strata/facade/graphs/graph_pool_id.h"
#include "strata/platform/memory_types.h"

strata_status strata_capture_begin(strata_facade* facade, int32_t device,
                                   void* stream, int64_t* pool) {
  return strata::FacadeCall("strata_capture_begin", facade, [&] {
    strata::Require(pool, "pool");
    const strata::Stream origin = facade->facade.Wrap(stream, device);
    *pool = facade->facade.PrepareMemoryPoolForCUDAGraph(*pool, origin);
  });
}

strata_status strata_capture_end(strata_facade* facade, int32_t device,
                                 int64_t pool, void* graph) {
  return strata::FacadeCall("strata_capture_end", facade, [&] {
    try {
      if (graph != nullptr) {
        facade->facade.KeepForGraph(pool, device, strata::Graph{graph});
      } else if (device < 0 ||
                 device >= facade->facade.platform().device_count()) {
        throw std::invalid_argument("there is no device " +
                                    std::to_string(device));
      }
    } catch (...) {
      facade->facade.CaptureEnded(pool);  // the capture has ended even then
      throw;
    }
    facade->facade.CaptureEnded(pool);
  });
}

strata_status strata_graph_pool_remove(strata_facade* facade, int64_t pool) {
  return strata::FacadeCall("strata_graph_pool_remove", facade, [&] {
    facade->facade.RemoveMemoryPoolOfCUDAGraph(pool);
  });
}
