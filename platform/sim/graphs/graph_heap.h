#ifndef STRATA_PLATFORM_SIM_GRAPHS_GRAPH_HEAP_H_
#define STRATA_PLATFORM_SIM_GRAPHS_GRAPH_HEAP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graphs/graph_action.h"
#include "strata/platform/sim/graphs/sim_graph.h"

namespace strata::sim {

class GraphMemory;

// An allocation by a node of a graph.
struct GraphAllocation {
  DevicePtr ptr = 0;
  std::uint64_t bytes = 0;
  NodeIndex node = 0;
  GraphRights rights;
};

// The addresses of one graph's allocations on one device.
//
// Model: an address belongs to its node for the node's life. Chunks of
//   addresses are split into blocks. A block freed by a free node can serve an
//   allocation that comes after that node in the graph. Neighbouring blocks
//   that can all serve the allocation may serve it together. The smallest
//   sufficient block is used; among equals, the lowest.
// Threads: externally synchronised.
// Cost: visits every block.
// Source: cuda_semantics.md P13, P16.
class GraphHeap {
 public:
  // A new address range, of at least the bytes that Grow was called with. Grow
  // returns nullopt if there is none.
  struct Chunk {
    DevicePtr ptr = 0;
    std::uint64_t bytes = 0;
  };
  using Grow = std::function<std::optional<Chunk>(std::uint64_t bytes)>;

  explicit GraphHeap(GraphMemory* memory) : memory_(memory) {}

  GraphMemory& memory() const { return *memory_; }

  // Returns an address for a node that comes after the nodes `before` of
  // `graph` and becomes `node` there, with these rights. Nullopt if `grow`
  // fails.
  std::optional<DevicePtr> Allocate(std::uint64_t bytes, const SimGraph& graph,
                                    const std::vector<NodeIndex>& before,
                                    NodeIndex node, const GraphRights& rights,
                                    const Grow& grow);
  // The allocation that starts at `ptr` and that no node frees, if there is
  // one.
  std::optional<GraphAllocation> FindOpen(DevicePtr ptr) const;
  // `node` frees the allocation that FindOpen returned.
  void Free(DevicePtr ptr, NodeIndex node);

  // All allocations that no node frees.
  std::vector<GraphAllocation> open() const;
  // The start addresses of its chunks.
  const std::vector<DevicePtr>& chunks() const { return layout_.chunks; }
  bool Contains(DevicePtr ptr) const;

  // The blocks after all nodes so far: layout(). Restore() undoes later nodes.
  struct Block {
    std::uint64_t bytes = 0;
    DevicePtr chunk = 0;              // start address of its chunk
    bool open = false;                // allocated, and no node frees it
    NodeIndex node = 0;               // the node that allocates it, if open
    std::vector<NodeIndex> freed_by;  // if not open; empty: never used
    GraphRights rights;               // if open
  };
  struct Layout {
    std::map<DevicePtr, Block> blocks;
    std::vector<DevicePtr> chunks;
  };
  const Layout& layout() const { return layout_; }
  void Restore(Layout layout) { layout_ = std::move(layout); }

  // Expires with the last instance of the graph.
  std::weak_ptr<const void> instance;

 private:
  // Adjacent blocks with `bytes` or more in total.
  struct Row {
    DevicePtr ptr = 0;
    std::uint64_t bytes = 0;
  };
  std::optional<Row> FindRow(std::uint64_t bytes, const SimGraph& graph,
                             const std::vector<NodeIndex>& before) const;
  const Block* OpenAt(DevicePtr ptr) const;
  void Take(const Row& row, std::uint64_t bytes, NodeIndex node,
            const GraphRights& rights);

  GraphMemory* const memory_;
  Layout layout_;
};

// The memory of a graph.
struct GraphMemoryUse {
  std::map<int, std::shared_ptr<GraphHeap>> heaps;  // by device
  // Frees by its nodes of memory that another graph allocates.
  std::vector<DevicePtr> foreign_frees;
};

// The memory of an instantiated graph on one device; immutable.
struct GraphHeapUse {
  std::shared_ptr<GraphHeap> heap;
  std::vector<DevicePtr> chunks;
  std::vector<GraphAllocation> escaping;  // not freed by its nodes
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_GRAPH_HEAP_H_
