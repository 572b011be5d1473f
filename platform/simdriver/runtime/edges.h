#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_EDGES_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_EDGES_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

namespace strata::simdriver::runtime {

// Edges of graphs, which are the same structure in both headers.
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(offsetof(cudaGraphEdgeData, type) ==
              offsetof(CUgraphEdgeData, type));

inline const CUgraphEdgeData* ToDriver(const cudaGraphEdgeData* edges) {
  return reinterpret_cast<const CUgraphEdgeData*>(edges);
}
inline CUgraphEdgeData* ToDriver(cudaGraphEdgeData* edges) {
  return reinterpret_cast<CUgraphEdgeData*>(edges);
}
inline const cudaGraphEdgeData* FromDriver(const CUgraphEdgeData* edges) {
  return reinterpret_cast<const cudaGraphEdgeData*>(edges);
}

}  // namespace strata::simdriver::runtime

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_EDGES_H_
