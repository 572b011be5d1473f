#ifndef STRATA_TOOLS_PEERS_PADDLE_PADDLE_PEER_H_
#define STRATA_TOOLS_PEERS_PADDLE_PADDLE_PEER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "strata/platform/device.h"
#include "strata/tools/peers/paddle/paddle_auto_growth.h"
#include "strata/tools/peers/paddle/paddle_layers.h"
#include "strata/tools/peers/paddle/paddle_stat.h"
#include "strata/tools/peers/peer.h"

namespace strata::peers {

// PaddlePaddle's default: the facade over statistics, retry, the stream-safe
// layer and the auto_growth strategy.
//
// Model: each stream has these four layers. The layers of the default stream
//   are found by the place, as in programs with one stream. The layers of other
//   streams are found by place and stream under a shared lock.
// Source: paddle.md §1b, §3.3, §3.6, §3.9.
class PaddlePeer final : public Peer {
 public:
  // `chunk_bytes` is the least size of a chunk.
  PaddlePeer(Device& device, std::size_t chunk_bytes);
  ~PaddlePeer() override;

  const char* name() const override { return "peer:paddle"; }
  bool Allocate(std::size_t bytes, const Stream& stream,
                PeerBlock* block) override;
  void Free(const PeerBlock& block) override;
  // paddle.device.cuda.empty_cache().
  void Release() override;
  PeerStats stats() const override;

 private:
  using Layers = std::shared_ptr<PaddleAllocator>;

  const Layers& LayersOf(const Stream& stream);
  // Hold mutex_; null if the stream has none.
  const Layers* FindLayers(std::uint64_t stream) const;
  Layers MakeLayers();

  Device& device_;
  const PaddlePlace place_;
  const std::size_t chunk_bytes_;
  const Stream default_stream_;
  PaddleReserved reserved_;
  PaddleStat in_use_;
  PaddleStreams streams_;
  std::map<PaddlePlace, Layers> default_layers_;
  mutable std::shared_timed_mutex mutex_;
  // All below: guarded by mutex_.
  std::map<PaddlePlace, std::map<std::uint64_t, Layers>> layers_;  // by uid
  std::vector<std::shared_ptr<PaddleAutoGrowth>> strategies_;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PADDLE_PADDLE_PEER_H_
