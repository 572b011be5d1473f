#include "strata/platform/sim/graphs/sim_graph.h"

#include <algorithm>
#include <utility>

namespace strata::sim {
namespace {

// True if both actions use memory of the same devices. Both have one kind.
bool SameDevices(const GraphAction& a, const GraphAction& b) {
  if (const auto* copy = std::get_if<CopyAction>(&a)) {
    const auto& other = std::get<CopyAction>(b);
    return copy->target_device == other.target_device &&
           copy->source_device == other.source_device;
  }
  if (const auto* fill = std::get_if<FillAction>(&a)) {
    return fill->ptr_device == std::get<FillAction>(b).ptr_device;
  }
  return true;
}

bool Alike(const SimNode& a, const SimNode& b) {
  return a.device == b.device && a.predecessors == b.predecessors &&
         a.action.index() == b.action.index() &&
         SameDevices(a.action, b.action);
}

bool IsMemoryNode(const SimNode& node) {
  return std::holds_alternative<AllocAction>(node.action) ||
         std::holds_alternative<FreeAction>(node.action);
}

}  // namespace

NodeIndex SimGraph::Add(SimNode node, std::vector<NodeIndex> predecessors) {
  std::sort(predecessors.begin(), predecessors.end());
  predecessors.erase(std::unique(predecessors.begin(), predecessors.end()),
                     predecessors.end());
  for (const NodeIndex before : predecessors) {
    node.ancestors.Join(nodes_[before].ancestors);
    node.ancestors.Add(before);
  }
  node.predecessors = std::move(predecessors);
  nodes_.push_back(std::move(node));
  return static_cast<NodeIndex>(nodes_.size() - 1);
}

bool SimGraph::IsBefore(NodeIndex node,
                        const std::vector<NodeIndex>& later) const {
  return std::any_of(later.begin(), later.end(), [&](NodeIndex other) {
    return other == node || nodes_[other].ancestors.Contains(node);
  });
}

bool SimGraph::IsLike(const SimGraph& other) const {
  return std::equal(nodes_.begin(), nodes_.end(), other.nodes_.begin(),
                    other.nodes_.end(), Alike);
}

bool SimGraph::HasMemoryNodes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), IsMemoryNode);
}

}  // namespace strata::sim
