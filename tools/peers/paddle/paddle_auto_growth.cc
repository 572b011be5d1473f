#include "strata/tools/peers/paddle/paddle_auto_growth.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>

#include "strata/base/size.h"
#include "strata/tools/peers/peer.h"

namespace strata::peers {
namespace {

constexpr std::size_t kPaddleAlignmentBytes = 256;

}  // namespace

void PaddleReserved::Add(std::size_t more) {
  const std::size_t now = bytes.fetch_add(more) + more;
  std::size_t peak = peak_bytes.load();
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

class PaddleAutoGrowth::Object final : public PaddleAllocation {
 public:
  Object(BlockList::iterator block, PaddlePlace place)
      : PaddleAllocation(block->address, block->bytes, place), block_(block) {}

  BlockList::iterator block() const { return block_; }

 private:
  const BlockList::iterator block_;
};

PaddleAutoGrowth::PaddleAutoGrowth(Device& device, PaddlePlace place,
                                   std::size_t chunk_bytes,
                                   PaddleReserved* reserved)
    : device_(device),
      place_(place),
      chunk_bytes_(std::max(AlignUp(chunk_bytes, kPaddleAlignmentBytes),
                            kPaddleAlignmentBytes)),
      reserved_(reserved) {}

PaddleAutoGrowth::~PaddleAutoGrowth() {
  // A failure shows as a leak of the device.
  for (const Chunk& chunk : chunks_) device_.MemFree(chunk.address);
}

PaddleAllocation* PaddleAutoGrowth::AllocateImpl(std::size_t bytes) {
  const std::optional<std::size_t> rounded =
      CheckedAlignUp(bytes, kPaddleAlignmentBytes);
  if (!rounded) throw PaddleOutOfMemory();
  const std::lock_guard<PaddleSpinLock> lock(lock_);
  const auto found = free_.lower_bound({*rounded, 0});
  BlockList::iterator block;
  if (found != free_.end()) {
    const BlockList::iterator best = found->second;
    free_.erase(found);
    block = TakeHighEnd(best, *rounded);
  } else if (!AddChunk(*rounded, &block)) {
    FreeIdleChunksLocked();
    if (!AddChunk(*rounded, &block)) throw PaddleOutOfMemory();
  }
  ++allocations_;
  return std::make_unique<Object>(block, place_).release();
}

PaddleAutoGrowth::BlockList::iterator PaddleAutoGrowth::TakeHighEnd(
    BlockList::iterator free_block, std::size_t bytes) {
  if (free_block->bytes == bytes) {
    free_block->is_free = false;
    return free_block;
  }
  const std::size_t rest = free_block->bytes - bytes;
  Chunk* chunk = free_block->chunk;
  chunk->blocks.insert(free_block,
                       Block{free_block->address, rest, true, chunk});
  const auto low = std::prev(free_block);
  free_.emplace(KeyOf(*low), low);
  free_block->address += rest;
  free_block->bytes = bytes;
  free_block->is_free = false;
  return free_block;
}

bool PaddleAutoGrowth::AddChunk(std::size_t bytes, BlockList::iterator* block) {
  const std::size_t chunk_bytes = std::max(bytes, chunk_bytes_);
  DevicePtr address = 0;
  if (!FoundMemory(device_.MemAlloc(&address, chunk_bytes),
                   DeviceCall::kMemAlloc)) {
    return false;
  }
  reserved_->Add(chunk_bytes);
  chunks_.push_back({address, {}});
  Chunk* chunk = &chunks_.back();
  chunk->blocks.push_back(Block{address, chunk_bytes, true, chunk});
  *block = TakeHighEnd(chunk->blocks.begin(), bytes);
  return true;
}

void PaddleAutoGrowth::FreeImpl(PaddleAllocation* allocation) {
  const std::unique_ptr<Object> object(static_cast<Object*>(allocation));
  const std::lock_guard<PaddleSpinLock> lock(lock_);
  const BlockList::iterator block = object->block();
  BlockList& blocks = block->chunk->blocks;
  block->is_free = true;
  if (block != blocks.begin() && std::prev(block)->is_free) {
    const auto previous = std::prev(block);
    free_.erase(KeyOf(*previous));
    block->address = previous->address;
    block->bytes += previous->bytes;
    blocks.erase(previous);
  }
  const auto next = std::next(block);
  if (next != blocks.end() && next->is_free) {
    free_.erase(KeyOf(*next));
    block->bytes += next->bytes;
    blocks.erase(next);
  }
  free_.emplace(KeyOf(*block), block);
}

std::size_t PaddleAutoGrowth::FreeIdleChunks() {
  const std::lock_guard<PaddleSpinLock> lock(lock_);
  return FreeIdleChunksLocked();
}

std::uint64_t PaddleAutoGrowth::allocations() {
  const std::lock_guard<PaddleSpinLock> lock(lock_);
  return allocations_;
}

std::size_t PaddleAutoGrowth::FreeIdleChunksLocked() {
  std::size_t freed = 0;
  for (auto chunk = chunks_.begin(); chunk != chunks_.end();) {
    const Block& first = chunk->blocks.front();
    if (chunk->blocks.size() != 1 || !first.is_free) {
      ++chunk;
      continue;
    }
    RequireSuccess(device_.MemFree(chunk->address), DeviceCall::kMemFree);
    freed += first.bytes;
    free_.erase(KeyOf(first));
    chunk = chunks_.erase(chunk);
  }
  reserved_->bytes -= freed;
  return freed;
}

}  // namespace strata::peers
