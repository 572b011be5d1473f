#ifndef STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_PEER_H_
#define STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_PEER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strata/platform/device.h"
#include "strata/tools/peers/peer.h"
#include "strata/tools/peers/pytorch/address_table.h"
#include "strata/tools/peers/pytorch/expandable_segment.h"
#include "strata/tools/peers/pytorch/pytorch_settings.h"
#include "strata/tools/peers/pytorch/pytorch_stats.h"

namespace strata::peers {

// The caching allocator of PyTorch, with PyTorch's default settings unless
// `settings` changes them.
//
// Model: segments hold blocks in address order. Free blocks are in a pool for
//   blocks of up to 1 MiB or in one for larger ones, each a tree ordered by
//   stream, size and address. A request takes the smallest sufficient block of
//   its own stream, and splits it if the rest is worth it. A new segment has 2
//   MiB for small blocks, 20 MiB for requests below 10 MiB, and a multiple of 2
//   MiB above. When the device has no memory left, every segment without a live
//   block is released, and the device is called once more.
//   With a limit on splits, idle blocks from that limit on are released before
//   that, only as many as the request needs. With a cap and a threshold, idle
//   segments that many searches did not need are released before a new segment
//   is created.
// Source: pytorch.md §2.1 to §2.6.
class PytorchPeer final : public Peer {
 public:
  // Errors: std::runtime_error if the device lacks virtual memory and
  //   `expandable_segments` is set.
  explicit PytorchPeer(Device& device, const PytorchSettings& settings = {},
                       std::string name = "peer:pytorch");
  ~PytorchPeer() override;

  const char* name() const override { return name_.c_str(); }
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
  // A piece of a segment: in use, free, or unmapped addresses.
  struct Block {
    Stream stream;
    std::size_t bytes = 0;
    std::size_t requested_bytes = 0;  // 0 while not in use
    Pool* pool = nullptr;
    DevicePtr address = 0;
    bool in_use = false;
    bool is_mapped = true;
    // Number of searches of the pool when the block became free.
    std::uint64_t searches_before = 0;
    // Neighbours in its segment; null at the ends.
    Block* previous = nullptr;
    Block* next = nullptr;
    ExpandableSegment* segment = nullptr;  // null: plain segment

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
    std::uint64_t searches = 0;  // for free blocks

    PytorchStats::Pool stats_pool() const {
      return is_small ? PytorchStats::kSmall : PytorchStats::kLarge;
    }
  };

  // Active blocks are keyed by the addresses of their records.
  static DevicePtr KeyOf(const Block* block) {
    return reinterpret_cast<DevicePtr>(block);
  }

  // Whether a free block is a whole plain segment.
  static bool IsIdleSegment(const Block& block) {
    return block.segment == nullptr && !block.IsSplit();
  }
  static std::uint64_t AgeOf(const Block& block) {
    return block.pool->searches - block.searches_before;
  }
  std::size_t reserved_bytes() const { return stats_.ForPeer().reserved_bytes; }

  // Whether a free block is a part of a plain segment that is partly in use.
  static bool IsInactiveSplit(const Block& block) {
    return block.segment == nullptr && block.IsSplit();
  }

  Block* FindFree(Pool& pool, std::size_t bytes, const Stream& stream);
  // Whether the limit on splits lets `block` serve a request of `bytes`.
  bool MayServe(const Block& block, std::size_t bytes) const;
  Block* AddSegment(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* AddPlainSegment(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* NewPlainSegment(Pool& pool, const AddressRange& range,
                         const Stream& stream);
  // Splits off the first `bytes` of `block`, which is larger.
  Block* CutFront(Block* block, std::size_t bytes);
  void MarkInUse(Block* block, std::size_t requested_bytes);
  void AddFree(Block* block);
  // Creates the blocks of `segment` from `block`, which is all of it
  // (pytorch_restore.cc).
  void Carve(const PeerSegment& segment, Block* block,
             std::vector<PeerBlock>* blocks);
  // Splits off the rest after `bytes`, if it is worth a block.
  Block* Trim(Block* block, std::size_t bytes);
  bool IsWorthSplitting(const Block& block, std::size_t bytes) const;
  // Adds `from` to its neighbour `into` if both are free or both unmapped.
  void Merge(Block* into, Block* from);

  // Releases (pytorch_reclaim.cc).
  void ReleaseIdle();
  void ReleaseIdle(Pool& pool);
  // Releases idle blocks from the limit on splits on, until `bytes` are
  // released. False if there are too few.
  bool ReleaseOversize(Pool& pool, std::size_t bytes, const Stream& stream);
  // Releases large idle segments that are older than the mean age, until less
  // than the threshold is reserved or none is older.
  void CollectGarbage();
  void ReleasePlainSegment(Block* block);

  // With expandable segments (pytorch_expandable.cc).
  Block* AddExpandable(Pool& pool, std::size_t bytes, const Stream& stream);
  Block* FindRoom(Pool& pool, std::size_t bytes, const Stream& stream);
  bool MapBlock(Block* block, std::size_t bytes);
  void UnmapBlock(Block* block);
  Block* CutOff(const Block& block, AddressRange range);
  void ReleaseExpandableSegment(Block* block);

  Device& device_;
  const PytorchSettings settings_;
  const std::string name_;
  std::size_t cap_bytes_ = 0;  // cap on reserved bytes; 0: none
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

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_PEER_H_
