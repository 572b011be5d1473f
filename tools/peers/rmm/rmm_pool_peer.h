#ifndef STRATA_TOOLS_PEERS_RMM_RMM_POOL_PEER_H_
#define STRATA_TOOLS_PEERS_RMM_RMM_POOL_PEER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "strata/platform/device.h"
#include "strata/tools/peers/peer.h"
#include "strata/tools/peers/rmm/rmm_free_list.h"

namespace strata::peers {

struct RmmPoolOptions {
  std::size_t initial_bytes = 0;  // allocated by the constructor
  // Limit of the pool; none: the memory of the device.
  std::optional<std::size_t> maximum_bytes = std::nullopt;
};

// The pool memory resource of RMM.
//
// Model: every stream has a list of free blocks and an event, recorded at each
//   free. A request is served in this order:
//   1. the best fit of its own stream's list;
//   2. the best fit of another stream's list, after a wait for that stream's
//      event;
//   3. after merging the other lists into its own, one by one;
//   4. by growth: as much as the pool already has, or with a maximum half of
//      the rest; whenever the device refuses, half of that size.
//
//   No memory is released to the device.
// Source: rmm_cccl_umpire.md §1.3.
class RmmPoolPeer final : public Peer {
 public:
  // Errors: std::bad_alloc if the device has less than `initial_bytes`.
  RmmPoolPeer(Device& device, const RmmPoolOptions& options);
  ~RmmPoolPeer() override;

  const char* name() const override { return "peer:rmm_pool"; }
  bool Allocate(std::size_t bytes, const Stream& stream,
                PeerBlock* block) override;
  void Free(const PeerBlock& block) override;
  PeerStats stats() const override;

 private:
  struct StreamEvent {
    Stream stream;
    Event event;

    // The lists of other streams are searched in the order of their events.
    bool operator<(const StreamEvent& other) const {
      return event.value < other.event.value;
    }
  };
  using FreeLists = std::map<StreamEvent, RmmFreeList>;

  const StreamEvent& EventOf(const Stream& stream);
  RmmBlock FindBlock(std::size_t bytes, const StreamEvent& mine);
  // Takes a block from the list of another stream; the list is not merged.
  RmmBlock Steal(std::size_t bytes, const StreamEvent& mine);
  // Takes a block from this stream's list, after merging other lists into it
  // until one fits.
  RmmBlock TakeOver(std::size_t bytes, const StreamEvent& mine);
  // The growth that the pool tries first; 0: it must not grow.
  std::size_t Growth(std::size_t bytes) const;
  RmmBlock Grow(std::size_t bytes);
  RmmBlock NewChunk(std::size_t bytes);
  // Adds the part of `block` after the first `bytes` to `list`.
  static RmmBlock Split(const RmmBlock& block, std::size_t bytes,
                        RmmFreeList& list);

  Device& device_;
  const RmmPoolOptions options_;
  mutable std::mutex mutex_;
  FreeLists free_;  // guarded by mutex_
  // By the stream's identity; guarded by mutex_.
  std::unordered_map<std::uint64_t, StreamEvent> events_;
  std::set<DevicePtr> chunks_;  // chunks from the device; guarded by mutex_
  PeerStats stats_;             // guarded by mutex_
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_RMM_RMM_POOL_PEER_H_
