#ifndef STRATA_PLATFORM_SIM_GRAPH_TABLE_H_
#define STRATA_PLATFORM_SIM_GRAPH_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/exec_plan.h"
#include "strata/platform/sim/graph_heap.h"
#include "strata/platform/sim/sim_graph.h"
#include "strata/platform/sim/stream_set.h"
#include "strata/platform/sim/user_objects.h"
#include "strata/platform/stream.h"

namespace strata {

// A graph that has a handle.
struct GraphEntry {
  int device = 0;          // that it was made on
  bool capturing = false;  // a capture adds to it
  SimGraph graph;
  std::vector<UserObjectRef> objects;
  std::weak_ptr<const void> instance;  // the last one of it that was made
  GraphMemoryUse memory;
  // As it was before the capture that adds to it.
  struct Before {
    std::size_t nodes = 0;
    std::size_t objects = 0;
    std::vector<DevicePtr> foreign_frees;
    std::map<int, GraphHeap::Layout> layouts;  // by device
  } before;
};

// An instantiated graph.
struct SimExec {
  int device = 0;  // that it was made on
  bool frees_leftovers = false;
  std::shared_ptr<const ExecPlan> plan;
  std::vector<Stream> lanes;          // by lane of the plan
  StreamSnapshot last;                // when the last launch is done
  std::shared_ptr<const void> token;  // GraphEntry::instance refers to it
};

// The graphs and instantiated graphs of a platform.
//
// Model: handles are never used again.
// Threads: externally synchronised.
class GraphTable {
 public:
  Graph Create(int device);
  // `graph` was made here.
  void Destroy(Graph graph);
  // The graph with this handle, or null.
  GraphEntry* Find(Graph graph);
  // Adds a node to `graph`, which is one of these, and gives it a handle.
  GraphNode Add(SimGraph* graph, SimNode node,
                std::vector<NodeIndex> predecessors);
  // A capture begins to add to the graph; its end takes back what it added.
  void BeginCapture(GraphEntry* entry);
  void UndoCapture(GraphEntry* entry);

  // The graph that has `node`, and its position there; null if there is none.
  const SimGraph* Find(GraphNode node, NodeIndex* index) const;
  // Returns whether all `nodes` are of `graph`; then `indices` says which.
  bool Resolve(const SimGraph* graph, const GraphNode* nodes, std::size_t count,
               std::vector<NodeIndex>* indices) const;

  GraphExec AddExec(SimExec exec);
  SimExec* Find(GraphExec exec);
  void Destroy(GraphExec exec) { execs_.erase(exec.value); }

  // Those made on `device` and not destroyed; not those of captures.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_GRAPH_TABLE_H_
