// Captures and graphs, where the types of the driver differ.

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {

cudaError_t StreamIsCapturing(NullStream null, cudaStream_t stream,
                              cudaStreamCaptureStatus* status) {
  return WithContext([&] {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = cuStreamIsCapturing(StreamOf(null, stream), &found);
    if (result == CUDA_SUCCESS) {
      *status = static_cast<cudaStreamCaptureStatus>(found);
    }
    return result;
  });
}

cudaError_t StreamGetCaptureInfo(NullStream null, cudaStream_t stream,
                                 cudaStreamCaptureStatus* status,
                                 unsigned long long* id,  // NOLINT
                                 cudaGraph_t* graph,
                                 const cudaGraphNode_t** nodes,
                                 const cudaGraphEdgeData** edges,
                                 std::size_t* count) {
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
    if (edges != nullptr) {
      *edges = reinterpret_cast<const cudaGraphEdgeData*>(found_edges);
    }
    return result;
  });
}

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

cudaError_t GraphInstantiateWithParams(NullStream null, cudaGraphExec_t* exec,
                                       cudaGraph_t graph,
                                       cudaGraphInstantiateParams* params) {
  return WithContext([&] {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_GRAPH_INSTANTIATE_PARAMS same = {};
    same.flags = params->flags;
    same.hUploadStream = StreamOf(null, params->uploadStream);
    const CUresult result = cuGraphInstantiateWithParams(exec, graph, &same);
    params->errNode_out = same.hErrNode_out;
    params->result_out =
        static_cast<cudaGraphInstantiateResult>(same.result_out);
    return result;
  });
}

cudaError_t GraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                            cudaGraphExecUpdateResultInfo* info) {
  return WithContext([&] {
    if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExecUpdateResultInfo found = {};
    const CUresult result = cuGraphExecUpdate(exec, graph, &found);
    info->result = static_cast<cudaGraphExecUpdateResult>(found.result);
    info->errorNode = found.errorNode;
    info->errorFromNode = found.errorFromNode;
    return result;
  });
}

}  // namespace strata::simdriver::runtime
