#include "strata/platform/sim/pools/pool_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata::sim {
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
  auto added = std::make_unique<Chunk>(chunk);
  Block* const block = AddBlock(chunk.ptr, added.get());
  block->bytes = chunk.bytes;
  added->first = block;
  Index(block);
  chunks_.insert(ChunkAfter(chunk.ptr), std::move(added));
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
  const Block* const found = free_.FindFirst(
      bytes, [&](const Block& block) { return Allows(rule, block); });
  if (found == nullptr) return std::nullopt;
  return found->ptr;
}

std::optional<DevicePtr> PoolBlocks::FindRow(std::uint64_t bytes,
                                             const ReuseRule& rule) {
  std::optional<Row> best;
  for (const auto& chunk : chunks_) {
    if (chunk->most_row_bytes >= bytes) {
      FindRowIn(chunk.get(), bytes, rule, &best);
    }
  }
  if (!best) return std::nullopt;
  return best->second;
}

void PoolBlocks::FindRowIn(Chunk* chunk, std::uint64_t bytes,
                           const ReuseRule& rule, std::optional<Row>* best) {
  std::uint64_t free_bytes = 0;  // of the row, for any stream
  chunk->most_row_bytes = 0;
  Row row{0, chunk->memory.ptr};
  const auto end_row = [&] {
    if (row.first >= bytes && (!*best || row < **best)) *best = row;
  };
  for (const Block* block = chunk->first; block != nullptr;
       block = block->above) {
    free_bytes = block->live ? 0 : free_bytes + block->bytes;
    chunk->most_row_bytes = std::max(chunk->most_row_bytes, free_bytes);
    if (!block->live && Allows(rule, *block)) {
      row.first += block->bytes;
      continue;
    }
    end_row();
    row = {0, block->ptr + block->bytes};
  }
  end_row();
}

void PoolBlocks::Take(DevicePtr ptr, std::uint64_t bytes,
                      std::vector<StreamPoint>* points) {
  Block* const block = BlockAt(ptr);
  std::uint64_t taken = 0;
  for (Block* part = block; taken < bytes;) {
    Unindex(*part);
    CutFront(part, std::min(part->bytes, bytes - taken));
    if (points != nullptr && part->freed) points->push_back(*part->freed);
    part->freed.reset();
    taken += part->bytes;
    Block* const above = part->above;
    if (part != block) JoinAbove(block);
    part = above;
  }
  block->live = true;
  Chunk& chunk = *block->chunk;
  ++chunk.live;
  chunk.free_bytes -= bytes;
  chunk.most_row_bytes = std::min(chunk.most_row_bytes, chunk.free_bytes);
  ++live_count_;
  live_bytes_ += bytes;
}

std::uint64_t PoolBlocks::Free(DevicePtr ptr,
                               const std::optional<StreamPoint>& point) {
  Block* const block = BlockAt(ptr);
  if (block == nullptr || !block->live) return 0;
  const std::uint64_t bytes = block->bytes;
  block->live = false;
  block->freed = point;
  Chunk& chunk = *block->chunk;
  --chunk.live;
  chunk.free_bytes += bytes;
  // At best the block joins two rows of maximum length.
  chunk.most_row_bytes =
      std::min(2 * chunk.most_row_bytes + bytes, chunk.free_bytes);
  --live_count_;
  live_bytes_ -= bytes;
  Index(Coalesce(block));
  return bytes;
}

void PoolBlocks::NoteWait(WaitedFor waited) {
  if (freed_at_point_ == 0) return;
  std::vector<Block*> known;
  free_.ForEach([&](Block& block) {
    if (block.freed && waited(*block.freed)) known.push_back(&block);
  });
  // A neighbour that is joined away was visited before, so each block still
  // exists.
  for (Block* block : known) {
    Unindex(*block);
    block->freed.reset();
    Index(Coalesce(block));
  }
}

// Joins a free block that is not indexed with its neighbours. Returns the
// resulting block, which is not indexed either.
PoolBlocks::Block* PoolBlocks::Coalesce(Block* block) {
  if (AreOne(block, block->above)) {
    Unindex(*block->above);
    JoinAbove(block);
  }
  Block* const below = block->below;
  if (!AreOne(below, block)) return block;
  Unindex(*below);
  JoinAbove(below);
  return below;
}

// True if both neighbours are free, and both were freed in one stream or
// neither has a point. Null: there is no neighbour.
bool PoolBlocks::AreOne(const Block* low, const Block* high) {
  if (low == nullptr || high == nullptr || low->live || high->live) {
    return false;
  }
  if (!low->freed || !high->freed) return low->freed == high->freed;
  return AreOfOneStream(*low->freed, *high->freed);
}

void PoolBlocks::JoinAbove(Block* block) {
  Block* const part = block->above;
  block->bytes += part->bytes;
  // A stream that may reuse the block may reuse all of it.
  if (part->freed && block->freed && part->freed->count > block->freed->count) {
    block->freed = part->freed;
  }
  block->above = part->above;
  if (part->above != nullptr) part->above->below = block;
  DropBlock(part);
}

