// Graphs, and objects that they keep.

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/edges.h"

namespace strata::simdriver::runtime {

cudaError_t GraphCreate(cudaGraph_t* graph, unsigned flags) {
  return WithDriver([&] { return cuGraphCreate(graph, flags); });
}

cudaError_t GraphDestroy(cudaGraph_t graph) {
  return WithDriver([&] { return cuGraphDestroy(graph); });
}

cudaError_t GraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                          std::size_t* count) {
  return WithDriver([&] { return cuGraphGetNodes(graph, nodes, count); });
}

cudaError_t GraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                              std::size_t* count) {
  return WithDriver([&] { return cuGraphGetRootNodes(graph, nodes, count); });
}

cudaError_t GraphNodeGetDependencies(cudaGraphNode_t node,
                                     cudaGraphNode_t* nodes,
                                     cudaGraphEdgeData* edges,
                                     std::size_t* count) {
  return WithDriver([&] {
    return cuGraphNodeGetDependencies(node, nodes, ToDriver(edges), count);
  });
}

cudaError_t GraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                             unsigned long long flags) {  // NOLINT
  return WithContext(
      [&] { return cuGraphInstantiateWithFlags(exec, graph, flags); });
}

cudaError_t GraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                      unsigned long long flags) {  // NOLINT
  return GraphInstantiate(exec, graph, flags);
}

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    GraphInstantiateWithParams,
    (cudaGraphExec_t * exec, cudaGraph_t graph,
     cudaGraphInstantiateParams* params),
    {
      return WithContext([&] {
        if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
        CUDA_GRAPH_INSTANTIATE_PARAMS same = {};
        same.flags = params->flags;
        same.hUploadStream = StreamOf(null, params->uploadStream);
        const CUresult result =
            cuGraphInstantiateWithParams(exec, graph, &same);
        params->errNode_out = same.hErrNode_out;
        params->result_out =
            static_cast<cudaGraphInstantiateResult>(same.result_out);
        return result;
      });
    })

cudaError_t GraphExecDestroy(cudaGraphExec_t exec) {
  return WithDriver([&] { return cuGraphExecDestroy(exec); });
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

STRATA_SIM_RUNTIME_STREAM_FUNCTION(GraphLaunch,
                                   (cudaGraphExec_t exec, cudaStream_t stream),
                                   {
                                     return WithContext([&] {
                                       return cuGraphLaunch(
                                           exec, StreamOf(null, stream));
                                     });
                                   })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(GraphUpload,
                                   (cudaGraphExec_t exec, cudaStream_t stream),
                                   {
                                     return WithContext([&] {
                                       return cuGraphUpload(
                                           exec, StreamOf(null, stream));
                                     });
                                   })

cudaError_t DeviceGraphMemTrim(int device) {
  return WithDriver([&] { return cuDeviceGraphMemTrim(device); });
}

cudaError_t DeviceGetGraphMemAttribute(int device,
                                       cudaGraphMemAttributeType attribute,
                                       void* value) {
  return WithDriver([&] {
    return cuDeviceGetGraphMemAttribute(
        device, static_cast<CUgraphMem_attribute>(attribute), value);
  });
}

cudaError_t UserObjectCreate(cudaUserObject_t* object, void* pointer,
                             cudaHostFn_t destroy, unsigned count,
                             unsigned flags) {
  return WithDriver([&] {
    return cuUserObjectCreate(object, pointer, destroy, count, flags);
  });
}

cudaError_t UserObjectRelease(cudaUserObject_t object, unsigned count) {
  return WithDriver([&] { return cuUserObjectRelease(object, count); });
}

cudaError_t GraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                  unsigned count, unsigned flags) {
  return WithDriver(
      [&] { return cuGraphRetainUserObject(graph, object, count, flags); });
}

}  // namespace strata::simdriver::runtime
