#ifndef STRATA_PLATFORM_CHECK_CAPTURE_MODEL_H_
#define STRATA_PLATFORM_CHECK_CAPTURE_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "strata/platform/check/hazard_report.h"
#include "strata/platform/check/memory_map.h"
#include "strata/platform/check/order_clock.h"
#include "strata/platform/check/shadow_memory.h"

namespace strata::check {

// A memory range that a node uses, with the state at the time of capture.
struct NodeUse {
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  bool write = false;
  AccessSite access;
  std::shared_ptr<MemoryRegion> region;  // null: the range had no memory
  std::shared_ptr<BlockLife> life;       // null: the range is in no block
  bool was_freed = false;                // `life` had ended
  std::uint64_t capture = 0;             // id of the graph of the capture
  // In an ExecModel only: the stage of the node (StageOf), and the events that
  // the node waits for.
  std::size_t stage = 0;
  std::vector<std::uint64_t> waits;
};

struct GraphNodeModel {
  Epoch epoch;              // its position among the nodes of its graph
  OrderClock before;        // covers the nodes that precede it
  std::uint64_t waits = 0;  // the event that it waits for at run time; 0: none
  std::uint64_t records = 0;  // the event that it records; 0: none
  std::vector<NodeUse> uses;
};

// The nodes of a graph, in an order that respects its edges.
//
// Model: successive nodes of one stream are a chain. A chain is the component
//   of the epochs of its nodes.
struct GraphModel {
  std::uint64_t id = 0;  // never reused
  std::vector<GraphNodeModel> nodes;
  std::vector<std::uint64_t> chains;  // number of nodes per chain
  // By handle, the last node with this handle.
  std::unordered_map<std::uint64_t, std::size_t> by_handle;
  // The memory that nodes of the graph allocate, and the memory that they free
  // although it was allocated elsewhere.
  std::vector<std::shared_ptr<MemoryRegion>> allocates;
  std::vector<std::shared_ptr<MemoryRegion>> frees;
  ShadowMemory shadow;                // of the nodes of this graph only
  std::vector<HazardReport> hazards;  // reported at instantiation
  // Shared by each graph that contains this one and by each executable graph
  // made from it. They expire when nothing can launch this graph any more.
  std::vector<std::shared_ptr<const void>> tokens;

  OrderClock AfterAll() const;
};

// An executable graph: a copy of the graph at instantiation.
//
// Model: an event that a node records covers the nodes before that node. So a
//   launch consists of one operation for each such event, in the order of the
//   events, and one operation for the remaining nodes. If the nodes of two
//   events are parallel, the later event counts as after the earlier one.
struct ExecModel {
  // A node that records an event, with its predecessors and the events that it
  // waits for.
  struct Recorded {
    std::uint64_t event = 0;
    OrderClock before;
    std::vector<std::uint64_t> waits;
  };
  // A node that waits for an event.
  struct Awaited {
    std::uint64_t event = 0;
    Epoch node;
  };

  std::vector<GraphNodeModel> nodes;
  std::vector<std::uint64_t> chains;
  std::vector<NodeUse> uses;  // of all nodes, without duplicates
  std::vector<Recorded> recorded;
  std::vector<Awaited> awaited;
  std::vector<std::shared_ptr<MemoryRegion>> allocates;
  std::vector<std::shared_ptr<MemoryRegion>> frees;
  std::vector<std::shared_ptr<const void>> tokens;
  std::uint64_t graph = 0;  // id
  OrderClock launched;      // covers the last launch

  // Replaces the contents by the current state of `from`.
  void Take(const GraphModel& from);
  // Index of the first element of `recorded` that comes after the node;
  // recorded.size() if there is none.
  std::size_t StageOf(const Epoch& node) const;
  // The events of the `awaited` nodes that `before` covers.
  std::vector<std::uint64_t> WaitsIn(const OrderClock& before) const;
};

// The captures in progress and the finished graphs, rebuilt from calls.
//
// Model: cuda_semantics.md C1-C14 for calls that succeeded. A failed capture
//   leaves nothing. A GPU does not report which node a call became: an edge
//   from a node that no record has named counts as an edge from all nodes so
//   far.
// Threads: externally synchronised.
// Cost: per node, linear in the chains of the graph.
class CaptureModel {
 public:
  // A stream that takes part in a capture.
  struct Member {
    OrderClock frontier;  // covers the predecessors of its next node
    std::uint32_t chain = kNoChain;
    Epoch last;  // its last node; count 0: none yet
  };
  struct Place {
    GraphModel* graph = nullptr;
    Member* member = nullptr;

    explicit operator bool() const { return graph != nullptr; }
  };
  static constexpr std::uint32_t kNoChain = ~std::uint32_t{0};

  // `graph` is 0 if only the end of the capture names the graph.
  void Begin(std::uint64_t stream, std::uint64_t graph,
             const std::vector<std::uint64_t>& dependencies);
  void End(std::uint64_t stream, std::uint64_t graph);
  // Ends the capture whose origin is `stream`, without a graph.
  void Abandon(std::uint64_t stream);
  void Update(std::uint64_t stream, const std::vector<std::uint64_t>& nodes,
              bool replace);
  // The place of the next call on `stream`; false if the stream is not
  // capturing.
  Place Find(std::uint64_t stream);
  // Returns the node with this handle if it is the last node of the stream;
  // otherwise adds one.
  static GraphNodeModel& AddNode(const Place& place, std::uint64_t handle);

  // Events of captures.
  void Record(std::uint64_t event, std::uint64_t stream);
  bool IsCaptured(std::uint64_t event) const;
  // `stream` joins the capture of the event. Returns false if that capture has
  // ended.
  bool Join(std::uint64_t stream, std::uint64_t event);
  void ForgetEvent(std::uint64_t event) { events_.erase(event); }

  GraphModel* FindGraph(std::uint64_t graph);
  void CreateGraph(std::uint64_t graph);
  void DestroyGraph(std::uint64_t graph) { graphs_.erase(graph); }
  ExecModel& CreateExec(std::uint64_t exec) { return execs_[exec] = {}; }
  ExecModel* FindExec(std::uint64_t exec);
  void DestroyExec(std::uint64_t exec) { execs_.erase(exec); }

 private:
  struct Capture {
    std::uint64_t origin = 0;
    std::shared_ptr<GraphModel> graph;
    std::map<std::uint64_t, Member> members;  // by stream
  };
  struct CapturedEvent {
    std::weak_ptr<Capture> capture;
    OrderClock frontier;
  };

  std::shared_ptr<GraphModel> NewGraph();
  std::shared_ptr<Capture> Close(std::uint64_t origin);

  std::unordered_map<std::uint64_t, std::shared_ptr<Capture>> captures_;
  std::unordered_map<std::uint64_t, CapturedEvent> events_;
  std::unordered_map<std::uint64_t, std::shared_ptr<GraphModel>> graphs_;
  std::unordered_map<std::uint64_t, ExecModel> execs_;
  std::uint64_t last_graph_ = 0;
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_CAPTURE_MODEL_H_
