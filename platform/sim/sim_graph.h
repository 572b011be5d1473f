#ifndef STRATA_PLATFORM_SIM_SIM_GRAPH_H_
#define STRATA_PLATFORM_SIM_SIM_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graph_action.h"
#include "strata/platform/sim/node_set.h"

namespace strata {

// A node of a graph, and what comes before it.
struct SimNode {
  GraphNode handle;
  int device = 0;
  std::uint64_t cost_ns = 0;
  GraphAction action;
  std::vector<NodeIndex> predecessors;  // the edges, rising, each once
  NodeSet ancestors;
};

// Work and its order, to be instantiated: what a capture makes.
//
// Model: nodes are only added, each after those it depends on.
// Threads: externally synchronised.
// Cost: adding a node joins the ancestors of its predecessors.
class SimGraph {
 public:
  // `predecessors` may name a node more than once.
  NodeIndex Add(SimNode node, std::vector<NodeIndex> predecessors);
  // Takes out all nodes from `count` on.
  void Truncate(std::size_t count) { nodes_.resize(count); }

  const std::vector<SimNode>& nodes() const { return nodes_; }
  // Whether `node` is one of `later` or an ancestor of one.
  bool IsBefore(NodeIndex node, const std::vector<NodeIndex>& later) const;
  // Whether the nodes are of the same kinds, in the same order and with the
  // same edges as those of `other`, and copies and fills are about the same
  // devices: what an update of an instantiated graph needs.
  bool IsLike(const SimGraph& other) const;
  // Whether any node allocates or frees.
  bool HasMemoryNodes() const;

 private:
  std::vector<SimNode> nodes_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SIM_GRAPH_H_
