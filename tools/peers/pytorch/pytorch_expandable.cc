// The part of PytorchPeer that only runs with expandable segments.

#include <algorithm>

#include "strata/base/size.h"
#include "strata/tools/peers/pytorch/pytorch_peer.h"

namespace strata::peers {
namespace {

constexpr std::size_t kSmallGranuleBytes = Mebibytes(2);
constexpr std::size_t kLargeGranuleBytes = Mebibytes(20);

}  // namespace

PytorchPeer::Block* PytorchPeer::AddExpandable(Pool& pool, std::size_t bytes,
                                               const Stream& stream) {
  Block* block = FindRoom(pool, bytes, stream);
  if (!block->is_mapped && !MapBlock(block, std::min(block->bytes, bytes))) {
    return nullptr;
  }
  while (block->bytes < bytes) {
    // Mapping the neighbour adds this block to it.
    Block* next = block->next;
    if (!MapBlock(next, std::min(next->bytes, bytes - block->bytes))) {
      return nullptr;
    }
    block = next;
  }
  pool.free.erase(block);
  return block;
}

// The first of a row of adjacent free and unmapped blocks that together have
// `bytes`: the row at the lowest address; in a new segment if there is none.
PytorchPeer::Block* PytorchPeer::FindRoom(Pool& pool, std::size_t bytes,
                                          const Stream& stream) {
  const auto has_room = [bytes](const Block* block) {
    std::size_t room = 0;
    while (room < bytes && block != nullptr && !block->in_use) {
      room += block->bytes;
      block = block->next;
    }
    return room >= bytes;
  };
  Block key;
  key.stream = stream;
  for (auto at = pool.unmapped.lower_bound(&key);
       at != pool.unmapped.end() && (*at)->stream == stream; ++at) {
    Block* block = *at;
    if (block->previous != nullptr && !block->previous->in_use) {
      block = block->previous;
    }
    if (has_room(block)) return block;
  }
  std::size_t free_bytes = 0;
  std::size_t device_bytes = 0;
  RequireSuccess(device_.MemGetInfo(&free_bytes, &device_bytes),
                 DeviceCall::kMemGetInfo);
  expandable_segments_.push_back(std::make_unique<ExpandableSegment>(
      device_, stream, pool.is_small ? kSmallGranuleBytes : kLargeGranuleBytes,
      device_bytes));
  auto block = std::make_unique<Block>();
  block->stream = stream;
  block->pool = &pool;
  block->segment = expandable_segments_.back().get();
  block->address = block->segment->range().begin;
  block->bytes = block->segment->range().bytes;
  block->is_mapped = false;
  pool.unmapped.insert(block.get());
  return block.release();
}

// Maps the first `bytes` of an unmapped block, which becomes free and joins its
// free neighbours. False if there is no memory.
bool PytorchPeer::MapBlock(Block* block, std::size_t bytes) {
  const AddressRange mapped = block->segment->Map({block->address, bytes});
  if (mapped.bytes == 0) return false;
  Pool& pool = *block->pool;
  pool.unmapped.erase(block);
  if (mapped.end() < block->address + block->bytes) {
    Block* rest = CutOff(
        *block, {mapped.end(), block->address + block->bytes - mapped.end()});
    rest->previous = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->previous = rest;
    block->next = rest;
    block->bytes = mapped.bytes;
    pool.unmapped.insert(rest);
  }
  block->is_mapped = true;
  stats_.Reserved(block->pool->stats_pool(), mapped.bytes);
  Merge(block, block->previous);
  Merge(block, block->next);
  pool.free.insert(block);
  return true;
}

// Unmaps the granules that lie within a free block.
void PytorchPeer::UnmapBlock(Block* block) {
  const AddressRange unmapped =
      block->segment->Unmap({block->address, block->bytes});
  if (unmapped.bytes == 0) return;
  Pool& pool = *block->pool;
  pool.free.erase(block);
  stats_.GivenBack(block->pool->stats_pool(), unmapped.bytes);
  const DevicePtr end = block->address + block->bytes;
  if (block->address < unmapped.begin) {
    Block* front =
        CutOff(*block, {block->address, unmapped.begin - block->address});
    front->previous = block->previous;
    front->next = block;
    if (front->previous != nullptr) front->previous->next = front;
    block->previous = front;
    pool.free.insert(front);
  }
  if (unmapped.end() < end) {
    Block* back = CutOff(*block, {unmapped.end(), end - unmapped.end()});
    back->previous = block;
    back->next = block->next;
    if (back->next != nullptr) back->next->previous = back;
    block->next = back;
    pool.free.insert(back);
  }
  block->address = unmapped.begin;
  block->bytes = unmapped.bytes;
  block->is_mapped = false;
  Merge(block, block->previous);
  Merge(block, block->next);
  pool.unmapped.insert(block);
}

// A copy of `block` for a part of its range, not linked yet.
PytorchPeer::Block* PytorchPeer::CutOff(const Block& block,
                                        AddressRange range) {
  auto part = std::make_unique<Block>(block);
  part->address = range.begin;
  part->bytes = range.bytes;
  return part.release();
}

// `block` is the whole segment, unmapped.
void PytorchPeer::ReleaseExpandableSegment(Block* block) {
  const auto owned = std::find_if(
      expandable_segments_.begin(), expandable_segments_.end(),
      [block](const auto& segment) { return segment.get() == block->segment; });
  expandable_segments_.erase(owned);
  block->pool->unmapped.erase(block);
  delete block;
}

}  // namespace strata::peers
