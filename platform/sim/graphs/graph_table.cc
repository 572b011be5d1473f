#include "strata/platform/sim/graphs/graph_table.h"

#include <algorithm>
#include <utility>

#include "strata/platform/sim/graphs/graph_memory.h"
#include "strata/platform/sim/memory/device_windows.h"

namespace strata::sim {
namespace {

constexpr HandleSpace kGraphHandles(0x61);
constexpr HandleSpace kExecHandles(0x62);
constexpr HandleSpace kNodeHandles(0x63);

// Releases the chunks that were added since.
void Restore(GraphHeap* heap, GraphHeap::Layout before) {
  const std::vector<DevicePtr>& chunks = heap->chunks();
  for (std::size_t i = before.chunks.size(); i < chunks.size(); ++i) {
    heap->memory().Shrink(chunks[i]);
  }
  heap->Restore(std::move(before));
}

}  // namespace

Graph GraphTable::Create(int device) {
  const Graph graph{kGraphHandles.At(0, ++graphs_made_)};
  auto entry = std::make_unique<GraphEntry>();
  entry->device = device;
  graphs_.emplace(graph.value, std::move(entry));
  return graph;
}

void GraphTable::Destroy(Graph graph) {
  const auto found = graphs_.find(graph.value);
  Truncate(&found->second->graph, 0);
  graphs_.erase(found);
}

GraphEntry* GraphTable::Find(Graph graph) {
  const auto found = graphs_.find(graph.value);
  return found == graphs_.end() ? nullptr : found->second.get();
}

GraphNode GraphTable::Add(SimGraph* graph, SimNode node,
                          std::vector<NodeIndex> predecessors) {
  const GraphNode handle{kNodeHandles.At(0, ++nodes_made_)};
  node.handle = handle;
  const NodeIndex index = graph->Add(std::move(node), std::move(predecessors));
  nodes_.emplace(handle.value, NodeRef{graph, index});
  return handle;
}

void GraphTable::BeginCapture(GraphEntry* entry) {
  entry->capturing = true;
  entry->before = {};
  entry->before.nodes = entry->graph.nodes().size();
  entry->before.objects = entry->objects.size();
  entry->before.foreign_frees = entry->memory.foreign_frees;
  for (const auto& [device, heap] : entry->memory.heaps) {
    entry->before.layouts[device] = heap->layout();
  }
}

void GraphTable::UndoCapture(GraphEntry* entry) {
  GraphEntry::Before& before = entry->before;
  Truncate(&entry->graph, before.nodes);
  entry->objects.resize(before.objects);
  entry->memory.foreign_frees = std::move(before.foreign_frees);
  auto& heaps = entry->memory.heaps;
  for (auto it = heaps.begin(); it != heaps.end();) {
    const auto layout = before.layouts.find(it->first);
    if (layout == before.layouts.end()) {
      it = heaps.erase(it);
    } else {
      Restore((it++)->second.get(), std::move(layout->second));
    }
  }
}

void GraphTable::Truncate(SimGraph* graph, std::size_t count) {
  for (std::size_t i = count; i < graph->nodes().size(); ++i) {
    nodes_.erase(graph->nodes()[i].handle.value);
  }
  graph->Truncate(count);
}

const SimGraph* GraphTable::Find(GraphNode node, NodeIndex* index) const {
  const auto found = nodes_.find(node.value);
  if (found == nodes_.end()) return nullptr;
  *index = found->second.index;
  return found->second.graph;
}

bool GraphTable::Resolve(const SimGraph* graph, const GraphNode* nodes,
                         std::size_t count,
                         std::vector<NodeIndex>* indices) const {
  for (std::size_t i = 0; i < count; ++i) {
    NodeIndex index = 0;
    if (Find(nodes[i], &index) != graph) return false;
    indices->push_back(index);
  }
  return true;
}

GraphExec GraphTable::AddExec(SimExec exec) {
  const GraphExec handle{kExecHandles.At(0, ++execs_made_)};
  execs_.emplace(handle.value, std::move(exec));
  return handle;
}

SimExec* GraphTable::Find(GraphExec exec) {
  const auto found = execs_.find(exec.value);
  return found == execs_.end() ? nullptr : &found->second;
}

std::uint64_t GraphTable::graph_count(int device) const {
  return static_cast<std::uint64_t>(
      std::count_if(graphs_.begin(), graphs_.end(), [device](const auto& it) {
        return it.second->device == device && !it.second->capturing;
      }));
}

std::uint64_t GraphTable::exec_count(int device) const {
  return static_cast<std::uint64_t>(std::count_if(
      execs_.begin(), execs_.end(),
      [device](const auto& it) { return it.second.device == device; }));
}

}  // namespace strata::sim
