#ifndef STRATA_PLATFORM_SIM_GRAPHS_EXEC_PLAN_H_
#define STRATA_PLATFORM_SIM_GRAPHS_EXEC_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graphs/graph_action.h"
#include "strata/platform/sim/graphs/graph_heap.h"
#include "strata/platform/sim/graphs/sim_graph.h"
#include "strata/platform/sim/graphs/user_objects.h"

namespace strata::sim {

// The immutable work of an instantiated graph: the nodes of the graph, assigned
// to lanes.
//
// Model: nodes are in a topological order. At a launch, each lane is a stream
//   of its own. Each node of a lane comes after the previous one in the graph
//   too, so lanes add no order. Lane 0 belongs to the launch itself.
// Threads: immutable.
// Cost: the constructor checks the lanes for each node.
class ExecPlan {
 public:
  struct Node {
    int device = 0;
    std::uint64_t cost_ns = 0;
    GraphAction action;
    std::uint32_t lane = 0;
    std::vector<NodeIndex> waits;  // nodes of other lanes that it waits for
    bool is_awaited = false;       // a node of another lane waits for it
  };

  // `device` is the device of lane 0.
  ExecPlan(const SimGraph& graph, const GraphMemoryUse& memory, int device,
           std::vector<UserObjectRef> objects);

  // A copy of the graph that this was made from.
  const std::shared_ptr<const SimGraph>& graph() const { return graph_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  // The devices of the lanes.
  const std::vector<int>& lanes() const { return lanes_; }
  const std::vector<UserObjectRef>& objects() const { return objects_; }
  // The allocations of memory nodes, and their frees of other graphs' memory.
  const std::vector<GraphHeapUse>& heaps() const { return heaps_; }
  const std::vector<DevicePtr>& foreign_frees() const { return foreign_frees_; }

 private:
  class Builder;

  const std::shared_ptr<const SimGraph> graph_;
  const std::vector<UserObjectRef> objects_;
  const std::vector<DevicePtr> foreign_frees_;
  std::vector<GraphHeapUse> heaps_;
  std::vector<Node> nodes_;
  std::vector<int> lanes_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_EXEC_PLAN_H_
