// Graphs of a GPU. In call records `ptr` is the graph, executable graph, node
// or user object that a call acts on. `value` is the other handle, if any.

#include "strata/platform/cuda/cuda_device_run.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

template <class Tag>
CallRecord CallAboutGraph(DeviceCall device_call, Handle<Tag> handle,
                          std::uint64_t value = 0) {
  return RecordOf(device_call, ToNumber(handle), 0, value);
}

}  // namespace

Status CudaDevice::GraphCreate(Graph* graph) {
  return Run(CallAboutGraph(DeviceCall::kGraphCreate, Graph()),
             [&](CallRecord* seen) {
               if (graph == nullptr) return Status::kInvalidValue;
               CUgraph made = nullptr;
               const CUresult result = driver_.GraphCreate(&made, 0);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               graph->value = made;
               seen->ptr = ToNumber(*graph);
               return Status::kSuccess;
             });
}

Status CudaDevice::GraphDestroy(Graph graph) {
  return Run(CallAboutGraph(DeviceCall::kGraphDestroy, graph),
             [&](CallRecord*) {
               if (!graph) return Status::kInvalidValue;
               return ToStatus(driver_.GraphDestroy(ToCuda(graph)));
             });
}

Status CudaDevice::GraphNodePredecessors(GraphNode node,
                                         std::vector<GraphNode>* predecessors) {
  if (driver_.GraphNodeGetDependencies == nullptr) {
    return Status::kNotSupported;
  }
  return Run(CallAboutGraph(DeviceCall::kGraphNodePredecessors, node),
             [&](CallRecord*) {
               if (!node || predecessors == nullptr) {
                 return Status::kInvalidValue;
               }
               std::size_t count = 0;
               CUresult result = driver_.GraphNodeGetDependencies(
                   ToCuda(node), nullptr, nullptr, &count);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               std::vector<CUgraphNode> nodes(count);
               // Without this argument, edges with data are an error.
               std::vector<CUgraphEdgeData> edges(count);
               if (count != 0) {
                 result = driver_.GraphNodeGetDependencies(
                     ToCuda(node), nodes.data(), edges.data(), &count);
                 if (result != CUDA_SUCCESS) return ToStatus(result);
               }
               *predecessors = FromCuda(nodes.data(), nodes.size());
               return Status::kSuccess;
             });
}

Status CudaDevice::GraphInstantiate(GraphExec* exec, Graph graph,
                                    unsigned flags) {
  CallRecord call = CallAboutGraph(DeviceCall::kGraphInstantiate, GraphExec(),
                                   ToNumber(graph));
  return Run(call, [&](CallRecord* seen) {
    if (exec == nullptr || !graph) return Status::kInvalidValue;
    CUgraphExec made = nullptr;
    const CUresult result =
        driver_.GraphInstantiate(&made, ToCuda(graph), flags);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    exec->value = made;
    seen->ptr = ToNumber(*exec);
    return Status::kSuccess;
  });
}

Status CudaDevice::GraphExecDestroy(GraphExec exec) {
  return Run(CallAboutGraph(DeviceCall::kGraphExecDestroy, exec),
             [&](CallRecord*) {
               if (!exec) return Status::kInvalidValue;
               return ToStatus(driver_.GraphExecDestroy(ToCuda(exec)));
             });
}

Status CudaDevice::GraphLaunch(GraphExec exec, Stream stream) {
  return RunOn(
      stream, CallAboutGraph(DeviceCall::kGraphLaunch, exec), [&](CallRecord*) {
        if (!exec) return Status::kInvalidValue;
        return ToStatus(driver_.GraphLaunch(ToCuda(exec), ToCuda(stream)));
      });
}

Status CudaDevice::GraphExecUpdate(GraphExec exec, Graph graph) {
  return Run(
      CallAboutGraph(DeviceCall::kGraphExecUpdate, exec, ToNumber(graph)),
      [&](CallRecord*) {
        if (!exec || !graph) return Status::kInvalidValue;
        CUgraphExecUpdateResultInfo info = {};
        return ToStatus(
            driver_.GraphExecUpdate(ToCuda(exec), ToCuda(graph), &info));
      });
}

Status CudaDevice::GraphMemTrim() {
  return Run(CallAboutGraph(DeviceCall::kGraphMemTrim, Graph()),
             [&](CallRecord*) {
               return ToStatus(driver_.DeviceGraphMemTrim(device_));
             });
}

Status CudaDevice::GraphMemAttribute(GraphMemAttributeKind kind,
                                     std::uint64_t* value) {
  CallRecord call = CallAboutGraph(DeviceCall::kGraphMemAttribute, Graph(),
                                   static_cast<std::uint64_t>(kind));
  return Run(call, [&](CallRecord* seen) {
    if (value == nullptr) return Status::kInvalidValue;
    cuuint64_t bytes = 0;
    const CUresult result = driver_.DeviceGetGraphMemAttribute(
        device_, static_cast<CUgraphMem_attribute>(kind), &bytes);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    *value = bytes;
    seen->bytes = bytes;
    return Status::kSuccess;
  });
}

Status CudaDevice::UserObjectCreate(UserObject* object, void* pointer,
                                    HostFunction destroy) {
  return Run(CallAboutGraph(DeviceCall::kUserObjectCreate, UserObject()),
             [&](CallRecord* seen) {
               if (object == nullptr || destroy == nullptr) {
                 return Status::kInvalidValue;
               }
               CUuserObject made = nullptr;
               const CUresult result =
                   driver_.UserObjectCreate(&made, pointer, destroy, 1,
                                            CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               object->value = made;
               seen->ptr = ToNumber(*object);
               return Status::kSuccess;
             });
}

Status CudaDevice::GraphRetainUserObject(Graph graph, UserObject object,
                                         bool move) {
  return Run(CallAboutGraph(DeviceCall::kGraphRetainUserObject, graph,
                            ToNumber(object)),
             [&](CallRecord*) {
               if (!graph || !object) return Status::kInvalidValue;
               return ToStatus(driver_.GraphRetainUserObject(
                   ToCuda(graph), ToCuda(object), 1,
                   move ? CU_GRAPH_USER_OBJECT_MOVE : 0));
             });
}

Status CudaDevice::UserObjectRelease(UserObject object) {
  return Run(CallAboutGraph(DeviceCall::kUserObjectRelease, object),
             [&](CallRecord*) {
               if (!object) return Status::kInvalidValue;
               return ToStatus(driver_.UserObjectRelease(ToCuda(object), 1));
             });
}

}  // namespace strata::cuda
