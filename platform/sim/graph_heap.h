#ifndef STRATA_PLATFORM_SIM_GRAPH_HEAP_H_
#define STRATA_PLATFORM_SIM_GRAPH_HEAP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graph_action.h"
#include "strata/platform/sim/node_set.h"
#include "strata/platform/sim/sim_graph.h"

namespace strata {

class GraphMemory;

// What a node of a graph allocates.
struct GraphAllocation {
  DevicePtr ptr = 0;
  std::uint64_t bytes = 0;
  NodeIndex node = 0;
  GraphRights rights;
};

// The addresses that one graph's allocations on one device have.
//
// Model: an address is that of its node for the node's life. Addresses come in
//   chunks, which are cut into blocks; a block that a free node has freed
//   serves an allocation that comes after that node in the graph, as do
//   neighbours of which all may serve. Of blocks that are large enough the
//   smallest is taken, of equals the lowest.
// Threads: externally synchronised.
// Cost: looks at every block.
// Source: cuda_semantics.md P13, P16.
class GraphHeap {
 public:
  // An address range of at least so many bytes; nothing if there is none.
  struct Chunk {
    DevicePtr ptr = 0;
    std::uint64_t bytes = 0;
  };
  using Grow = std::function<std::optional<Chunk>(std::uint64_t bytes)>;

  explicit GraphHeap(GraphMemory* memory) : memory_(memory) {}

  GraphMemory& memory() const { return *memory_; }

  // An address for a node that comes after the nodes `before` of `graph` and
  // will be `node` there, with these rights. Nothing if `grow` gives none.
  std::optional<DevicePtr> Allocate(std::uint64_t bytes, const SimGraph& graph,
                                    const std::vector<NodeIndex>& before,
                                    NodeIndex node, const GraphRights& rights,
                                    const Grow& grow);
  // What starts at `ptr` and no node frees, if there is such a thing.
  std::optional<GraphAllocation> FindOpen(DevicePtr ptr) const;
  // `node` frees what FindOpen has found.
  void Free(DevicePtr ptr, NodeIndex node);

  // All that no node frees.
  std::vector<GraphAllocation> open() const;
  // Where its chunks start.
  const std::vector<DevicePtr>& chunks() const { return layout_.chunks; }
  bool Contains(DevicePtr ptr) const;

  // What nodes have done to it so far, to undo later ones.
  struct Block {
    std::uint64_t bytes = 0;
    DevicePtr chunk = 0;              // where its chunk starts
    bool open = false;                // allocated, and no node frees it
    NodeIndex node = 0;               // that allocates it, if open
    std::vector<NodeIndex> freed_by;  // else; empty: never used
    GraphRights rights;               // if open
  };
  struct Layout {
    std::map<DevicePtr, Block> blocks;
    std::vector<DevicePtr> chunks;
  };
  const Layout& layout() const { return layout_; }
  void Restore(Layout layout) { layout_ = std::move(layout); }

  // Lives as long as the last instance of the graph.
  std::weak_ptr<const void> instance;

 private:
  // Blocks that together have `bytes` or more.
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

// What a graph has of memory.
struct GraphMemoryUse {
  std::map<int, std::shared_ptr<GraphHeap>> heaps;  // by device
  // What nodes free that another graph allocates.
  std::vector<DevicePtr> foreign_frees;
};

// What an instantiated graph has of the memory of one device, frozen.
struct GraphHeapUse {
  std::shared_ptr<GraphHeap> heap;
  std::vector<DevicePtr> chunks;
  std::vector<GraphAllocation> escaping;  // that no node of it frees
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_GRAPH_HEAP_H_
