#include "strata/tools/peers/paddle_peer.h"

#include <mutex>

#include "strata/tools/peers/registry.h"

namespace strata {

PaddlePeer::PaddlePeer(Device& device, std::size_t chunk_bytes)
    : device_(device),
      chunk_bytes_(chunk_bytes),
      default_stream_(device.LegacyStream()),
      default_allocator_(device, chunk_bytes, &reserved_) {}

PaddlePeer::~PaddlePeer() = default;

bool PaddlePeer::Allocate(std::size_t bytes, const Stream& stream,
                          PeerBlock* block) {
  // Requests of no bytes never reach the strategy (paddle.md §3.2).
  if (bytes == 0) {
    *block = PeerBlock{};
    return true;
  }
  PaddleAutoGrowth& allocator = AllocatorOf(stream);
  PaddleAutoGrowth::Handle* inner = allocator.Allocate(bytes);
  if (inner == nullptr) {
    FreeIdleChunksOfAllStreams();
    inner = allocator.Allocate(bytes);
    if (inner == nullptr) return false;
  }
  auto handle = std::make_unique<StreamSafeHandle>();
  *handle = {&allocator, inner};
  const PaddleAutoGrowth::Block& used = *inner->block;
  allocations_.fetch_add(1, std::memory_order_relaxed);
  in_use_bytes_.fetch_add(used.bytes, std::memory_order_relaxed);
  *block = {used.address, used.bytes, stream, handle.release()};
  return true;
}

void PaddlePeer::Free(const PeerBlock& block) {
  if (block.address == 0) return;
  const std::unique_ptr<StreamSafeHandle> handle(
      static_cast<StreamSafeHandle*>(block.record));
  in_use_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
  handle->allocator->Free(handle->inner);
}

PeerStats PaddlePeer::stats() const {
  return {allocations_.load(), in_use_bytes_.load(), reserved_.bytes.load(),
          reserved_.peak_bytes.load()};
}

PaddleAutoGrowth& PaddlePeer::AllocatorOf(const Stream& stream) {
  if (stream == default_stream_) return default_allocator_;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = allocators_.find(stream.uid);
    if (found != allocators_.end()) return *found->second;
  }
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  std::unique_ptr<PaddleAutoGrowth>& allocator = allocators_[stream.uid];
  if (allocator == nullptr) {
    allocator =
        std::make_unique<PaddleAutoGrowth>(device_, chunk_bytes_, &reserved_);
  }
  return *allocator;
}

void PaddlePeer::FreeIdleChunksOfAllStreams() {
  default_allocator_.FreeIdleChunks();
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  for (const auto& [uid, allocator] : allocators_) allocator->FreeIdleChunks();
}

std::unique_ptr<Peer> MakePaddlePeer(Device& device) {
  // FLAGS_auto_growth_chunk_size_in_mb is 0.
  return std::make_unique<PaddlePeer>(device, /*chunk_bytes=*/0);
}

}  // namespace strata
