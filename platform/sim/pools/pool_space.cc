#include "strata/platform/sim/pools/pool_space.h"

namespace strata::sim {
PoolSpace::PoolSpace(int device, DeviceMemory* memory)
    : memory_(memory), lane_(kPoolWindows.BeginOf(device), kPoolWindowBytes) {}

std::optional<PoolChunk> PoolSpace::Take(std::uint64_t bytes) {
  PoolChunk chunk;
  if (memory_->TakeFrames(bytes, &chunk.share) != Status::kSuccess) {
    return std::nullopt;
  }
  std::optional<DevicePtr> ptr = lane_.Take(bytes, kFrameBytes);
  if (!ptr) ptr = lane_.TakeLowest(bytes, kFrameBytes);
  if (!ptr) {
    memory_->GiveFrames(chunk.share);
    return std::nullopt;
  }
  chunk.ptr = *ptr;
  chunk.bytes = bytes;
  return chunk;
}

void PoolSpace::Give(const PoolChunk& chunk) {
  memory_->DropViews(chunk.ptr, chunk.bytes);
  memory_->GiveFrames(chunk.share);
  lane_.Give(chunk.ptr, chunk.bytes);
}

}  // namespace strata::sim
