#include "strata/platform/sim/graphs/exec_plan.h"

#include <optional>
#include <utility>

namespace strata::sim {

// Assigns the nodes of a graph to lanes.
class ExecPlan::Builder {
 public:
  Builder(ExecPlan* plan, const SimGraph& graph) : plan_(plan), graph_(graph) {}

  void Build() {
    tails_.assign(plan_->lanes_.size(), std::nullopt);
    for (NodeIndex i = 0; i < graph_.nodes().size(); ++i) Deal(i);
  }

 private:
  void Deal(NodeIndex index) {
    const SimNode& from = graph_.nodes()[index];
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
  const SimGraph& graph_;
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
  Builder(this, *graph_).Build();
}

}  // namespace strata::sim
