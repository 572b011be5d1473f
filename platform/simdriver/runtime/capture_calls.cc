// Captures of streams. Handles, numbers and edges are those of the driver.

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/edges.h"

namespace strata::simdriver::runtime {

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), {
      return WithContext([&] {
        return cuStreamBeginCapture(StreamOf(null, stream),
                                    static_cast<CUstreamCaptureMode>(mode));
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamBeginCaptureToGraph,
    (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* nodes,
     const cudaGraphEdgeData* edges, std::size_t count,
     cudaStreamCaptureMode mode),
    {
      return WithContext([&] {
        return cuStreamBeginCaptureToGraph(
            StreamOf(null, stream), graph, nodes, ToDriver(edges), count,
            static_cast<CUstreamCaptureMode>(mode));
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamEndCapture,
                                   (cudaStream_t stream, cudaGraph_t* graph), {
                                     return WithContext([&] {
                                       return cuStreamEndCapture(
                                           StreamOf(null, stream), graph);
                                     });
                                   })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status), {
      return WithContext([&] {
        if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
        CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
        const CUresult result =
            cuStreamIsCapturing(StreamOf(null, stream), &found);
        if (result == CUDA_SUCCESS) {
          *status = static_cast<cudaStreamCaptureStatus>(found);
        }
        return result;
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    StreamGetCaptureInfo,
    (cudaStream_t stream, cudaStreamCaptureStatus* status,
     unsigned long long* id,  // NOLINT
     cudaGraph_t* graph, const cudaGraphNode_t** nodes,
     const cudaGraphEdgeData** edges, std::size_t* count),
    {
      return WithContext([&] {
        if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
        CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
        cuuint64_t found_id = 0;
        const CUgraphEdgeData* found_edges = nullptr;
        const CUresult result = cuStreamGetCaptureInfo(
            StreamOf(null, stream), &found, &found_id, graph, nodes,
            edges != nullptr ? &found_edges : nullptr, count);
        if (result != CUDA_SUCCESS) return result;
        *status = static_cast<cudaStreamCaptureStatus>(found);
        if (found != CU_STREAM_CAPTURE_STATUS_ACTIVE) return result;
        if (id != nullptr) *id = found_id;
        if (edges != nullptr) *edges = FromDriver(found_edges);
        return result;
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(StreamUpdateCaptureDependencies,
                                   (cudaStream_t stream, cudaGraphNode_t* nodes,
                                    const cudaGraphEdgeData* edges,
                                    std::size_t count, unsigned flags),
                                   {
                                     return WithContext([&] {
                                       return cuStreamUpdateCaptureDependencies(
                                           StreamOf(null, stream), nodes,
                                           ToDriver(edges), count, flags);
                                     });
                                   })

cudaError_t ThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return WithDriver([&] {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
    const CUresult result = cuThreadExchangeStreamCaptureMode(&exchanged);
    if (result == CUDA_SUCCESS) {
      *mode = static_cast<cudaStreamCaptureMode>(exchanged);
    }
    return result;
  });
}

}  // namespace strata::simdriver::runtime
