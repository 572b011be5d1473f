#ifndef STRATA_PLATFORM_SIM_GRAPHS_NODE_SET_H_
#define STRATA_PLATFORM_SIM_GRAPHS_NODE_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/base/require_cxx20.h"

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

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_NODE_SET_H_
