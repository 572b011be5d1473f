// Capture of streams of the simulated device.

#include <utility>
#include <vector>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/graphs/capture_set.h"
#include "strata/platform/sim/graphs/graph_table.h"

namespace strata::sim {
namespace {

// `value` is the mode, the status, or 1 if dependencies are replaced; `ptr` is
// the graph.
}  // namespace

Status SimDevice::DoStreamBeginCapture(Call* seen, Stream stream,
                                       CaptureMode mode) {
  return BeginCapture(stream, mode, Graph(), nullptr, 0, seen);
}

Status SimDevice::DoStreamBeginCaptureToGraph(Call* seen, Stream stream,
                                              Graph graph,
                                              const GraphNode* dependencies,
                                              std::size_t count,
                                              CaptureMode mode) {
  if (!graph || (dependencies == nullptr && count != 0)) {
    return Status::kInvalidValue;
  }
  return BeginCapture(stream, mode, graph, dependencies, count, seen);
}

// Creates a graph if `graph` is null.
Status SimDevice::BeginCapture(const Stream& stream, CaptureMode mode,
                               Graph graph, const GraphNode* dependencies,
                               std::size_t count, CallRecord* seen) {
  if (!IsKnown(mode)) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  if (stream.uid == kLegacyStreamUid) return Status::kStreamCaptureUnsupported;
  GraphTable& graphs = platform_->graphs();
  SimCapture capture;
  capture.owns_graph = !graph;
  capture.handle = graph ? graph : graphs.Create(ordinal_);
  GraphEntry* entry = graphs.Find(capture.handle);
  std::vector<NodeIndex> nodes;
  if (entry == nullptr || entry->capturing ||
      !graphs.Resolve(&entry->graph, dependencies, count, &nodes)) {
    return Status::kInvalidValue;
  }
  capture.mode = mode;
  capture.thread = CallingThreadNumber();
  capture.origin = {stream.device, stream.uid};
  capture.graph = &entry->graph;
  const Graph handle = capture.handle;
  const Status status = platform_->captures().Begin(
      std::move(capture), scheduler_.IsBlocking(stream), std::move(nodes));
  if (status != Status::kSuccess) {
    if (!graph) graphs.Destroy(handle);
    return status;
  }
  graphs.BeginCapture(entry);
  seen->ptr = NumberOf(handle);
  return status;
}

Status SimDevice::DoStreamEndCapture(Call* seen, Stream stream, Graph* graph) {
  if (graph == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  std::shared_ptr<const SimCapture> ended;
  Status outcome = Status::kSuccess;
  const Status status = platform_->captures().End(stream, CallingThreadNumber(),
                                                  &ended, &outcome);
  if (status != Status::kSuccess) return status;
  GraphTable& graphs = platform_->graphs();
  graphs.Find(ended->handle)->capturing = false;
  if (outcome == Status::kSuccess) {
    *graph = ended->handle;
    seen->ptr = NumberOf(*graph);
  } else if (ended->owns_graph) {
    graphs.Destroy(ended->handle);
  } else {
    graphs.UndoCapture(graphs.Find(ended->handle));
  }
  return outcome;
}

Status SimDevice::DoStreamIsCapturing(Call* seen, Stream stream,
                                      CaptureStatus* status) {
  if (status == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  const SimCapture* capture = CaptureOf(stream);
  *status = capture == nullptr ? CaptureStatus::kNone : capture->status;
  seen->value = static_cast<std::uint64_t>(*status);
  return Status::kSuccess;
}

Status SimDevice::DoStreamCaptureInfo(Call* seen, Stream stream,
                                      CaptureInfo* info) {
  if (info == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  *info = CaptureInfo();
  SimCapture* capture = CaptureOf(stream);
  if (capture == nullptr) return Status::kSuccess;
  info->status = capture->status;
  seen->value = static_cast<std::uint64_t>(info->status);
  // The other results are defined in an active capture only: C11.
  if (info->status != CaptureStatus::kActive) return Status::kSuccess;
  info->id = capture->id;
  info->graph = capture->handle;
  for (const NodeIndex node : CaptureSet::DependenciesOf(capture, stream)) {
    info->dependencies.push_back(capture->graph->nodes()[node].handle);
  }
  seen->ptr = NumberOf(info->graph);
  return Status::kSuccess;
}

Status SimDevice::DoStreamUpdateCaptureDependencies(
    Call* seen, Stream stream, const GraphNode* dependencies, std::size_t count,
    bool replace) {
  if (dependencies == nullptr && count != 0) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  const SimCapture* capture = CaptureOf(stream);
  if (capture == nullptr) return Status::kIllegalState;
  std::vector<NodeIndex> nodes;
  if (!platform_->graphs().Resolve(capture->graph, dependencies, count,
                                   &nodes)) {
    return Status::kInvalidValue;
  }
  seen->ptr = NumberOf(capture->handle);
  return platform_->captures().UpdateDependencies(stream, nodes, replace);
}

Status SimDevice::DoThreadExchangeCaptureMode(Call*, CaptureMode* mode) {
  if (mode == nullptr || !IsKnown(*mode)) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  platform_->captures().ExchangeMode(CallingThreadNumber(), mode);
  return Status::kSuccess;
}

SimCapture* SimDevice::CaptureOf(const Stream& stream) const {
  return platform_->captures().Find(stream);
}

Status SimDevice::AddNode(SimCapture* capture, const Stream& stream,
                          std::uint64_t cost_ns, GraphAction action,
                          CallRecord* seen) {
  // Another thread may have invalidated it since the check of the call.
  if (capture->status == CaptureStatus::kInvalidated) {
    return Status::kStreamCaptureInvalidated;
  }
  SimNode node;
  node.device = stream.device;
  node.cost_ns = cost_ns;
  node.action = std::move(action);
  std::vector<NodeIndex>& dependencies =
      CaptureSet::DependenciesOf(capture, stream);
  const GraphNode added =
      platform_->graphs().Add(capture->graph, std::move(node), dependencies);
  dependencies = {static_cast<NodeIndex>(capture->graph->nodes().size() - 1)};
  seen->node = reinterpret_cast<std::uintptr_t>(added.value);
  return Status::kSuccess;
}

}  // namespace strata::sim
