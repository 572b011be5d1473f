// Graphs of the simulated device. In call records `ptr` is the graph,
// instantiated graph, node or user object that a call acts on. `value` is the
// other handle, if any.

#include <memory>
#include <utility>
#include <vector>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/graphs/exec_plan.h"
#include "strata/platform/sim/graphs/graph_table.h"
#include "strata/platform/sim/streams/stream_table.h"

namespace strata::sim {

Status SimDevice::DoGraphCreate(Call* seen, Graph* graph) {
  if (graph == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  *graph = platform_->graphs().Create(ordinal_);
  seen->ptr = NumberOf(*graph);
  return Status::kSuccess;
}

Status SimDevice::DoGraphDestroy(Call*, Graph graph) {
  std::lock_guard lock(mutex_);
  GraphTable& graphs = platform_->graphs();
  const GraphEntry* entry = graphs.Find(graph);
  // A graph to which a capture adds nodes cannot be destroyed:
  // C11.
  if (entry == nullptr || entry->capturing) return Status::kInvalidValue;
  graphs.Destroy(graph);
  return Status::kSuccess;
}

Status SimDevice::DoGraphNodePredecessors(
    Call*, GraphNode node, std::vector<GraphNode>* predecessors) {
  if (predecessors == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  NodeIndex index = 0;
  const SimGraph* graph = platform_->graphs().Find(node, &index);
  if (graph == nullptr) return Status::kInvalidValue;
  predecessors->clear();
  for (const NodeIndex p : graph->nodes()[index].predecessors) {
    predecessors->push_back(graph->nodes()[p].handle);
  }
  return Status::kSuccess;
}

Status SimDevice::GraphNodes(Graph graph, bool roots_only,
                             std::vector<GraphNode>* nodes) {
  if (nodes == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  const GraphEntry* const entry = platform_->graphs().Find(graph);
  if (entry == nullptr) return Status::kInvalidValue;
  nodes->clear();
  for (const SimNode& node : entry->graph.nodes()) {
    if (roots_only && !node.predecessors.empty()) continue;
    nodes->push_back(node.handle);
  }
  return Status::kSuccess;
}

Status SimDevice::DoGraphInstantiate(Call* seen, GraphExec* exec, Graph graph,
                                     unsigned flags) {
  constexpr unsigned kKnown = kGraphAutoFreeOnLaunch | kGraphUseNodePriority;
  if (exec == nullptr || (flags & ~kKnown) != 0) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  GraphEntry* entry = platform_->graphs().Find(graph);
  // A capture may be adding to the graph: its current nodes are instantiated.
  if (entry == nullptr) return Status::kInvalidValue;
  if (entry->graph.HasMemoryNodes() && !entry->instance.expired()) {
    return Status::kNotSupported;  // P15
  }
  SimExec made;
  made.device = ordinal_;
  made.frees_leftovers = (flags & kGraphAutoFreeOnLaunch) != 0;
  made.plan = std::make_shared<const ExecPlan>(entry->graph, entry->memory,
                                               ordinal_, entry->objects);
  made.token = std::make_shared<const char>();
  for (const int device : made.plan->lanes()) {
    const Stream lane{nullptr, device, NewStreamUid()};
    scheduler_.AddStream(lane, StreamKind::kGraph);
    made.lanes.push_back(lane);
  }
  entry->instance = made.token;
  for (const GraphHeapUse& use : made.plan->heaps()) {
    use.heap->instance = made.token;
  }
  *exec = platform_->graphs().AddExec(std::move(made));
  seen->ptr = NumberOf(*exec);
  return Status::kSuccess;
}

Status SimDevice::DoGraphExecDestroy(Call*, GraphExec exec) {
  std::lock_guard lock(mutex_);
  const SimExec* found = platform_->graphs().Find(exec);
  if (found == nullptr) return Status::kInvalidValue;
  // Launches in progress continue: C27.
  for (const Stream& lane : found->lanes) {
    scheduler_.DestroyStream(lane);
  }
  platform_->graphs().Destroy(exec);
  return Status::kSuccess;
}

Status SimDevice::DoGraphLaunch(Call*, GraphExec exec, Stream stream) {
  SimLock lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  SimExec* found = platform_->graphs().Find(exec);
  if (found == nullptr) return Status::kInvalidValue;
  // Another thread may have begun a capture since the check of the call.
  if (CaptureOf(stream) != nullptr) return Status::kStreamCaptureUnsupported;
  return LaunchExec(found, stream, &lock);
}

Status SimDevice::DoGraphExecUpdate(Call*, GraphExec exec, Graph graph) {
  std::lock_guard lock(mutex_);
  SimExec* found = platform_->graphs().Find(exec);
  const GraphEntry* entry = platform_->graphs().Find(graph);
  if (found == nullptr || entry == nullptr || entry->capturing) {
    return Status::kInvalidValue;
  }
  const SimGraph& before = *found->plan->graph();
  if (!before.IsLike(entry->graph) || before.HasMemoryNodes()) {
    return Status::kGraphExecUpdateFailure;
  }
  // Launches in progress keep the old plan: C28.
  found->plan = std::make_shared<const ExecPlan>(entry->graph, entry->memory,
                                                 found->device, entry->objects);
  return Status::kSuccess;
}

Status SimDevice::DoUserObjectCreate(Call* seen, UserObject* object,
                                     void* pointer, HostFunction destroy) {
  if (object == nullptr || destroy == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  *object = platform_->user_objects().Create(ordinal_, pointer, destroy);
  seen->ptr = NumberOf(*object);
  return Status::kSuccess;
}

Status SimDevice::DoGraphRetainUserObject(Call*, Graph graph, UserObject object,
                                          bool move) {
  std::lock_guard lock(mutex_);
  GraphEntry* entry = platform_->graphs().Find(graph);
  if (entry == nullptr) return Status::kInvalidValue;
  UserObjectRef reference;
  const Status status =
      platform_->user_objects().Retain(object, move, &reference);
  if (status == Status::kSuccess) {
    entry->objects.push_back(std::move(reference));
  }
  return status;
}

Status SimDevice::DoUserObjectRelease(Call*, UserObject object) {
  std::lock_guard lock(mutex_);
  return platform_->user_objects().Release(object);
}

}  // namespace strata::sim
