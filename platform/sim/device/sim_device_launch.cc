// Converts the launch of a graph on the simulated device to work in streams.
//
// The lanes of the exec are streams of their own. Lane 0 waits for the work
// submitted to the launch stream and for the previous launch of the exec. The
// other lanes wait for lane 0. Nodes wait for nodes of other lanes as the graph
// requires. Later work of the launch stream waits for all lanes. So the order
// is the order of the graph, each node is an operation, and progress sees only
// streams.

#include <algorithm>
#include <vector>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/graphs/exec_plan.h"
#include "strata/platform/sim/graphs/graph_table.h"
#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata::sim {
namespace {

// The event that an action records or waits for; a null event for other
// actions.
Event EventOf(const GraphAction& action) {
  if (const auto* record = std::get_if<RecordAction>(&action)) {
    return record->event;
  }
  if (const auto* wait = std::get_if<WaitAction>(&action)) return wait->event;
  return {};
}

}  // namespace

Status SimDevice::LaunchExec(SimExec* exec, const Stream& stream,
                             SimLock* lock) {
  if (!HasItsEvents(*exec->plan)) return Status::kInvalidValue;
  std::vector<GraphMemory::Binding> bindings;
  const Status status = PlanMemory(*exec, stream, &bindings);
  if (status != Status::kSuccess) return status;
  const StreamSnapshot begun = BeginLaunch(*exec, stream, bindings);
  for (std::size_t lane = 1; lane < exec->lanes.size(); ++lane) {
    scheduler_.WaitFor(exec->lanes[lane], begun);
  }
  SubmitNodes(*exec);
  for (const Stream& lane : exec->lanes) {
    StreamSnapshot done;
    scheduler_.Snapshot(lane, &done);
    scheduler_.WaitFor(stream, done);
  }
  scheduler_.Snapshot(stream, &exec->last);
  CommitMemory(*exec, bindings);
  // `exec` may be destroyed from here on: host functions run without the lock.
  scheduler_.RunQueued(lock);
  return Status::kSuccess;
}

bool SimDevice::HasItsEvents(const ExecPlan& plan) const {
  return std::all_of(plan.nodes().begin(), plan.nodes().end(),
                     [this](const ExecPlan::Node& node) {
                       const Event event = EventOf(node.action);
                       return !event || FindEvent(event) != nullptr;
                     });
}

// The snapshot after which the launch may start.
StreamSnapshot SimDevice::BeginLaunch(
    const SimExec& exec, const Stream& stream,
    const std::vector<GraphMemory::Binding>& bindings) {
  const Stream& first = exec.lanes.front();
  StreamSnapshot submitted;
  scheduler_.Snapshot(stream, &submitted);
  scheduler_.WaitFor(first, submitted);
  scheduler_.WaitFor(first, exec.last);
  BeginMemory(exec, submitted, bindings);
  StreamSnapshot begun;
  scheduler_.Snapshot(first, &begun);
  return begun;
}

void SimDevice::SubmitNodes(const SimExec& exec) {
  const std::vector<ExecPlan::Node>& nodes = exec.plan->nodes();
  std::vector<StreamSnapshot> done(nodes.size());  // of awaited nodes
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ExecPlan::Node& node = nodes[i];
    const Stream& lane = exec.lanes[node.lane];
    for (const NodeIndex p : node.waits) scheduler_.WaitFor(lane, done[p]);
    if (std::holds_alternative<RecordAction>(node.action)) {
      const Event event = EventOf(node.action);
      NoteRecord(lane, FindEvent(event));
      platform_->captures().ForgetEvent(event);
    } else if (std::holds_alternative<WaitAction>(node.action)) {
      scheduler_.WaitFor(lane, *FindEvent(EventOf(node.action)));
    } else if (!std::holds_alternative<EmptyAction>(node.action)) {
      SimDevice& device = platform_->sim_device(node.device);
      // The plan lives as long as the launch is in progress.
      scheduler_.Queue(lane, node.cost_ns,
                       [&device, &node, plan = exec.plan](SimLock* lock) {
                         device.RunAction(node.action, lock);
                       });
    }
    if (node.is_awaited) scheduler_.Snapshot(lane, &done[i]);
  }
}

void SimDevice::RunAction(const GraphAction& action, SimLock* lock) {
  if (sticky_error() != Status::kSuccess) return;
  if (const auto* copy = std::get_if<CopyAction>(&action)) {
    NoteOutcome(ExecuteCopy(*copy));
  } else if (const auto* fill = std::get_if<FillAction>(&action)) {
    NoteOutcome(ExecuteFill(fill->ptr, fill->value, fill->bytes));
  } else if (const auto* work = std::get_if<WorkAction>(&action)) {
    NoteOutcome(ExecuteWork(work->ranges.data(), work->count, work->pattern));
  } else if (const auto* kernel = std::get_if<KernelAction>(&action)) {
    RunKernel(*kernel, lock);
  } else if (const auto* host = std::get_if<HostAction>(&action)) {
    CallHostFunction(host->function, host->argument, lock);
  } else if (const auto* alloc = std::get_if<AllocAction>(&action)) {
    GraphMemoryOf(alloc->ptr).Begin(alloc->ptr, alloc->bytes, alloc->rights);
  } else if (const auto* free = std::get_if<FreeAction>(&action)) {
    GraphMemoryOf(free->ptr).End(free->ptr);
  }
}

}  // namespace strata::sim
