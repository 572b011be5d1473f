#ifndef STRATA_TESTS_TESTING_HAZARDS_HAZARD_ORACLE_H_
#define STRATA_TESTS_TESTING_HAZARDS_HAZARD_ORACLE_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strata/platform/calls/call_record.h"

namespace strata {

// The hazards that HazardChecker must find, by brute force. The operations of a
// program are the vertices of a graph, and its rules of order are the edges.
// For each pair of uses it asks whether a path leads from one to the other. It
// uses no clocks.
//
// Model: programs of at most kMaxSteps calls on one device, over memory in
//   granules of kGranuleBytes. All addresses and sizes are rounded to granules.
//   It supports only the calls that HazardProgramWriter writes.
class HazardOracle {
 public:
  static constexpr std::size_t kMaxSteps = 1024;
  static constexpr std::uint64_t kGranuleBytes = 0x1000;

  // The numbers of the records with a hazard, from 1.
  std::set<std::uint64_t> Judge(const std::vector<CallRecord>& program);

 private:
  static constexpr std::size_t kMaxVertices = 4 * kMaxSteps;
  static constexpr std::uint64_t kStep = kGranuleBytes;
  using Vertices = std::bitset<kMaxVertices>;

  struct StreamState {
    bool blocking = true;
    bool destroyed = false;
    std::vector<int> work;     // vertices, in order
    std::vector<int> counted;  // work that may use memory
    std::vector<int> before;   // vertices before its first work
  };
  struct Life {
    int capture = -1;  // graph; -1: none
    bool freed = false;
    std::set<int> kept_for;  // freed or marked in their captures
  };
  struct Use {
    int vertex;
    int life;    // -1: of no block
    int region;  // index of the region
    bool write;
    std::uint64_t record;
  };
  struct NodeUse {
    std::uint64_t granule;  // address
    int life;
    int region;
    bool write;
    bool was_freed;
    std::uint64_t record;
  };
  struct GraphNode {
    std::set<int> ancestors;
    std::vector<NodeUse> uses;
    std::uint64_t frees = 0;
  };
  struct GraphState {
    bool IsBefore(int earlier, int node) const {
      return nodes[static_cast<std::size_t>(node)].ancestors.count(earlier) !=
             0;
    }

    std::vector<GraphNode> nodes;
    std::map<std::uint64_t, std::vector<std::pair<int, NodeUse>>> concluded;
    std::vector<std::uint64_t> hazards;
  };
  struct CaptureState {
    int graph = 0;
    std::uint64_t origin = 0;
    std::map<std::uint64_t, std::set<int>> frontier;  // by stream
    std::map<std::uint64_t, int> last;                // node, by stream
  };
  struct Region {
    char kind;  // 'd'evice, 'h'ost, 'p'ool, 'g'raph, 'm'apping
    std::uint64_t ptr;
    std::uint64_t bytes;
    std::uint64_t physical;  // physical address of ptr
    bool live = true;
    int begins = -1;  // vertex; in a capture, a node
    int graph = -1;
    int node = -1;
    bool freed_in_graph = false;
    bool there = false;  // exists now; for kind 'g'
  };
  struct Exec {
    std::vector<GraphNode> nodes;
    int graph = -1;
    int launched = -1;
    std::vector<int> allocates;
    std::vector<int> frees;
  };

  int AddVertex(const std::vector<int>& before);
  bool Reaches(int from, int to) const {
    return from == to || reached_[static_cast<std::size_t>(to)].test(
                             static_cast<std::size_t>(from));
  }
  int HostVertex(std::uint64_t thread, std::vector<int> before);
  // Vertices that precede the next work of a stream.
  std::vector<int> Before(std::uint64_t stream);
  std::vector<int> AllOf(std::uint64_t stream);
  int Work(std::uint64_t stream, int host, std::vector<int> before,
           bool counted);
  void Flag() { hazards_.insert(record_); }

  void Step(const CallRecord& call);
  void StepBlock(const CallRecord& call);
  void StepBlockAlloc(const CallRecord& call, CaptureState* capture);
  // Assigns a granule to a new block, in a capture or outside. `stream` 0: the
  // host.
  void GiveInGraph(CaptureState* capture, std::uint64_t stream,
                   std::uint64_t physical);
  void Give(int host, std::uint64_t stream, std::uint64_t physical);
  // A mark or a free covers the last operations of its stream.
  void Conclude(const CallRecord& call, CaptureState* capture, int life);
  void StepMemory(const CallRecord& call);
  void StepPool(const CallRecord& call);
  void StepCapture(const CallRecord& call);
  void StepLaunch(const CallRecord& call);
  void UseMemory(const CallRecord& call, std::uint64_t ptr, std::uint64_t bytes,
                 bool write, int vertex);
  void UseInGraph(CaptureState* capture, int node, std::uint64_t ptr,
                  std::uint64_t bytes, bool write);
  void NodeConflicts(GraphState* graph, int node, const NodeUse& use);
  int NewNode(CaptureState* capture, std::uint64_t stream);
  void FreeInGraph(CaptureState* capture, int node, int region);
  void AddUse(std::uint64_t physical, const Use& use, bool check);
  // Index of the live region with this address, or -1.
  int RegionAt(std::uint64_t address) const;
  int GoneAt(std::uint64_t address) const;
  std::uint64_t Physical(int region, std::uint64_t address) const;
  void EndRegion(int region, int vertex);
  CaptureState* CaptureOf(std::uint64_t stream);
  GraphState& GraphOf(const CaptureState& capture) {
    return graphs_[static_cast<std::size_t>(capture.graph)];
  }
  Life& LifeOf(int index) { return lives_[static_cast<std::size_t>(index)]; }
  const Region& RegionOf(int index) const {
    return regions_[static_cast<std::size_t>(index)];
  }

  std::uint64_t record_ = 0;
  std::set<std::uint64_t> hazards_;
  std::vector<Vertices> reached_;  // by vertex: the vertices with a path to it
  std::map<std::uint64_t, int> threads_;
  std::map<std::uint64_t, StreamState> streams_;
  std::map<std::uint64_t, int> events_;
  std::map<std::uint64_t, std::vector<int>> tags_;
  std::vector<Region> regions_;
  std::map<std::uint64_t, int> handles_;
  std::vector<Life> lives_;
  std::map<std::uint64_t, int> blocks_;  // live blocks by address
  std::map<std::uint64_t, std::uint64_t> block_bytes_;
  std::map<std::uint64_t, int> current_;  // life by physical granule
  std::map<std::uint64_t, std::vector<Use>> uses_;
  std::vector<GraphState> graphs_;
  std::map<std::uint64_t, int> graph_handles_;
  std::map<std::uint64_t, Exec> execs_;
  std::vector<CaptureState> captures_;
  // Captured events: the graph of the capture, its nodes, and whether it is
  // still active.
  std::map<std::uint64_t, std::pair<int, std::set<int>>> captured_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_HAZARDS_HAZARD_ORACLE_H_
