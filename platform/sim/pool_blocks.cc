#include "strata/platform/sim/pool_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata {
namespace {

bool IsOf(const StreamPoint& point, const Stream& stream) {
  return point.device == stream.device && point.stream_uid == stream.uid;
}

bool AreOfOneStream(const StreamPoint& a, const StreamPoint& b) {
  return a.device == b.device && a.stream_uid == b.stream_uid;
}

}  // namespace

bool ReuseRule::Allows(const StreamPoint& point) const {
  if (IsOf(point, stream)) return true;
  if (follow_dependencies && order.IsBefore(point, stream)) return true;
  return opportunistic && order.IsDone(point);
}

bool PoolBlocks::Allows(const ReuseRule& rule, const Block& block) {
  return !block.freed || rule.with_waits || rule.Allows(*block.freed);
}

void PoolBlocks::AddChunk(const PoolChunk& chunk) {
  chunks_.insert(ChunkAfter(chunk.ptr),
                 ChunkState{chunk, 0, chunk.bytes, chunk.bytes});
  Block block;
  block.bytes = chunk.bytes;
  block.chunk = chunk.ptr;
  Index(AddBlock(blocks_.upper_bound(chunk.ptr), chunk.ptr, block));
  reserved_bytes_ += chunk.bytes;
}

std::optional<DevicePtr> PoolBlocks::Find(std::uint64_t bytes,
                                          const ReuseRule& rule) {
  if (bytes > reserved_bytes_ - live_bytes_) return std::nullopt;
  const std::optional<DevicePtr> block = FindBlock(bytes, rule);
  return block ? block : FindRow(bytes, rule);
}

std::optional<DevicePtr> PoolBlocks::FindBlock(std::uint64_t bytes,
                                               const ReuseRule& rule) const {
  auto it = free_.lower_bound(FreeEntry{bytes, 0, nullptr});
  for (; it != free_.end(); ++it) {
    if (Allows(rule, *it->block)) return it->ptr;
  }
  return std::nullopt;
}

std::optional<DevicePtr> PoolBlocks::FindRow(std::uint64_t bytes,
                                             const ReuseRule& rule) {
  std::optional<Row> best;
  for (ChunkState& state : chunks_) {
    if (state.most_row_bytes >= bytes) FindRowIn(state, bytes, rule, &best);
  }
  if (!best) return std::nullopt;
  return best->second;
}

void PoolBlocks::FindRowIn(ChunkState& state, std::uint64_t bytes,
                           const ReuseRule& rule, std::optional<Row>* best) {
  const DevicePtr chunk = state.chunk.ptr;
  std::uint64_t free_bytes = 0;  // of the row that anybody might have
  state.most_row_bytes = 0;
  Row row{0, chunk};
  const auto end_row = [&] {
    if (row.first >= bytes && (!*best || row < **best)) *best = row;
  };
  for (auto it = blocks_.find(chunk);
       it != blocks_.end() && it->second.chunk == chunk; ++it) {
    const Block& block = it->second;
    free_bytes = block.live ? 0 : free_bytes + block.bytes;
    state.most_row_bytes = std::max(state.most_row_bytes, free_bytes);
    if (!block.live && Allows(rule, block)) {
      row.first += block.bytes;
      continue;
    }
    end_row();
    row = {0, it->first + block.bytes};
  }
  end_row();
}

void PoolBlocks::Take(DevicePtr ptr, std::uint64_t bytes,
                      std::vector<StreamPoint>* points) {
  const auto first = blocks_.find(ptr);
  std::uint64_t taken = 0;
  auto it = first;
  while (taken < bytes) {
    Unindex(it->second);
    CutFront(it, std::min(it->second.bytes, bytes - taken));
    if (points != nullptr && it->second.freed) {
      points->push_back(*it->second.freed);
    }
    taken += it->second.bytes;
    it = it == first ? std::next(it) : DropBlock(it);
  }
  Block& block = first->second;
  block.bytes = bytes;
  block.live = true;
  block.freed.reset();
  ChunkState& state = ChunkAt(block.chunk);
  ++state.live;
  state.free_bytes -= bytes;
  state.most_row_bytes = std::min(state.most_row_bytes, state.free_bytes);
  ++live_count_;
  live_bytes_ += bytes;
}