// Shortens a block that is not indexed to `bytes`. The rest becomes a free
// block with the same point.
void PoolBlocks::CutFront(Block* block, std::uint64_t bytes) {
  if (block->bytes == bytes) return;
  Block* const rest = AddBlock(block->ptr + bytes, block->chunk);
  rest->bytes = block->bytes - bytes;
  rest->freed = block->freed;
  rest->below = block;
  rest->above = block->above;
  if (block->above != nullptr) block->above->below = rest;
  block->above = rest;
  block->bytes = bytes;
  Index(rest);
}

std::optional<PoolChunk> PoolBlocks::TakeIdleChunk(const StreamOrder* order,
                                                   std::uint64_t most_bytes) {
  for (auto it = chunks_.begin(); it != chunks_.end(); ++it) {
    if ((*it)->memory.bytes > most_bytes || !IsIdle(**it, order)) continue;
    const PoolChunk chunk = (*it)->memory;
    DropChunk(it);
    return chunk;
  }
  return std::nullopt;
}

std::uint64_t PoolBlocks::IdleBytes(const StreamOrder& order) const {
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks_) {
    if (IsIdle(*chunk, &order)) bytes += chunk->memory.bytes;
  }
  return bytes;
}

bool PoolBlocks::IsIdle(const Chunk& chunk, const StreamOrder* order) {
  if (chunk.live != 0) return false;
  for (const Block* block = chunk.first; block != nullptr;
       block = block->above) {
    const auto& freed = block->freed;
    if (freed && (order == nullptr || !order->IsDone(*freed))) return false;
  }
  return true;
}

void PoolBlocks::DropChunk(Chunks::iterator chunk) {
  for (Block* block = (*chunk)->first; block != nullptr;) {
    Block* const above = block->above;
    Unindex(*block);
    DropBlock(block);
    block = above;
  }
  reserved_bytes_ -= (*chunk)->memory.bytes;
  chunks_.erase(chunk);
}

PoolBlocks::Chunks::const_iterator PoolBlocks::ChunkAfter(DevicePtr ptr) const {
  return std::upper_bound(
      chunks_.begin(), chunks_.end(), ptr,
      [](DevicePtr sought, const std::unique_ptr<Chunk>& chunk) {
        return sought < chunk->memory.ptr;
      });
}

const PoolBlocks::Chunk* PoolBlocks::ChunkOf(DevicePtr ptr) const {
  const auto after = ChunkAfter(ptr);
  if (after == chunks_.begin()) return nullptr;
  const Chunk* const chunk = std::prev(after)->get();
  return ptr - chunk->memory.ptr < chunk->memory.bytes ? chunk : nullptr;
}

PoolBlocks::Block* PoolBlocks::BlockAt(DevicePtr ptr) {
  const auto found = blocks_.find(ptr);
  return found == blocks_.end() ? nullptr : &found->second;
}

const PoolBlocks::Block* PoolBlocks::BlockAt(DevicePtr ptr) const {
  const auto found = blocks_.find(ptr);
  return found == blocks_.end() ? nullptr : &found->second;
}

std::uint64_t PoolBlocks::BlockBytes(DevicePtr ptr) const {
  const Block* block = BlockAt(ptr);
  return block != nullptr && block->live ? block->bytes : 0;
}

const PoolBlocks::Block* PoolBlocks::FindCovering(DevicePtr ptr,
                                                  std::uint64_t bytes) const {
  const Block* block = BlockAt(ptr);
  if (block == nullptr) {
    const Chunk* chunk = ChunkOf(ptr);
    if (chunk == nullptr) return nullptr;
    const DevicePtr begin = chunk->memory.ptr;
    block =
        BlockAt(begin + chunk->starts.LastUpTo((ptr - begin) / kSliceBytes) *
                            kSliceBytes);
  }
  const std::uint64_t offset = ptr - block->ptr;
  return offset < block->bytes && bytes <= block->bytes - offset ? block
                                                                 : nullptr;
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
  const Chunk* const chunk = ChunkOf(ptr);
  if (chunk == nullptr) return nullptr;
  const std::uint64_t offset = ptr - chunk->memory.ptr;
  return bytes <= chunk->memory.bytes - offset ? &chunk->memory : nullptr;
}

PoolBlocks::Block* PoolBlocks::AddBlock(DevicePtr ptr, Chunk* chunk) {
  Block block;
  block.ptr = ptr;
  block.chunk = chunk;
  chunk->starts.Set((ptr - chunk->memory.ptr) / kSliceBytes);
  if (spare_blocks_.empty()) return &blocks_.emplace(ptr, block).first->second;
  BlockMap::node_type node = std::move(spare_blocks_.back());
  spare_blocks_.pop_back();
  node.key() = ptr;
  node.mapped() = block;
  return &blocks_.insert(std::move(node)).position->second;
}

void PoolBlocks::DropBlock(Block* block) {
  const Chunk* chunk = block->chunk;
  block->chunk->starts.Clear((block->ptr - chunk->memory.ptr) / kSliceBytes);
  spare_blocks_.push_back(blocks_.extract(block->ptr));
}

void PoolBlocks::Index(Block* block) {
  if (block->freed) ++freed_at_point_;
  block->index = free_.Add({block->bytes, block->ptr, block});
}

void PoolBlocks::Unindex(const Block& block) {
  if (block.freed) --freed_at_point_;
  free_.Remove(block.index);
}

}  // namespace strata::sim
