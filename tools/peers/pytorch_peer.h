#ifndef STRATA_TOOLS_PEERS_PYTORCH_PEER_H_
#define STRATA_TOOLS_PEERS_PYTORCH_PEER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "strata/platform/device.h"
#include "strata/tools/peers/address_table.h"
#include "strata/tools/peers/expandable_segment.h"
#include "strata/tools/peers/peer.h"
#include "strata/tools/peers/pytorch_stats.h"

namespace strata {

// The caching allocator of PyTorch, with or without expandable segments; the
// other settings are off, as they are when nobody sets them.
//
// Model: segments hold blocks in address order. Free blocks are in a pool for
//   blocks of up to 1 MiB or in one for larger ones, each a tree ordered by
//   stream, size and address; a request takes the smallest block of its own
//   stream that is large enough and splits it if the rest is worth it. A new
//   segment is of 2 MiB for small blocks, 20 MiB below 10 MiB, and a multiple
//   of 2 MiB above. When the device has no memory left, every segment without a
//   live block goes back, and the device is asked once more.
// Source: pytorch.md §2.1 to §2.6.
class PytorchPeer final : public Peer {
 public:
  // Errors: std::runtime_error if the device lacks virtual memory and
  //   `expandable_segments` is set.
  PytorchPeer(Device& device, bool expandable_segments);
  ~PytorchPeer() override;

  const char* name() const override {
    return expandable_ ? "peer:pytorch_expandable" : "peer:pytorch";
  }
  bool Allocate(std::size_t bytes, const Stream& stream,
                PeerBlock* block) override;
  void Free(const PeerBlock& block) override;
  // torch.cuda.empty_cache().
  void Release() override;
  // Without expandable segments.
  bool Restore(const std::vector<PeerSegment>& segments,
               std::vector<PeerBlock>* blocks) override;
  PeerStats stats() const override;
  PytorchStats pytorch_stats() const;

 private:
  struct Pool;
  // A piece of a segment: in use, free, or addresses without memory.
  struct Block {
    Stream stream;
    std::size_t bytes = 0;
    std::size_t requested_bytes = 0;  // 0 while it is not in use
    Pool* pool = nullptr;
    DevicePtr address = 0;
    bool in_use = false;
    bool is_mapped = true;
    // Neighbours in its segment; null at the ends.
    Block* previous = nullptr;
    Block* next = nullptr;
    ExpandableSegment* segment = nullptr;  // null: of a plain segment

    bool IsSplit() const { return previous != nullptr || next != nullptr; }
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct ByAddress {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    std::set<Block*, BySize> free;
    std::set<Block*, ByAddress> unmapped;
    bool is_small = false;

    PytorchStats::Pool stats_pool() const {
      return is_small ? PytorchStats::kSmall : PytorchStats::kLarge;
    }
  };

  // The set of active blocks is by their own addresses.
  static DevicePtr KeyOf(const Block* block) {
    return reinterpret_cast<DevicePtr>(block);
  }

  // Whether it is, while it is free, part of a plain segment partly in use.
  static bool IsInactiveSplit(const Block& block) {
    return block.segment == nullptr && block.IsSplit();
  }

  Block* FindFree(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* AddSegment(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* AddPlainSegment(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* NewPlainSegment(Pool& pool, const AddressRange& range,
                         const Stream& stream);
  // Makes the first `bytes` of `block`, which is larger, a block of their own.
  Block* CutFront(Block* block, std::size_t bytes);
  void MarkInUse(Block* block, std::size_t requested_bytes);
  void AddFree(Block* block);
  // Makes the pieces of `segment` out of `block`, which is all of it
  // (pytorch_restore.cc).
  void Carve(const PeerSegment& segment, Block* block,
             std::vector<PeerBlock>* blocks);
  // Cuts off what `bytes` leave over, if that is worth a block.
  Block* Trim(Block* block, std::size_t bytes);
  bool IsWorthSplitting(const Block& block, std::size_t bytes) const;
  // Adds `from` to its neighbour `into` if both are free or both unmapped.
  void Merge(Block* into, Block* from);
  void ReleaseIdle();
  void ReleaseIdle(Pool& pool);
  void ReleasePlainSegment(Block* block);

  // With expandable segments (pytorch_expandable.cc).
  Block* AddExpandable(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* FindRoom(Pool& pool, std::size_t bytes, const Stream& stream);
  bool MapBlock(Block* block, std::size_t bytes);
  void UnmapBlock(Block* block);
  Block* CutOff(const Block& block, AddressRange range);
  void ReleaseExpandableSegment(Block* block);

  Device& device_;
  const bool expandable_;
  mutable std::recursive_mutex mutex_;
  Pool small_;                          // guarded by mutex_
  Pool large_;                          // guarded by mutex_
  PytorchStats stats_;                  // guarded by mutex_
  FlatAddressMap<Block> active_;        // by KeyOf; guarded by mutex_
  std::set<DevicePtr> plain_segments_;  // addresses; guarded by mutex_
  // Guarded by mutex_.
  std::vector<std::unique_ptr<ExpandableSegment>> expandable_segments_;
  ShardedAddressMap<Block> live_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_PYTORCH_PEER_H_
