// Graphs, and objects that they keep.

#include <algorithm>
#include <vector>

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/types.h"

namespace strata::simdriver {
namespace {

// If `nodes` is null, writes the number of nodes in `found` to `*count`.
// Otherwise writes `*count` entries: the nodes, and null behind the last one.
void PutNodes(const std::vector<GraphNode>& found, CUgraphNode* nodes,
              std::size_t* count) {
  if (nodes == nullptr) {
    *count = found.size();
    return;
  }
  for (std::size_t i = 0; i < *count; ++i) {
    nodes[i] =
        i < found.size() ? static_cast<CUgraphNode>(found[i].value) : nullptr;
  }
  *count = std::min(*count, found.size());
}

// Writes the nodes of a graph as PutNodes does.
CUresult Nodes(CUgraph graph, bool roots_only, CUgraphNode* nodes,
               std::size_t* count) {
  return OnAnyDevice([&](SimDevice& device) {
    if (count == nullptr) return Status::kInvalidValue;
    std::vector<GraphNode> found;
    const Status status = device.GraphNodes({graph}, roots_only, &found);
    if (status == Status::kSuccess) PutNodes(found, nodes, count);
    return status;
  });
}

}  // namespace

CUresult GraphCreate(CUgraph* graph, unsigned flags) {
  return OnAnyDevice([&](SimDevice& device) {
    if (flags != 0) return Status::kInvalidValue;
    return PutMade(graph, device, &SimDevice::GraphCreate);
  });
}

CUresult GraphDestroy(CUgraph graph) {
  return OnAnyDevice(&SimDevice::GraphDestroy, Graph{graph});
}

CUresult GraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return Nodes(graph, /*roots_only=*/false, nodes, count);
}

CUresult GraphGetRootNodes(CUgraph graph, CUgraphNode* nodes,
                           std::size_t* count) {
  return Nodes(graph, /*roots_only=*/true, nodes, count);
}

CUresult GraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes,
                                  std::size_t* count) {
  return GraphNodeGetEdges(node, nodes, nullptr, count);
}

CUresult GraphNodeGetEdges(CUgraphNode node, CUgraphNode* nodes,
                           CUgraphEdgeData* edges, std::size_t* count) {
  return OnAnyDevice([&](SimDevice& device) {
    if (count == nullptr || (nodes == nullptr && edges != nullptr)) {
      return Status::kInvalidValue;
    }
    std::vector<GraphNode> found;
    const Status status = device.GraphNodePredecessors({node}, &found);
    if (status != Status::kSuccess) return status;
    if (edges != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
    PutNodes(found, nodes, count);
    return Status::kSuccess;
  });
}

CUresult GraphInstantiateLogged(CUgraphExec* exec, CUgraph graph,
                                CUgraphNode* error_node, char* log,
                                std::size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return GraphInstantiateWithFlags(exec, graph, 0);
}

CUresult GraphInstantiateLogged2(CUgraphExec* exec, CUgraph graph,
                                 CUgraphNode* error_node, char* log,
                                 std::size_t log_bytes) {
  return GraphInstantiateLogged(exec, graph, error_node, log, log_bytes);
}

CUresult GraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                   unsigned long long flags) {  // NOLINT
  return OnCurrentDevice([&](SimDevice& device) {
    if (flags > ~0u) return Status::kInvalidValue;
    return PutMade(exec, device, &SimDevice::GraphInstantiate, Graph{graph},
                   static_cast<unsigned>(flags));
  });
}

CUresult GraphInstantiateWithParams(NullStream, CUgraphExec* exec,
                                    CUgraph graph,
                                    CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t flags =
      params->flags &
      ~static_cast<std::uint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  const CUresult result = GraphInstantiateWithFlags(exec, graph, flags);
  params->hErrNode_out = nullptr;
  params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                              : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult GraphExecDestroy(CUgraphExec exec) {
  return OnAnyDevice(&SimDevice::GraphExecDestroy, GraphExec{exec});
}

CUresult GraphExecUpdate(CUgraphExec exec, CUgraph graph,
                         CUgraphExecUpdateResultInfo* info) {
  return OnAnyDevice([&](SimDevice& device) {
    if (info == nullptr) return Status::kInvalidValue;
    const Status status = device.GraphExecUpdate({exec}, {graph});
    *info = {};
    info->result = status == Status::kSuccess ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                              : CU_GRAPH_EXEC_UPDATE_ERROR;
    return status;
  });
}

CUresult GraphLaunch(NullStream null, CUgraphExec exec, CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    return device.GraphLaunch({exec}, stream);
  });
}

// Does nothing, because a launch on the simulated device needs no upload.
CUresult GraphUpload(NullStream null, CUgraphExec exec, CUstream handle) {
  return OnStream(null, handle, [&](SimDevice&, const Stream&) {
    return exec != nullptr ? Status::kSuccess : Status::kInvalidValue;
  });
}

CUresult DeviceGraphMemTrim(CUdevice ordinal) {
  const CUresult result = CheckOrdinal(ordinal);
  if (result != CUDA_SUCCESS) return result;
  return ToResult(FindProcess()->platform.device(ordinal).GraphMemTrim());
}

CUresult DeviceGetGraphMemAttribute(CUdevice ordinal,
                                    CUgraphMem_attribute attribute,
                                    void* value) {
  return OfDevice(ordinal, value, [&](Device& device) {
    std::uint64_t bytes = 0;
    const Status status = device.GraphMemAttribute(
        static_cast<GraphMemAttributeKind>(attribute), &bytes);
    if (status == Status::kSuccess) *static_cast<cuuint64_t*>(value) = bytes;
    return ToResult(status);
  });
}

// The simulated device counts one reference per call.
CUresult UserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy,
                          unsigned count, unsigned flags) {
  return OnAnyDevice([&](SimDevice& device) {
    if (object == nullptr || destroy == nullptr || count == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
      return Status::kInvalidValue;
    }
    if (count != 1) return Status::kNotSupported;
    return PutMade(object, device, &SimDevice::UserObjectCreate, pointer,
                   destroy);
  });
}

CUresult UserObjectRelease(CUuserObject object, unsigned count) {
  return OnAnyDevice([&](SimDevice& device) {
    if (count == 0) return Status::kInvalidValue;
    if (count != 1) return Status::kNotSupported;
    return device.UserObjectRelease({object});
  });
}

CUresult GraphRetainUserObject(CUgraph graph, CUuserObject object,
                               unsigned count, unsigned flags) {
  return OnAnyDevice([&](SimDevice& device) {
    if (count == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE) {
      return Status::kInvalidValue;
    }
    if (count != 1) return Status::kNotSupported;
    return device.GraphRetainUserObject({graph}, {object},
                                        flags == CU_GRAPH_USER_OBJECT_MOVE);
  });
}

}  // namespace strata::simdriver
