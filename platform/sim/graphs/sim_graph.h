#ifndef STRATA_PLATFORM_SIM_GRAPHS_SIM_GRAPH_H_
#define STRATA_PLATFORM_SIM_GRAPHS_SIM_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graphs/graph_action.h"

namespace strata::sim {

// The position of a node in its graph, which is a topological order.
using NodeIndex = std::uint32_t;

// A set of nodes of one graph.
//
// Threads: externally synchronised.        Cost: a bit for each earlier node.
class NodeSet {
 public:
  bool Contains(NodeIndex node) const {
    const std::size_t word = node / kBits;
    return word < words_.size() && (words_[word] >> (node % kBits) & 1) != 0;
  }
  void Add(NodeIndex node) {
    const std::size_t word = node / kBits;
    if (words_.size() <= word) words_.resize(word + 1);
    words_[word] |= std::uint64_t{1} << (node % kBits);
  }
  void Join(const NodeSet& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) {
      words_[i] |= other.words_[i];
    }
  }

 private:
  static constexpr std::size_t kBits = 64;

  std::vector<std::uint64_t> words_;
};

// A node of a graph, and its predecessors.
struct SimNode {
  GraphNode handle;
  int device = 0;
  std::uint64_t cost_ns = 0;
  GraphAction action;
  std::vector<NodeIndex> predecessors;  // the edges; ascending, unique
  NodeSet ancestors;
};

// Work and its order, to be instantiated; the result of a capture.
//
// Model: nodes are only added, each after the nodes that it depends on.
// Threads: externally synchronised.
// Cost: Add joins the ancestors of the predecessors.
class SimGraph {
 public:
  // `predecessors` may contain duplicates.
  NodeIndex Add(SimNode node, std::vector<NodeIndex> predecessors);
  // Removes all nodes from `count` on.
  void Truncate(std::size_t count) { nodes_.resize(count); }

  const std::vector<SimNode>& nodes() const { return nodes_; }
  // True if `node` is in `later` or an ancestor of a node in it.
  bool IsBefore(NodeIndex node, const std::vector<NodeIndex>& later) const;
  // True if the nodes have the same kinds, order and edges as the nodes of
  // `other`, and copies and fills use the same devices. An update of an
  // instantiated graph requires this.
  bool IsLike(const SimGraph& other) const;
  // True if any node allocates or frees.
  bool HasMemoryNodes() const;

 private:
  std::vector<SimNode> nodes_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_SIM_GRAPH_H_
