#include "strata/tools/peers/paddle/paddle_peer.h"

#include <mutex>

#include "strata/tools/peers/registry.h"

namespace strata::peers {

PaddlePeer::PaddlePeer(Device& device, std::size_t chunk_bytes)
    : device_(device),
      place_{.device = static_cast<std::int8_t>(device.ordinal())},
      chunk_bytes_(chunk_bytes),
      default_stream_(device.LegacyStream()) {
  const std::unique_lock<std::shared_timed_mutex> lock(mutex_);
  default_layers_[place_] = MakeLayers();
}

PaddlePeer::~PaddlePeer() = default;

bool PaddlePeer::Allocate(std::size_t bytes, const Stream& stream,
                          PeerBlock* block) {
  // Requests of no bytes never reach the strategy (paddle.md §3.2).
  if (bytes == 0) {
    *block = PeerBlock{};
    return true;
  }
  try {
    PaddleAllocationPtr allocation = LayersOf(stream)->Allocate(bytes);
    block->address = allocation->address();
    block->bytes = allocation->bytes();
    block->stream = stream;
    block->record = allocation.release();
  } catch (const PaddleOutOfMemory&) {
    return false;
  }
  return true;
}

void PaddlePeer::Free(const PeerBlock& block) {
  if (block.address == 0) return;
  // Destroyed here, like the pointer of the original's user.
  const PaddleAllocationPtr allocation(
      static_cast<PaddleAllocation*>(block.record), PaddleAllocator::Delete);
}

void PaddlePeer::Release() {
  const std::shared_lock<std::shared_timed_mutex> lock(mutex_);
  for (const std::shared_ptr<PaddleAutoGrowth>& strategy : strategies_) {
    strategy->FreeIdleChunks();
  }
}

PeerStats PaddlePeer::stats() const {
  PeerStats stats;
  {
    const std::shared_lock<std::shared_timed_mutex> lock(mutex_);
    for (const std::shared_ptr<PaddleAutoGrowth>& strategy : strategies_) {
      stats.allocations += strategy->allocations();
    }
  }
  stats.in_use_bytes = static_cast<std::uint64_t>(in_use_.Current());
  stats.reserved_bytes = reserved_.bytes.load();
  stats.peak_reserved_bytes = reserved_.peak_bytes.load();
  return stats;
}

const PaddlePeer::Layers& PaddlePeer::LayersOf(const Stream& stream) {
  if (stream == default_stream_) return default_layers_.find(place_)->second;
  {
    const std::shared_lock<std::shared_timed_mutex> lock(mutex_);
    if (const Layers* found = FindLayers(stream.uid)) return *found;
  }
  const std::unique_lock<std::shared_timed_mutex> lock(mutex_);
  Layers& layers = layers_[place_][stream.uid];
  if (layers == nullptr) layers = MakeLayers();
  return layers;
}

// Two lookups, as in the original.
const PaddlePeer::Layers* PaddlePeer::FindLayers(std::uint64_t stream) const {
  const auto of_place = layers_.find(place_);
  if (of_place == layers_.end() || !of_place->second.contains(stream)) {
    return nullptr;
  }
  return &layers_.find(place_)->second.find(stream)->second;
}

PaddlePeer::Layers PaddlePeer::MakeLayers() {
  auto strategy = std::make_shared<PaddleAutoGrowth>(device_, place_,
                                                     chunk_bytes_, &reserved_);
  auto stream_safe =
      std::make_shared<PaddleStreamSafeLayer>(strategy, &streams_);
  streams_.Add(stream_safe.get());
  strategies_.push_back(strategy);
  auto retry = std::make_shared<PaddleRetryLayer>(std::move(stream_safe));
  return std::make_shared<PaddleStatLayer>(std::move(retry), &in_use_);
}

std::unique_ptr<Peer> MakePaddlePeer(Device& device) {
  // FLAGS_auto_growth_chunk_size_in_mb is 0.
  return std::make_unique<PaddlePeer>(device, /*chunk_bytes=*/0);
}

}  // namespace strata::peers
