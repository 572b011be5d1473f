// Graphs of a GPU. In call records `ptr` is the graph, executable graph, node
// or user object that a call acts on. `value` is the other handle, if any.

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {

Status CudaDevice::DoGraphCreate(Call* seen, Graph* graph) {
  if (graph == nullptr) return Status::kInvalidValue;
  CUgraph made = nullptr;
  const CUresult result = driver_.GraphCreate(&made, 0);
  return Give(result, made, graph, seen);
}

Status CudaDevice::DoGraphDestroy(Call*, Graph graph) {
  if (!graph) return Status::kInvalidValue;
  return ToStatus(driver_.GraphDestroy(ToCuda(graph)));
}

Status CudaDevice::DoGraphNodePredecessors(
    Call*, GraphNode node, std::vector<GraphNode>* predecessors) {
  if (!node || predecessors == nullptr) return Status::kInvalidValue;
  std::size_t count = 0;
  CUresult result =
      driver_.GraphNodeGetDependencies(ToCuda(node), nullptr, nullptr, &count);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  std::vector<CUgraphNode> nodes(count);
  // Without this argument, edges with data are an error.
  std::vector<CUgraphEdgeData> edges(count);
  if (count != 0) {
    result = driver_.GraphNodeGetDependencies(ToCuda(node), nodes.data(),
                                              edges.data(), &count);
    if (result != CUDA_SUCCESS) return ToStatus(result);
  }
  *predecessors = FromCuda(nodes.data(), nodes.size());
  return Status::kSuccess;
}

Status CudaDevice::DoGraphInstantiate(Call* seen, GraphExec* exec, Graph graph,
                                      unsigned flags) {
  if (exec == nullptr || !graph) return Status::kInvalidValue;
  CUgraphExec made = nullptr;
  const CUresult result = driver_.GraphInstantiate(&made, ToCuda(graph), flags);
  return Give(result, made, exec, seen);
}

Status CudaDevice::DoGraphExecDestroy(Call*, GraphExec exec) {
  if (!exec) return Status::kInvalidValue;
  return ToStatus(driver_.GraphExecDestroy(ToCuda(exec)));
}

Status CudaDevice::DoGraphLaunch(Call*, GraphExec exec, Stream stream) {
  if (!exec) return Status::kInvalidValue;
  return ToStatus(driver_.GraphLaunch(ToCuda(exec), ToCuda(stream)));
}

Status CudaDevice::DoGraphExecUpdate(Call*, GraphExec exec, Graph graph) {
  if (!exec || !graph) return Status::kInvalidValue;
  CUgraphExecUpdateResultInfo info = {};
  return ToStatus(driver_.GraphExecUpdate(ToCuda(exec), ToCuda(graph), &info));
}

Status CudaDevice::DoGraphMemTrim(Call*) {
  return ToStatus(driver_.DeviceGraphMemTrim(device_));
}

Status CudaDevice::DoGraphMemAttribute(Call* seen, GraphMemAttributeKind kind,
                                       std::uint64_t* value) {
  if (value == nullptr) return Status::kInvalidValue;
  cuuint64_t bytes = 0;
  const CUresult result = driver_.DeviceGetGraphMemAttribute(
      device_, static_cast<CUgraphMem_attribute>(kind), &bytes);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *value = bytes;
  seen->bytes = bytes;
  return Status::kSuccess;
}

Status CudaDevice::DoUserObjectCreate(Call* seen, UserObject* object,
                                      void* pointer, HostFunction destroy) {
  if (object == nullptr || destroy == nullptr) return Status::kInvalidValue;
  CUuserObject made = nullptr;
  const CUresult result = driver_.UserObjectCreate(
      &made, pointer, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  return Give(result, made, object, seen);
}

Status CudaDevice::DoGraphRetainUserObject(Call*, Graph graph,
                                           UserObject object, bool move) {
  if (!graph || !object) return Status::kInvalidValue;
  return ToStatus(driver_.GraphRetainUserObject(
      ToCuda(graph), ToCuda(object), 1, move ? CU_GRAPH_USER_OBJECT_MOVE : 0));
}

Status CudaDevice::DoUserObjectRelease(Call*, UserObject object) {
  if (!object) return Status::kInvalidValue;
  return ToStatus(driver_.UserObjectRelease(ToCuda(object), 1));
}

}  // namespace strata::cuda
