#ifndef STRATA_PLATFORM_SIM_POOL_BLOCKS_H_
#define STRATA_PLATFORM_SIM_POOL_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/free_blocks.h"
#include "strata/platform/sim/pool_space.h"
#include "strata/platform/sim/slice_marks.h"
#include "strata/platform/sim/stream_order.h"
#include "strata/platform/stream.h"

namespace strata {

// What a stream may have of the memory that was freed in streams.
//
// Source: cuda_semantics.md P4, P5.
struct ReuseRule {
  const StreamOrder& order;
  const Stream& stream;
  bool follow_dependencies = false;  // what the stream already waits for
  bool opportunistic = false;        // what is done, whoever knows
  bool with_waits = false;           // anything: the caller adds the waits

  // Whether the stream may have, as it is, what was freed at `point`.
  bool Allows(const StreamPoint& point) const;
};

// The chunks of one pool, cut into blocks that are live or free.
//
// Model: a free block remembers the point of the free it comes from, until the
//   host has waited for it; splitting copies that point. Neighbours that were
//   freed in one stream coalesce at once and have the later point, and so do
//   neighbours without a point. Others stay apart and serve a request together
//   if each of them may: so a stream's own block is not lost to it because a
//   neighbour was freed in another stream.
// Threads: externally synchronised.
// Memory: nodes of tables that are no longer needed are kept for what is next.
// Cost: that of FreeBlocks, and a look at each large enough free block that the
//   stream may not have; where no single block serves, a look at every chunk,
//   and the blocks of those that may have a row which is long enough. A wait of
//   the host: a look at every free block, if not all may have each.
// Source: cuda_semantics.md M10, D16. That a stream's blocks coalesce before
//   the host waits is assumed: kept apart, they would make `training_jittered`
//   reserve 1.69 times what is live, where an H200's pool reserves 1.01, and so
//   does this one. It reserves less than that pool for random sizes, however
//   (docs/cuda_malloc_async.md).
class PoolBlocks {
 public:
  PoolBlocks() = default;
  PoolBlocks(const PoolBlocks&) = delete;
  PoolBlocks& operator=(const PoolBlocks&) = delete;

  void AddChunk(const PoolChunk& chunk);

  // Where `bytes` may start: in the smallest free block that is large enough,
  // else in the smallest row of neighbouring ones; of equals, in the lowest.
  std::optional<DevicePtr> Find(std::uint64_t bytes, const ReuseRule& rule);
  // Makes what Find has found live. Adds the points of the frees that it comes
  // from to `points`, unless that is null.
  void Take(DevicePtr ptr, std::uint64_t bytes,
            std::vector<StreamPoint>* points);
  // Returns the bytes of the live block that starts at `ptr`, now free, or 0 if
  // there is none. Without a point, any stream may have it.
  std::uint64_t Free(DevicePtr ptr, const std::optional<StreamPoint>& point);
  // What was freed at a point that the host has waited for, any stream may have
  // from now on.
  void NoteWait(WaitedFor waited);

  // Takes out the lowest chunk of at most `most_bytes` that no block in use and
  // no pending work needs; without an order, the lowest that any stream may
  // have as a whole.
  std::optional<PoolChunk> TakeIdleChunk(const StreamOrder* order,
                                         std::uint64_t most_bytes);
  // The bytes of all chunks that TakeIdleChunk would give.
  std::uint64_t IdleBytes(const StreamOrder& order) const;

  // Of the live block that starts at `ptr`, or 0.
  std::uint64_t BlockBytes(DevicePtr ptr) const;
  // Whether one live block covers [ptr, ptr + bytes).
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const;
  // The same for a free block that work before its free, or before that of a
  // neighbour that it has joined, may still use.
  bool CoversFreed(DevicePtr ptr, std::uint64_t bytes,
                   const StreamOrder& order) const;
  // The chunk that has all of [ptr, ptr + bytes), or null.
  const PoolChunk* FindChunk(DevicePtr ptr, std::uint64_t bytes) const;

  std::uint64_t live_count() const { return live_count_; }
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t reserved_bytes() const { return reserved_bytes_; }

 private:
  struct Block;
  struct Chunk;
  struct Block {
    DevicePtr ptr = 0;
    std::uint64_t bytes = 0;
    Chunk* chunk = nullptr;
    Block* below = nullptr;  // neighbours in the chunk; null: there is none
    Block* above = nullptr;
    std::optional<StreamPoint> freed;   // nothing: any stream may have it
    FreeBlocks<Block>::Position index;  // of a free block
    bool live = false;
  };
  struct Chunk {
    explicit Chunk(const PoolChunk& taken)
        : memory(taken),
          starts(taken.bytes / kSliceBytes),
          free_bytes(taken.bytes),
          most_row_bytes(taken.bytes) {}

    PoolChunk memory;
    SliceMarks starts;       // where its blocks start
    Block* first = nullptr;  // the lowest block
    std::uint64_t live = 0;  // blocks
    std::uint64_t free_bytes;
    // No row of free blocks is longer, whoever may have them.
    std::uint64_t most_row_bytes;
  };
  using BlockMap = std::unordered_map<DevicePtr, Block>;
  using Chunks = std::vector<std::unique_ptr<Chunk>>;
  using Row = std::pair<std::uint64_t, DevicePtr>;  // its size, its start

  static bool Allows(const ReuseRule& rule, const Block& block);
  // The block that starts at `ptr`, or null.
  Block* BlockAt(DevicePtr ptr);
  const Block* BlockAt(DevicePtr ptr) const;
  // The block that has all of [ptr, ptr + bytes), or null.
  const Block* FindCovering(DevicePtr ptr, std::uint64_t bytes) const;
  std::optional<DevicePtr> FindBlock(std::uint64_t bytes,
                                     const ReuseRule& rule) const;
  std::optional<DevicePtr> FindRow(std::uint64_t bytes, const ReuseRule& rule);
  // The same for one chunk, if there is a better one than `best`.
  static void FindRowIn(Chunk* chunk, std::uint64_t bytes,
                        const ReuseRule& rule, std::optional<Row>* best);
  // The first chunk that starts above `ptr`.
  Chunks::const_iterator ChunkAfter(DevicePtr ptr) const;
  // The one that `ptr` lies in, or null.
  const Chunk* ChunkOf(DevicePtr ptr) const;
  void Index(Block* block);
  void Unindex(const Block& block);
  void CutFront(Block* block, std::uint64_t bytes);
  static bool AreOne(const Block* low, const Block* high);
  Block* Coalesce(Block* block);
  // Makes `block` and what is above it one.
  void JoinAbove(Block* block);
  // A block of the chunk that is neither linked nor indexed.
  Block* AddBlock(DevicePtr ptr, Chunk* chunk);
  void DropBlock(Block* block);
  static bool IsIdle(const Chunk& chunk, const StreamOrder* order);
  void DropChunk(Chunks::iterator chunk);

  BlockMap blocks_;  // by where they start
  Chunks chunks_;    // by address
  FreeBlocks<Block> free_;
  std::vector<BlockMap::node_type> spare_blocks_;
  std::uint64_t freed_at_point_ = 0;  // free blocks that not all may have
  std::uint64_t live_count_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_POOL_BLOCKS_H_