std::uint64_t PoolBlocks::Free(DevicePtr ptr,
                               const std::optional<StreamPoint>& point) {
  const auto it = blocks_.find(ptr);
  if (it == blocks_.end() || !it->second.live) return 0;
  const std::uint64_t bytes = it->second.bytes;
  it->second.live = false;
  it->second.freed = point;
  ChunkState& state = ChunkAt(it->second.chunk);
  --state.live;
  state.free_bytes += bytes;
  // At best it joins two of the longest.
  state.most_row_bytes =
      std::min(2 * state.most_row_bytes + bytes, state.free_bytes);
  --live_count_;
  live_bytes_ -= bytes;
  Index(Coalesce(it));
  return bytes;
}

void PoolBlocks::NoteWait(WaitedFor waited) {
  if (freed_at_point_ == 0) return;
  std::vector<DevicePtr> known;
  for (const FreeEntry& entry : free_) {
    const auto& freed = entry.block->freed;
    if (freed && waited(*freed)) known.push_back(entry.ptr);
  }
  // A neighbour that joins has been met here already, so each is still there.
  for (const DevicePtr ptr : known) {
    const auto block = blocks_.find(ptr);
    Unindex(block->second);
    block->second.freed.reset();
    Index(Coalesce(block));
  }
}

// Joins a free block that is not indexed with its neighbours. Returns what it
// is part of, which is not indexed either.
PoolBlocks::BlockMap::iterator PoolBlocks::Coalesce(BlockMap::iterator block) {
  const auto above = std::next(block);
  if (above != blocks_.end() && AreOne(block->second, above->second)) {
    Unindex(above->second);
    Join(above->second, &block->second);
    DropBlock(above);
  }
  if (block == blocks_.begin()) return block;
  const auto below = std::prev(block);
  if (!AreOne(below->second, block->second)) return block;
  Unindex(below->second);
  Join(block->second, &below->second);
  DropBlock(block);
  return below;
}

// Whether neighbours are free for the same streams, or will be.
bool PoolBlocks::AreOne(const Block& low, const Block& high) {
  if (low.live || high.live || low.chunk != high.chunk) return false;
  if (!low.freed || !high.freed) return low.freed == high.freed;
  return AreOfOneStream(*low.freed, *high.freed);
}

// Makes `part` part of `block`: who may have it may have all of it.
void PoolBlocks::Join(const Block& part, Block* block) {
  block->bytes += part.bytes;
  if (part.freed && part.freed->count > block->freed->count) {
    block->freed = part.freed;
  }
}

// Leaves `bytes` to a block that is not indexed; the rest is a free block with
// the same point.
void PoolBlocks::CutFront(BlockMap::iterator block, std::uint64_t bytes) {
  if (block->second.bytes == bytes) return;
  Block rest = block->second;
  rest.bytes -= bytes;
  block->second.bytes = bytes;
  Index(AddBlock(std::next(block), block->first + bytes, rest));
}

std::optional<PoolChunk> PoolBlocks::TakeIdleChunk(const StreamOrder* order,
                                                   std::uint64_t most_bytes) {
  for (auto it = chunks_.begin(); it != chunks_.end(); ++it) {
    if (it->chunk.bytes > most_bytes || !IsIdle(*it, order)) continue;
    const PoolChunk chunk = it->chunk;
    DropChunk(it);
    return chunk;
  }
  return std::nullopt;
}

std::uint64_t PoolBlocks::IdleBytes(const StreamOrder& order) const {
  std::uint64_t bytes = 0;
  for (const ChunkState& state : chunks_) {
    if (IsIdle(state, &order)) bytes += state.chunk.bytes;
  }
  return bytes;
}

bool PoolBlocks::IsIdle(const ChunkState& state,
                        const StreamOrder* order) const {
  if (state.live != 0) return false;
  auto it = blocks_.find(state.chunk.ptr);
  for (; it != blocks_.end() && it->second.chunk == state.chunk.ptr; ++it) {
    const auto& freed = it->second.freed;
    if (freed && (order == nullptr || !order->IsDone(*freed))) return false;
  }
  return true;
}

