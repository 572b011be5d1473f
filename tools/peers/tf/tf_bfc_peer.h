#ifndef STRATA_TOOLS_PEERS_TF_TF_BFC_PEER_H_
#define STRATA_TOOLS_PEERS_TF_TF_BFC_PEER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "strata/platform/device.h"
#include "strata/tools/peers/peer.h"
#include "strata/tools/peers/tf/tf_bfc_regions.h"

namespace strata::peers {

struct TfBfcOptions {
  std::size_t memory_limit_bytes = 0;  // 0: all memory of the device
  bool allow_growth = true;        // false: the first call allocates all of it
  bool garbage_collection = true;  // releases regions without a block in use
  bool timestamps = false;         // stamps frees, for `freed_before`
};

// The peaks among the statistics of the original (R47).
struct TfBfcPeaks {
  std::uint64_t in_use_bytes = 0;
  std::uint64_t allocation_bytes = 0;
};

// The BFC allocator of TensorFlow.
//
// Model: regions from the device are divided into chunks. Free chunks are in 21
//   bins by powers of two from 256 bytes, each a tree ordered by size and
//   address. A request takes the first sufficient chunk, and splits it only if
//   half of it or 128 MiB would be wasted. Regions double in size up to the
//   limit. If the device refuses one, the size is reduced by a tenth,
//   repeatedly. One pool serves all streams: the caller's single compute stream
//   orders them.
// Source: tf_bfc.md R1 to R40; the numbers in the code name its rules.
class TfBfcPeer final : public Peer {
 public:
  TfBfcPeer(Device& device, const TfBfcOptions& options);
  ~TfBfcPeer() override;

  const char* name() const override { return "peer:tf_bfc"; }
  bool Allocate(std::size_t bytes, const Stream& stream,
                PeerBlock* block) override;
  void Free(const PeerBlock& block) override;
  PeerStats stats() const override;
  TfBfcPeaks peaks() const;

  // With timestamps: the n-th free has stamp n. Returns 0 if no chunk has been
  // free since `freed_before` or earlier; 0 accepts any chunk.
  DevicePtr AllocateRaw(std::size_t bytes, std::uint64_t freed_before);
  void DeallocateRaw(DevicePtr address);
  // Chunks freed before `count` may be used and joined freely from now on.
  void SetSafeFrontier(std::uint64_t count);

  // State of the rules, for tests: region sizes in address order, the minimal
  // size of the next region, and the address and stamp of the chunks that wait
  // to be joined.
  std::vector<std::size_t> RegionBytes() const;
  std::size_t growth_hint_bytes() const;
  std::vector<std::pair<DevicePtr, std::uint64_t>> Waiting() const;

 private:
  using Handle = TfBfcRegions::Handle;
  static constexpr Handle kNone = TfBfcRegions::kNone;
  static constexpr int kBins = 21;
  static constexpr int kNoBin = -1;
  static constexpr std::int64_t kFree = -1;

  struct Chunk {
    std::size_t bytes = 0;
    std::size_t requested_bytes = 0;
    std::int64_t allocation_id = kFree;
    DevicePtr address = 0;
    // Neighbours in the region, or kNone. An unused slot links to the next one.
    Handle previous = kNone;
    Handle next = kNone;
    int bin = kNoBin;  // kNoBin while in use
    std::uint64_t freed_at = 0;

    bool in_use() const { return allocation_id != kFree; }
  };
  // By size, then address.
  class ChunkLess {
   public:
    explicit ChunkLess(const std::vector<Chunk>* chunks) : chunks_(chunks) {}
    bool operator()(Handle a, Handle b) const {
      const Chunk& first = (*chunks_)[a];
      const Chunk& second = (*chunks_)[b];
      if (first.bytes != second.bytes) return first.bytes < second.bytes;
      return first.address < second.address;
    }

   private:
    const std::vector<Chunk>* chunks_;
  };
  using Bin = std::set<Handle, ChunkLess>;

  static int BinOf(std::size_t bytes);
  DevicePtr AllocateLocked(std::size_t bytes, std::uint64_t freed_before);
  void Deallocate(DevicePtr address);
  DevicePtr Find(std::size_t rounded, std::size_t bytes,
                 std::uint64_t freed_before);
  void Split(Handle handle, std::size_t bytes);
  Handle NewChunk();
  void DeleteChunk(Handle handle);
  void InsertIntoBin(Handle handle);
  void RemoveFromBin(Handle handle);
  // Adds `second`, the right neighbour, to `first`; neither is in a bin.
  void Merge(Handle first, Handle second);
  bool IsJoinable(Handle handle, bool ignores_stamps) const;
  // Joins a chunk that is in no bin with its free neighbours.
  Handle Coalesce(Handle handle, bool ignores_stamps);

  // Growth (tf_bfc_growth.cc).
  bool Extend(std::size_t rounded);
  // Tries smaller and smaller sizes; returns the region, or 0 bytes.
  TfBfcRegions::Region TakeFromDevice(std::size_t bytes, std::size_t least);
  bool FreeIdleRegions(std::size_t rounded);
  bool IsIdle(const TfBfcRegions::Region& region) const;
  void FreeRegion(const TfBfcRegions::Region& region);

  // Timestamps (tf_bfc_growth.cc). Joins waiting chunks with a safe stamp. If
  // `required` is not 0, joins any waiting chunk until one has that many bytes,
  // and returns whether one does.
  bool MergeStamped(std::size_t required);
  std::vector<DevicePtr> TakeMergeable(bool takes_all);

  Device& device_;
  const TfBfcOptions options_;
  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::vector<Chunk> chunks_;
  Handle unused_ = kNone;  // first unused slot of chunks_
  std::vector<Bin> bins_;
  TfBfcRegions regions_;
  std::size_t hint_bytes_;  // minimal size of the next region
  std::int64_t next_id_ = 1;
  std::uint64_t frees_ = 0;  // counted with timestamps only
  std::uint64_t safe_frontier_ = 0;
  // freed with a stamp, in order of their frees
  std::deque<DevicePtr> waiting_;
  PeerStats stats_;
  TfBfcPeaks peaks_;
  // Notified at every free, for requests that would wait (R45).
  std::mutex retry_mutex_;
  std::condition_variable freed_;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_TF_TF_BFC_PEER_H_
