#ifndef STRATA_PLATFORM_SIM_GRAPHS_GRAPH_TABLE_H_
#define STRATA_PLATFORM_SIM_GRAPHS_GRAPH_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graphs/exec_plan.h"
#include "strata/platform/sim/graphs/graph_heap.h"
#include "strata/platform/sim/graphs/sim_graph.h"
#include "strata/platform/sim/graphs/user_objects.h"
#include "strata/platform/sim/streams/stream_set.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// A graph with a handle.
struct GraphEntry {
  int device = 0;          // the device that created it
  bool capturing = false;  // a capture adds nodes to it
  SimGraph graph;
  std::vector<UserObjectRef> objects;
  std::weak_ptr<const void> instance;  // its last executable graph
  GraphMemoryUse memory;
  // State before the capture that adds nodes to the graph.
  struct Before {
    std::size_t nodes = 0;
    std::size_t objects = 0;
    std::vector<DevicePtr> foreign_frees;
    std::map<int, GraphHeap::Layout> layouts;  // by device
  } before;
};

// An instantiated graph.
struct SimExec {
  int device = 0;  // the device that instantiated it
  bool frees_leftovers = false;
  std::shared_ptr<const ExecPlan> plan;
  std::vector<Stream> lanes;          // by lane of the plan
  StreamSnapshot last;                // completion of the last launch
  std::shared_ptr<const void> token;  // GraphEntry::instance refers to it
};

// The graphs and instantiated graphs of a platform.
//
// Model: handles are never reused.
// Threads: externally synchronised.
class GraphTable {
 public:
  Graph Create(int device);
  // `graph` was created by this table.
  void Destroy(Graph graph);
  // The graph with this handle, or null.
  GraphEntry* Find(Graph graph);
  // Adds a node to `graph`, which is in this table, and creates its handle.
  GraphNode Add(SimGraph* graph, SimNode node,
                std::vector<NodeIndex> predecessors);
  // A capture begins to add nodes to the graph; UndoCapture removes these
  // nodes.
  void BeginCapture(GraphEntry* entry);
  void UndoCapture(GraphEntry* entry);

  // The graph that contains `node`, and its index there; null if there is none.
  const SimGraph* Find(GraphNode node, NodeIndex* index) const;
  // Returns true if all `nodes` belong to `graph`; then sets `indices` to their
  // indices.
  bool Resolve(const SimGraph* graph, const GraphNode* nodes, std::size_t count,
               std::vector<NodeIndex>* indices) const;

  GraphExec AddExec(SimExec exec);
  SimExec* Find(GraphExec exec);
  void Destroy(GraphExec exec) { execs_.erase(exec.value); }

  // Number of graphs created on `device` and not destroyed, without those of
  // captures.
  std::uint64_t graph_count(int device) const;
  std::uint64_t exec_count(int device) const;

  const std::unordered_map<void*, std::unique_ptr<GraphEntry>>& graphs() const {
    return graphs_;
  }

 private:
  void Truncate(SimGraph* graph, std::size_t count);

  struct NodeRef {
    const SimGraph* graph;
    NodeIndex index;
  };

  std::unordered_map<void*, std::unique_ptr<GraphEntry>> graphs_;
  std::unordered_map<void*, SimExec> execs_;
  std::unordered_map<void*, NodeRef> nodes_;
  std::uintptr_t graphs_made_ = 0;
  std::uintptr_t execs_made_ = 0;
  std::uintptr_t nodes_made_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_GRAPH_TABLE_H_