void PoolBlocks::DropChunk(Chunks::iterator chunk) {
  const DevicePtr ptr = chunk->chunk.ptr;
  auto it = blocks_.find(ptr);
  while (it != blocks_.end() && it->second.chunk == ptr) {
    Unindex(it->second);
    it = DropBlock(it);
  }
  reserved_bytes_ -= chunk->chunk.bytes;
  chunks_.erase(chunk);
}

PoolBlocks::Chunks::const_iterator PoolBlocks::ChunkAfter(DevicePtr ptr) const {
  return std::upper_bound(chunks_.begin(), chunks_.end(), ptr,
                          [](DevicePtr sought, const ChunkState& state) {
                            return sought < state.chunk.ptr;
                          });
}

PoolBlocks::ChunkState& PoolBlocks::ChunkAt(DevicePtr ptr) {
  return chunks_[static_cast<std::size_t>(ChunkAfter(ptr) - chunks_.begin()) -
                 1];
}

std::uint64_t PoolBlocks::BlockBytes(DevicePtr ptr) const {
  const auto block = blocks_.find(ptr);
  return block != blocks_.end() && block->second.live ? block->second.bytes : 0;
}

const PoolBlocks::Block* PoolBlocks::FindCovering(DevicePtr ptr,
                                                  std::uint64_t bytes) const {
  auto it = blocks_.upper_bound(ptr);
  if (it == blocks_.begin()) return nullptr;
  --it;
  const std::uint64_t offset = ptr - it->first;
  const std::uint64_t size = it->second.bytes;
  return offset < size && bytes <= size - offset ? &it->second : nullptr;
}

bool PoolBlocks::Covers(DevicePtr ptr, std::uint64_t bytes) const {
  const Block* block = FindCovering(ptr, bytes);
  return block != nullptr && block->live;
}

bool PoolBlocks::CoversFreed(DevicePtr ptr, std::uint64_t bytes,
                             const StreamOrder& order) const {
  const Block* block = FindCovering(ptr, bytes);
  return block != nullptr && !block->live && block->freed &&
         !order.IsDone(*block->freed);
}

const PoolChunk* PoolBlocks::FindChunk(DevicePtr ptr,
                                       std::uint64_t bytes) const {
  const auto after = ChunkAfter(ptr);
  if (after == chunks_.begin()) return nullptr;
  const PoolChunk& chunk = std::prev(after)->chunk;
  const std::uint64_t offset = ptr - chunk.ptr;
  const bool inside = offset < chunk.bytes && bytes <= chunk.bytes - offset;
  return inside ? &chunk : nullptr;
}

PoolBlocks::BlockMap::iterator PoolBlocks::AddBlock(BlockMap::iterator before,
                                                    DevicePtr ptr,
                                                    const Block& block) {
  if (spare_blocks_.empty()) return blocks_.emplace_hint(before, ptr, block);
  BlockMap::node_type node = std::move(spare_blocks_.back());
  spare_blocks_.pop_back();
  node.key() = ptr;
  node.mapped() = block;
  return blocks_.insert(before, std::move(node));
}

// Returns the block above.
PoolBlocks::BlockMap::iterator PoolBlocks::DropBlock(BlockMap::iterator block) {
  const auto above = std::next(block);
  spare_blocks_.push_back(blocks_.extract(block));
  return above;
}

void PoolBlocks::Index(BlockMap::iterator block) {
  if (block->second.freed) ++freed_at_point_;
  const FreeEntry entry{block->second.bytes, block->first, &block->second};
  if (spare_entries_.empty()) {
    block->second.entry = free_.insert(entry).first;
    return;
  }
  FreeIndex::node_type node = std::move(spare_entries_.back());
  spare_entries_.pop_back();
  node.value() = entry;
  block->second.entry = free_.insert(std::move(node)).position;
}

void PoolBlocks::Unindex(const Block& block) {
  if (block.freed) --freed_at_point_;
  spare_entries_.push_back(free_.extract(block.entry));
}

}  // namespace strata
