// Memory nodes of graphs on the simulated device.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/graphs/exec_plan.h"
#include "strata/platform/sim/graphs/graph_heap.h"
#include "strata/platform/sim/graphs/graph_memory.h"
#include "strata/platform/sim/graphs/graph_table.h"
#include "strata/platform/sim/memory/physical_memory.h"
#include "strata/platform/sim/pools/stream_pool.h"

namespace strata::sim {

Status SimDevice::CaptureAlloc(SimCapture* capture, const Stream& stream,
                               std::uint64_t bytes, const StreamPool& pool,
                               DevicePtr* ptr, CallRecord* seen) {
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  SimDevice& owner = platform_->sim_device(pool.device());
  if (bytes > owner.memory_.total_bytes()) return Status::kMemoryAllocation;
  GraphMemory& memory = owner.graph_memory_;
  auto& heaps = platform_->graphs().Find(capture->handle)->memory.heaps;
  const auto known = heaps.find(pool.device());
  const auto heap = known != heaps.end() ? known->second
                                         : std::make_shared<GraphHeap>(&memory);
  const SimGraph& graph = *capture->graph;
  const GraphRights rights = RightsOf(pool);
  const auto found = heap->Allocate(
      bytes, graph, CaptureSet::DependenciesOf(capture, stream),
      static_cast<NodeIndex>(graph.nodes().size()), rights,
      [&](std::uint64_t more) { return memory.Grow(more, heap, scheduler_); });
  if (!found) return Status::kMemoryAllocation;
  heaps.emplace(pool.device(), heap);
  *ptr = *found;
  seen->ptr = *ptr;
  return AddNode(capture, stream, 0, AllocAction{*ptr, bytes, rights}, seen);
}

// The rights at the time of the call: P13.
GraphRights SimDevice::RightsOf(const StreamPool& pool) const {
  std::map<int, Access> rights;
  for (int device = 0; device < platform_->device_count(); ++device) {
    rights[device] = pool.AccessOf(device);
  }
  return std::make_shared<const std::map<int, Access>>(std::move(rights));
}

Status SimDevice::CaptureFree(SimCapture* capture, const Stream& stream,
                              DevicePtr ptr, CallRecord* seen) {
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  const int device = DeviceOfGraphAddress(ptr);
  if (device < 0 || device >= platform_->device_count()) {
    return Status::kInvalidValue;  // the capture continues
  }
  GraphMemoryUse& use = platform_->graphs().Find(capture->handle)->memory;
  const auto own = use.heaps.find(device);
  const bool is_own = own != use.heaps.end() && own->second->Contains(ptr);
  if (!(is_own ? MayFreeOwn(*capture, stream, *own->second, ptr)
               : MayFreeForeign(use, ptr))) {
    return Status::kInvalidValue;
  }
  const auto node = static_cast<NodeIndex>(capture->graph->nodes().size());
  if (is_own) {
    own->second->Free(ptr, node);
  } else {
    use.foreign_frees.push_back(ptr);
  }
  return AddNode(capture, stream, 0, FreeAction{ptr}, seen);
}

// True if no node frees `ptr` yet and the free comes after its allocation.
bool SimDevice::MayFreeOwn(const SimCapture& capture, const Stream& stream,
                           const GraphHeap& heap, DevicePtr ptr) const {
  const auto open = heap.FindOpen(ptr);
  const auto& before =
      capture.members.at({stream.device, stream.uid}).dependencies;
  if (!open || !capture.graph->IsBefore(open->node, before)) return false;
  const auto& graphs = platform_->graphs().graphs();
  return std::none_of(graphs.begin(), graphs.end(), [ptr](const auto& each) {
    const auto& frees = each.second->memory.foreign_frees;
    return std::find(frees.begin(), frees.end(), ptr) != frees.end();
  });
}

// True if another graph leaves `ptr` allocated.
bool SimDevice::MayFreeForeign(const GraphMemoryUse& use, DevicePtr ptr) const {
  const auto& frees = use.foreign_frees;
  if (std::find(frees.begin(), frees.end(), ptr) != frees.end()) return false;
  const GraphMemory& memory = GraphMemoryOf(ptr);
  const auto heap = memory.HeapOf(ptr);
  return heap == nullptr ? memory.HasLive(ptr)
                         : heap->FindOpen(ptr).has_value();
}

Status SimDevice::FreeGraphMemory(DevicePtr ptr, const Stream& stream,
                                  SimLock* lock) {
  GraphMemory& memory = GraphMemoryOf(ptr);
  if (!memory.HasLive(ptr)) return Status::kInvalidValue;
  scheduler_.Queue(stream, 0,
                   [&memory, ptr](SimLock* /*lock*/) { memory.End(ptr); });
  StreamSnapshot freed;
  scheduler_.Snapshot(stream, &freed);
  memory.FreeLive(ptr, freed);
  scheduler_.RunQueued(lock);
  return Status::kSuccess;
}

Status SimDevice::FreeGraphMemoryNow(DevicePtr ptr) {
  if (!graph_memory_.HasLive(ptr)) return Status::kInvalidValue;
  graph_memory_.FreeLive(ptr, StreamSnapshot());
  graph_memory_.End(ptr);
  return Status::kSuccess;
}

Status SimDevice::PlanMemory(const SimExec& exec, const Stream& stream,
                             std::vector<GraphMemory::Binding>* bindings) {
  const ExecPlan& plan = *exec.plan;
  for (const DevicePtr ptr : plan.foreign_frees()) {
    if (!GraphMemoryOf(ptr).HasLive(ptr)) return Status::kInvalidValue;  // P14
  }
  const bool live = std::any_of(
      plan.heaps().begin(), plan.heaps().end(), [](const GraphHeapUse& use) {
        return !use.heap->memory().LiveOf(use).empty();
      });
  if (live && !exec.frees_leftovers) return Status::kInvalidValue;
  platform_->physical_memory().FreeClosed();
  for (const GraphHeapUse& use : plan.heaps()) {
    auto binding = PlanHeap(use, stream);
    if (!binding) {
      for (std::size_t i = 0; i < bindings->size(); ++i) {
        plan.heaps()[i].heap->memory().Undo((*bindings)[i]);
      }
      return Status::kMemoryAllocation;
    }
    bindings->push_back(std::move(*binding));
  }
  return Status::kSuccess;
}

// Idle memory of pools is released before the launch fails: P12.
std::optional<GraphMemory::Binding> SimDevice::PlanHeap(const GraphHeapUse& use,
                                                        const Stream& stream) {
  GraphMemory& memory = use.heap->memory();
  auto binding = memory.Plan(use, stream, scheduler_);
  if (binding) return binding;
  const std::uint64_t missing =
      memory.MissingFrames(use, stream, scheduler_) * kFrameBytes;
  PoolTable& pools = platform_->sim_device(memory.device()).pools_;
  if (!pools.MakeRoom(missing, scheduler_)) return std::nullopt;
  return memory.Plan(use, stream, scheduler_);
}

void SimDevice::BeginMemory(const SimExec& exec,
                            const StreamSnapshot& submitted,
                            const std::vector<GraphMemory::Binding>& bindings) {
  const Stream& first = exec.lanes.front();
  std::vector<DevicePtr> leftovers;
  for (const GraphHeapUse& use : exec.plan->heaps()) {
    GraphMemory& memory = use.heap->memory();
    for (const DevicePtr ptr : memory.LiveOf(use)) {
      memory.FreeLive(ptr, submitted);
      leftovers.push_back(ptr);
    }
    for (const StreamSnapshot& use_before : memory.UsesOf(use)) {
      scheduler_.WaitFor(first, use_before);
    }
  }
  if (bindings.empty()) return;
  scheduler_.Queue(first, 0,
                   [this, bindings, leftovers, plan = exec.plan](SimLock*) {
                     for (const DevicePtr ptr : leftovers) {
                       GraphMemoryOf(ptr).End(ptr);
                     }
                     for (std::size_t i = 0; i < bindings.size(); ++i) {
                       plan->heaps()[i].heap->memory().Bind(bindings[i]);
                     }
                   });
}

void SimDevice::CommitMemory(
    const SimExec& exec, const std::vector<GraphMemory::Binding>& bindings) {
  for (const DevicePtr ptr : exec.plan->foreign_frees()) {
    GraphMemoryOf(ptr).FreeLive(ptr, exec.last);
  }
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const GraphHeapUse& use = exec.plan->heaps()[i];
    use.heap->memory().Commit(use, bindings[i], exec.last, scheduler_);
  }
}

GraphMemory& SimDevice::GraphMemoryOf(DevicePtr ptr) const {
  return platform_->sim_device(DeviceOfGraphAddress(ptr)).graph_memory_;
}

Status SimDevice::DoGraphMemTrim(Call*) {
  std::lock_guard lock(mutex_);
  graph_memory_.Trim(scheduler_);
  return Status::kSuccess;
}

Status SimDevice::DoGraphMemAttribute(Call* seen, GraphMemAttributeKind kind,
                                      std::uint64_t* value) {
  const auto number = static_cast<std::int32_t>(kind);
  if (value == nullptr || number < 0 ||
      kind > GraphMemAttributeKind::kReservedHigh) {
    return Status::kInvalidValue;
  }
  std::lock_guard lock(mutex_);
  *value = graph_memory_.Attribute(kind, scheduler_);
  seen->bytes = *value;
  return Status::kSuccess;
}

}  // namespace strata::sim
