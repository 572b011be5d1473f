// The part of HazardOracle for captures and graphs.

#include "strata/tests/testing/hazards/hazard_oracle.h"

namespace strata {

int HazardOracle::NewNode(CaptureState* capture, std::uint64_t stream) {
  GraphState& graph = GraphOf(*capture);
  GraphNode node;
  for (const int end : capture->frontier[stream]) {
    const std::set<int>& before =
        graph.nodes[static_cast<std::size_t>(end)].ancestors;
    node.ancestors.insert(before.begin(), before.end());
    node.ancestors.insert(end);
  }
  const int index = static_cast<int>(graph.nodes.size());
  graph.nodes.push_back(node);
  capture->frontier[stream] = {index};
  capture->last[stream] = index;
  return index;
}

void HazardOracle::FreeInGraph(CaptureState* capture, int node, int region) {
  GraphState& graph = GraphOf(*capture);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const NodeUse& use : graph.nodes[n].uses) {
      if (use.region == region && !graph.IsBefore(static_cast<int>(n), node)) {
        graph.hazards.push_back(record_);
      }
    }
  }
  Region& freed = regions_[static_cast<std::size_t>(region)];
  if (freed.graph == capture->graph) freed.freed_in_graph = true;
}

void HazardOracle::NodeConflicts(GraphState* graph, int node,
                                 const NodeUse& use) {
  const std::set<int>& before =
      graph->nodes[static_cast<std::size_t>(node)].ancestors;
  const std::uint64_t physical = Physical(use.region, use.granule);
  const auto check = [&](int other, const NodeUse& known) {
    if (other == node || before.count(other) != 0) return;
    const bool is_alias =
        known.region != use.region && (known.write || use.write);
    if (known.life != use.life || is_alias) graph->hazards.push_back(record_);
  };
  for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
    for (const NodeUse& known : graph->nodes[n].uses) {
      if (known.region < 0 ||
          Physical(known.region, known.granule) != physical) {
        continue;
      }
      check(static_cast<int>(n), known);
    }
  }
  for (const auto& [other, known] : graph->concluded[physical]) {
    check(other, known);
  }
}

void HazardOracle::UseInGraph(CaptureState* capture, int node,
                              std::uint64_t ptr, std::uint64_t bytes,
                              bool write) {
  GraphState& graph = GraphOf(*capture);
  for (std::uint64_t at = ptr; at < ptr + bytes; at += kStep) {
    const int index = RegionAt(at);
    NodeUse use{at, -1, index, write, false, record_};
    if (index < 0) {
      if (GoneAt(at) >= 0) {
        graph.nodes[static_cast<std::size_t>(node)].uses.push_back(use);
      }
      continue;
    }
    const Region& region = RegionOf(index);
    const std::set<int>& before =
        graph.nodes[static_cast<std::size_t>(node)].ancestors;
    if (region.kind == 'g' && region.graph == capture->graph) {
      if (before.count(region.node) == 0) graph.hazards.push_back(record_);
      if (region.freed_in_graph) graph.hazards.push_back(record_);
    }
    const auto life = current_.find(Physical(index, at));
    if (life != current_.end()) {
      use.life = life->second;
      const Life& now = LifeOf(use.life);
      use.was_freed = now.freed;
      if (now.freed && now.capture == capture->graph) {
        graph.hazards.push_back(record_);
      }
    }
    NodeConflicts(&graph, node, use);
    graph.nodes[static_cast<std::size_t>(node)].uses.push_back(use);
  }
}

void HazardOracle::StepCapture(const CallRecord& call) {
  switch (call.call) {
    case DeviceCall::kStreamBeginCapture: {
      CaptureState capture;
      capture.graph = static_cast<int>(graphs_.size());
      capture.origin = call.stream_uid;
      capture.frontier[call.stream_uid] = {};
      graphs_.emplace_back();
      captures_.push_back(capture);
      return;
    }
    case DeviceCall::kStreamEndCapture:
      for (std::size_t i = 0; i < captures_.size(); ++i) {
        if (captures_[i].origin != call.stream_uid) continue;
        graph_handles_[call.ptr] = captures_[i].graph;
        captures_.erase(captures_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
      return;
    case DeviceCall::kGraphInstantiate: {
      const int index = graph_handles_.at(call.value);
      GraphState& graph = graphs_[static_cast<std::size_t>(index)];
      hazards_.insert(graph.hazards.begin(), graph.hazards.end());
      Exec exec;
      exec.nodes = graph.nodes;
      exec.graph = index;
      for (std::size_t i = 0; i < regions_.size(); ++i) {
        if (regions_[i].graph == index) {
          exec.allocates.push_back(static_cast<int>(i));
        }
      }
      execs_[call.ptr] = exec;
      return;
    }
    default:
      return;
  }
}

void HazardOracle::StepLaunch(const CallRecord& call) {
  Exec& exec = execs_.at(call.ptr);
  const int vertex =
      Work(call.stream_uid, HostVertex(call.thread, {}), {exec.launched}, true);
  exec.launched = vertex;
  for (const int index : exec.allocates) {
    Region& region = regions_[static_cast<std::size_t>(index)];
    if (region.freed_in_graph) continue;
    region.begins = vertex;
    region.there = true;
  }
  for (const GraphNode& node : exec.nodes) {
    for (const NodeUse& use : node.uses) {
      const int index = RegionAt(use.granule);
      const bool is_own = use.region >= 0 && RegionOf(use.region).kind == 'g' &&
                          RegionOf(use.region).graph == exec.graph;
      if (is_own) {
        if (index == use.region) {
          AddUse(Physical(index, use.granule),
                 {vertex, -1, index, use.write, record_}, false);
        }
        continue;
      }
      if (index < 0) {
        Flag();
        continue;
      }
      const Region& region = RegionOf(index);
      if (region.kind == 'p' && !Reaches(region.begins, vertex)) Flag();
      const bool is_remapped =
          index != use.region && region.kind == 'm' &&
          (use.region < 0 || RegionOf(use.region).kind == 'm');
      if (index != use.region && !is_remapped) {
        Flag();
        continue;
      }
      const std::uint64_t physical = Physical(index, use.granule);
      const auto found = current_.find(physical);
      const int now = found == current_.end() ? -1 : found->second;
      if (!is_remapped && use.life >= 0) {
        const Life& life = LifeOf(use.life);
        const bool is_eager = life.capture < 0;
        const bool is_kept = life.kept_for.count(exec.graph) != 0;
        if (life.freed && (use.was_freed || (is_eager && !is_kept))) Flag();
        const bool is_taken = now != use.life && now >= 0 &&
                              (is_eager ? is_kept : LifeOf(now).capture < 0);
        if (is_taken) Flag();
      }
      AddUse(physical,
             {vertex, is_remapped ? now : use.life, index, use.write, record_},
             true);
    }
  }
}

}  // namespace strata
