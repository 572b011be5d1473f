#ifndef STRATA_TOOLS_PEERS_PADDLE_PEER_H_
#define STRATA_TOOLS_PEERS_PADDLE_PEER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>

#include "strata/platform/device.h"
#include "strata/tools/peers/paddle_auto_growth.h"
#include "strata/tools/peers/peer.h"

namespace strata {

// The auto_growth strategy of PaddlePaddle under its stream-safe layer.
//
// Model: an allocator per stream (PaddleAutoGrowth). When one has no memory
//   left even after giving its idle chunks back, those of all streams go back,
//   and it tries once more.
// Source: paddle.md §3.3, §3.6.
class PaddlePeer final : public Peer {
 public:
  // `chunk_bytes` is the least size of a chunk.
  PaddlePeer(Device& device, std::size_t chunk_bytes);
  ~PaddlePeer() override;

  const char* name() const override { return "peer:paddle"; }
  bool Allocate(std::size_t bytes, const Stream& stream,
                PeerBlock* block) override;
  void Free(const PeerBlock& block) override;
  PeerStats stats() const override;

 private:
  // The object around the strategy's own that knows the owning stream's
  // allocator.
  struct StreamSafeHandle {
    PaddleAutoGrowth* allocator;
    PaddleAutoGrowth::Handle* inner;
  };

  PaddleAutoGrowth& AllocatorOf(const Stream& stream);
  void FreeIdleChunksOfAllStreams();

  Device& device_;
  const std::size_t chunk_bytes_;
  const Stream default_stream_;
  PaddleReserved reserved_;
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> in_use_bytes_{0};
  PaddleAutoGrowth default_allocator_;
  std::shared_mutex mutex_;
  // By the stream's identity; guarded by mutex_.
  std::map<std::uint64_t, std::unique_ptr<PaddleAutoGrowth>> allocators_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_PADDLE_PEER_H_
