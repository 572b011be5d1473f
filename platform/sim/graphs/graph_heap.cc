#include "strata/platform/sim/graphs/graph_heap.h"

#include <algorithm>

#include "strata/base/size.h"
#include "strata/platform/sim/memory/frame_table.h"
#include "strata/platform/sim/memory/recycled_map.h"

namespace strata::sim {
std::optional<DevicePtr> GraphHeap::Allocate(
    std::uint64_t bytes, const SimGraph& graph,
    const std::vector<NodeIndex>& before, NodeIndex node,
    const GraphRights& rights, const Grow& grow) {
  bytes = AlignUp(bytes, kSliceBytes);
  std::optional<Row> row = FindRow(bytes, graph, before);
  if (!row) {
    const std::optional<Chunk> chunk = grow(bytes);
    if (!chunk) return std::nullopt;
    layout_.chunks.push_back(chunk->ptr);
    Block block;
    block.bytes = chunk->bytes;
    block.chunk = chunk->ptr;
    layout_.blocks.emplace(chunk->ptr, std::move(block));
    row = Row{chunk->ptr, chunk->bytes};
  }
  Take(*row, bytes, node, rights);
  return row->ptr;
}

std::optional<GraphHeap::Row> GraphHeap::FindRow(
    std::uint64_t bytes, const SimGraph& graph,
    const std::vector<NodeIndex>& before) const {
  const auto may_serve = [&](const Block& block) {
    return !block.open &&
           std::all_of(block.freed_by.begin(), block.freed_by.end(),
                       [&](NodeIndex n) { return graph.IsBefore(n, before); });
  };
  std::optional<Row> best;
  for (const auto& [ptr, block] : layout_.blocks) {
    if (block.bytes < bytes || !may_serve(block)) continue;
    if (!best || block.bytes < best->bytes) best = Row{ptr, block.bytes};
  }
  if (best) return best;
  Row row;
  DevicePtr chunk = 0;
  for (const auto& [ptr, block] : layout_.blocks) {
    if (!may_serve(block)) {
      row = Row();
      continue;
    }
    if (row.bytes == 0 || block.chunk != chunk) row = Row{ptr, 0};
    chunk = block.chunk;
    row.bytes += block.bytes;
    const bool fits = row.bytes >= bytes;
    if (fits && (!best || row.bytes < best->bytes)) best = row;
    if (fits) row = Row();
  }
  return best;
}

// Makes one open block of the front of the row.
void GraphHeap::Take(const Row& row, std::uint64_t bytes, NodeIndex node,
                     const GraphRights& rights) {
  auto it = layout_.blocks.find(row.ptr);
  std::uint64_t taken = 0;
  Block open;
  open.bytes = bytes;
  open.chunk = it->second.chunk;
  open.open = true;
  open.node = node;
  open.rights = rights;
  while (taken < bytes) {
    Block rest = std::move(it->second);
    it = layout_.blocks.erase(it);
    taken += rest.bytes;
    if (taken <= bytes) continue;
    rest.bytes = taken - bytes;
    it = layout_.blocks.emplace(row.ptr + bytes, std::move(rest)).first;
  }
  layout_.blocks.emplace(row.ptr, std::move(open));
}

const GraphHeap::Block* GraphHeap::OpenAt(DevicePtr ptr) const {
  const auto found = layout_.blocks.find(ptr);
  return found != layout_.blocks.end() && found->second.open ? &found->second
                                                             : nullptr;
}

std::optional<GraphAllocation> GraphHeap::FindOpen(DevicePtr ptr) const {
  const Block* block = OpenAt(ptr);
  if (block == nullptr) return std::nullopt;
  return GraphAllocation{ptr, block->bytes, block->node, block->rights};
}

void GraphHeap::Free(DevicePtr ptr, NodeIndex node) {
  Block& block = layout_.blocks.at(ptr);
  block.open = false;
  block.freed_by = {node};
}

std::vector<GraphAllocation> GraphHeap::open() const {
  std::vector<GraphAllocation> open;
  for (const auto& [ptr, block] : layout_.blocks) {
    if (!block.open) continue;
    open.push_back({ptr, block.bytes, block.node, block.rights});
  }
  return open;
}

bool GraphHeap::Contains(DevicePtr ptr) const {
  return FindCovering(layout_.blocks, ptr, 1) != layout_.blocks.end();
}

}  // namespace strata::sim
