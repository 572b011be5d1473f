#include "strata/platform/sim/exec_plan.h"

#include <optional>
#include <utility>

namespace strata {

// Puts the nodes of a graph and of its children into one graph, then deals
// lanes.
class ExecPlan::Builder {
 public:
  explicit Builder(ExecPlan* plan) : plan_(plan) {}

  void Build(const SimGraph& graph) {
    Flatten(graph, {});
    tails_.assign(plan_->lanes_.size(), std::nullopt);
    for (NodeIndex i = 0; i < flat_.nodes().size(); ++i) Deal(i);
  }

 private:
  using Indices = std::vector<NodeIndex>;

  // Adds the nodes of `graph`, its roots after `before`. Returns what comes
  // after all of it has to come after.
  Indices Flatten(const SimGraph& graph, const Indices& before) {
    Indices flat;  // by index in `graph`
    std::vector<bool> has_successor(graph.nodes().size(), false);
    for (const SimNode& node : graph.nodes()) {
      Indices predecessors;
      for (const NodeIndex p : node.predecessors) {
        predecessors.push_back(flat[p]);
        has_successor[p] = true;
      }
      if (predecessors.empty()) predecessors = before;
      flat.push_back(AddNode(node, std::move(predecessors)));
    }
    Indices ends;
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (!has_successor[i]) ends.push_back(flat[i]);
    }
    return ends.empty() ? before : ends;
  }

  NodeIndex AddNode(const SimNode& node, Indices predecessors) {
    SimNode added;
    added.device = node.device;
    added.cost_ns = node.cost_ns;
    if (const auto* child = std::get_if<ChildAction>(&node.action)) {
      // The child's end, in one node: work that does nothing.
      return flat_.Add(std::move(added), Flatten(*child->graph, predecessors));
    }
    added.action = node.action;
    return flat_.Add(std::move(added), std::move(predecessors));
  }

  void Deal(NodeIndex index) {
    const SimNode& from = flat_.nodes()[index];
    Node node;
    node.device = from.device;
    node.cost_ns = from.cost_ns;
    node.action = from.action;
    node.lane = LaneFor(from);
    for (const NodeIndex p : from.predecessors) {
      if (plan_->nodes_[p].lane == node.lane) continue;
      node.waits.push_back(p);
      plan_->nodes_[p].is_awaited = true;
    }
    tails_[node.lane] = index;
    plan_->nodes_.push_back(std::move(node));
  }

  std::uint32_t LaneFor(const SimNode& node) {
    for (const NodeIndex p : node.predecessors) {
      const std::uint32_t lane = plan_->nodes_[p].lane;
      if (tails_[lane] == p && plan_->lanes_[lane] == node.device) return lane;
    }
    for (std::uint32_t lane = 0; lane < tails_.size(); ++lane) {
      if (plan_->lanes_[lane] != node.device) continue;
      if (!tails_[lane] || node.ancestors.Contains(*tails_[lane])) return lane;
    }
    plan_->lanes_.push_back(node.device);
    tails_.emplace_back();
    return static_cast<std::uint32_t>(tails_.size() - 1);
  }

  ExecPlan* const plan_;
  SimGraph flat_;
  std::vector<std::optional<NodeIndex>> tails_;  // the last node, by lane
};

ExecPlan::ExecPlan(const SimGraph& graph, const GraphMemoryUse& memory,
                   int device, std::vector<UserObjectRef> objects)
    : graph_(std::make_shared<const SimGraph>(graph)),
      objects_(std::move(objects)),
      foreign_frees_(memory.foreign_frees),
      lanes_{device} {
  for (const auto& [owner, heap] : memory.heaps) {
    heaps_.push_back({heap, heap->chunks(), heap->open()});
  }
  Builder(this).Build(*graph_);
}

}  // namespace strata
