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

namespace strata {

// Memory that a node uses, as it was when the node was captured.
struct NodeUse {
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  bool write = false;
  AccessSite access;
  std::shared_ptr<MemoryRegion> region;  // null: the memory was gone
  std::shared_ptr<BlockLife> life;       // null: of no block
  bool was_freed = false;                // `life` was over
  std::uint64_t capture = 0;             // the graph it was captured into
  // Of what can be launched: ExecModel::StageOf its node, and the events that
  // the node waits for.
  std::size_t stage = 0;
  std::vector<std::uint64_t> waits;
};

struct GraphNodeModel {
  Epoch epoch;                // among the nodes of its graph
  OrderClock before;          // covers the nodes that it comes after
  std::uint64_t waits = 0;    // the event that it waits for, when it runs
  std::uint64_t records = 0;  // the event that it records
  std::vector<NodeUse> uses;
};

// The nodes of a graph, in an order that respects its edges.
//
// Model: nodes that follow each other in a stream are a chain, the component of
//   their epochs.
struct GraphModel {
  std::uint64_t id = 0;  // never used again
  std::vector<GraphNodeModel> nodes;
  std::vector<std::uint64_t> chains;  // how many nodes each has
  // The last node that `handle` named.
  std::unordered_map<std::uint64_t, std::size_t> by_handle;
  // What its nodes allocate; freed by nodes of it but allocated elsewhere.
  std::vector<std::shared_ptr<MemoryRegion>> allocates;
  std::vector<std::shared_ptr<MemoryRegion>> frees;
  ShadowMemory shadow;                // of its nodes alone
  std::vector<HazardReport> hazards;  // told when it is instantiated
  // What may launch lives of this graph, or of one that it contains, has it.
  std::vector<std::shared_ptr<const void>> tokens;

  OrderClock AfterAll() const;
};

// What can be launched: a graph as it was.
//
// Model: an event that a node records stands for the nodes before that one. So
//   the nodes of a launch are one operation for each such event, in the order
//   of the events, and one for the rest. An event of nodes beside those of an
//   earlier one counts as one that comes after them.
struct ExecModel {
  // A node that records an event: what comes before it, and the events that it
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
  std::vector<NodeUse> uses;  // of all nodes, each once
  std::vector<Recorded> recorded;
  std::vector<Awaited> awaited;
  std::vector<std::shared_ptr<MemoryRegion>> allocates;
  std::vector<std::shared_ptr<MemoryRegion>> frees;
  std::vector<std::shared_ptr<const void>> tokens;
  std::uint64_t graph = 0;  // id
  OrderClock launched;      // after the last launch

  // Becomes `from` as it is now.
  void Take(const GraphModel& from);
  // The first in `recorded` that comes after the node, or how many there are.
  std::size_t StageOf(const Epoch& node) const;
  // The events of `awaited` nodes that `before` covers.
  std::vector<std::uint64_t> WaitsIn(const OrderClock& before) const;
};

// Captures in progress, and the graphs that came of them, rebuilt from calls.
//
// Model: cuda_semantics.md C1-C14 for calls that succeeded; a capture that
//   failed leaves nothing. An edge from a node that no record has named (a GPU
//   does not say which node a call became) counts as one from all nodes so far.
// Threads: externally synchronised.
// Cost: linear in the chains of the graph, for each node.
class CaptureModel {
 public:
  // A stream in a capture.
  struct Member {
    OrderClock frontier;  // what its next node comes after
    std::uint32_t chain = kNoChain;
    Epoch last;  // its last node; a count of 0: none yet
  };
  struct Place {
    GraphModel* graph = nullptr;
    Member* member = nullptr;

    explicit operator bool() const { return graph != nullptr; }
  };
  static constexpr std::uint32_t kNoChain = ~std::uint32_t{0};

  // `graph` is 0 for a graph that only the end of the capture names.
  void Begin(std::uint64_t stream, std::uint64_t graph,
             const std::vector<std::uint64_t>& dependencies);
  void End(std::uint64_t stream, std::uint64_t graph);
  // The capture of which `stream` is the origin failed.
  void Abandon(std::uint64_t stream);
  void Update(std::uint64_t stream, const std::vector<std::uint64_t>& nodes,
              bool replace);
  // Where the next call on `stream` goes; false: it is not capturing.
  Place Find(std::uint64_t stream);
  // The node with this handle if it is the stream's last, else a new one.
  static GraphNodeModel& AddNode(const Place& place, std::uint64_t handle);

  // Events of captures.
  void Record(std::uint64_t event, std::uint64_t stream);
  bool IsCaptured(std::uint64_t event) const;
  // The capture of the event goes on in `stream`. False: it has ended.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_CAPTURE_MODEL_H_
