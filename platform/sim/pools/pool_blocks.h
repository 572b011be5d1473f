#ifndef STRATA_PLATFORM_SIM_POOLS_POOL_BLOCKS_H_
#define STRATA_PLATFORM_SIM_POOLS_POOL_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/pools/free_blocks.h"
#include "strata/platform/sim/pools/pool_space.h"
#include "strata/platform/sim/pools/slice_marks.h"
#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// The points of frees after which a stream may reuse the memory.
//
// Source: cuda_semantics.md P4, P5.
struct ReuseRule {
  const StreamOrder& order;
  const Stream& stream;
  bool follow_dependencies = false;  // points that the stream waits for
  bool opportunistic = false;        // points that are reached
  bool with_waits = false;           // all points: the caller adds the waits

  // True if the stream may reuse memory freed at `point` without a further
  // wait.
  bool Allows(const StreamPoint& point) const;
};

// The chunks of one pool, split into live and free blocks.
//
// Model: a free block stores the point of its free until the host has waited
//   for that point. A split copies the point.
//   Neighbours that were freed in one stream coalesce at once, with the later
//   point. Neighbours without a point coalesce too. Others stay separate, and
//   serve a request together if the stream may reuse each of them. So a stream
//   can always reuse its own block, even if a neighbour was freed in another
//   stream.
// Threads: externally synchronised.
// Memory: unused nodes of tables are kept for later blocks.
// Cost: as FreeBlocks, plus a check of each large enough free block that the
//   stream may not reuse. If no single block serves: a visit of every chunk,
//   and of the blocks of chunks that may have a long enough row. A wait of the
//   host: a visit of every free block, if any has a point.
// Source: cuda_semantics.md M10, D16. The early coalescing of a stream's blocks
//   is an assumption: without it `training_jittered` would reserve 1.69 times
//   its live bytes. An H200's pool and this one reserve 1.01 times. For random
//   sizes this pool reserves less than the H200's
//   (docs/rules/cuda_malloc_async.md).
class PoolBlocks {
 public:
  PoolBlocks() = default;
  PoolBlocks(const PoolBlocks&) = delete;
  PoolBlocks& operator=(const PoolBlocks&) = delete;

  void AddChunk(const PoolChunk& chunk);

  // Finds the start for `bytes`: in the smallest sufficient free block, else in
  // the smallest sufficient row of neighbouring ones; among equals, in the
  // lowest.
  std::optional<DevicePtr> Find(std::uint64_t bytes, const ReuseRule& rule);
  // Allocates the place that Find returned. Appends the points of the frees
  // that it comes from to `points`, unless that is null.
  void Take(DevicePtr ptr, std::uint64_t bytes,
            std::vector<StreamPoint>* points);
  // Frees the live block that starts at `ptr` and returns its bytes; 0 if there
  // is none. Without a point, any stream may reuse it.
  std::uint64_t Free(DevicePtr ptr, const std::optional<StreamPoint>& point);
  // The host has waited: any stream may now reuse memory whose point `waited`
  // confirms.
  void NoteWait(WaitedFor waited);

  // Removes the lowest chunk of at most `most_bytes` that no live block and no
  // pending work needs. Without an order: the lowest chunk that any stream may
  // reuse as a whole.
  std::optional<PoolChunk> TakeIdleChunk(const StreamOrder* order,
                                         std::uint64_t most_bytes);
  // The bytes of all chunks that TakeIdleChunk could return.
  std::uint64_t IdleBytes(const StreamOrder& order) const;

  // Bytes of the live block that starts at `ptr`, or 0.
  std::uint64_t BlockBytes(DevicePtr ptr) const;
  // True if one live block covers [ptr, ptr + bytes).
  bool Covers(DevicePtr ptr, std::uint64_t bytes) const;
  // True if a free block covers the range and work submitted before its free
  // may still use it. If the block was joined with neighbours, this includes
  // the work before their frees.
  bool CoversFreed(DevicePtr ptr, std::uint64_t bytes,
                   const StreamOrder& order) const;
  // The chunk that contains all of [ptr, ptr + bytes), or null.
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
    Block* below = nullptr;  // neighbours in the chunk; null if none
    Block* above = nullptr;
    std::optional<StreamPoint> freed;   // nullopt: any stream may reuse it
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
    SliceMarks starts;       // the starts of its blocks
    Block* first = nullptr;  // the lowest block
    std::uint64_t live = 0;  // blocks
    std::uint64_t free_bytes;
    // Upper bound for the bytes of any row of free blocks, for any stream.
    std::uint64_t most_row_bytes;
  };
  using BlockMap = std::unordered_map<DevicePtr, Block>;
  using Chunks = std::vector<std::unique_ptr<Chunk>>;
  using Row = std::pair<std::uint64_t, DevicePtr>;  // size, start

  static bool Allows(const ReuseRule& rule, const Block& block);
  // The block that starts at `ptr`, or null.
  Block* BlockAt(DevicePtr ptr);
  const Block* BlockAt(DevicePtr ptr) const;
  // The block that contains all of [ptr, ptr + bytes), or null.
  const Block* FindCovering(DevicePtr ptr, std::uint64_t bytes) const;
  std::optional<DevicePtr> FindBlock(std::uint64_t bytes,
                                     const ReuseRule& rule) const;
  std::optional<DevicePtr> FindRow(std::uint64_t bytes, const ReuseRule& rule);
  // Like FindRow, for one chunk. Replaces `best` by a better row, if any.
  static void FindRowIn(Chunk* chunk, std::uint64_t bytes,
                        const ReuseRule& rule, std::optional<Row>* best);
  // The first chunk that starts above `ptr`.
  Chunks::const_iterator ChunkAfter(DevicePtr ptr) const;
  // The chunk that contains `ptr`, or null.
  const Chunk* ChunkOf(DevicePtr ptr) const;
  void Index(Block* block);
  void Unindex(const Block& block);
  void CutFront(Block* block, std::uint64_t bytes);
  static bool AreOne(const Block* low, const Block* high);
  Block* Coalesce(Block* block);
  // Joins `block` with the block above it.
  void JoinAbove(Block* block);
  // A block of the chunk that is neither linked nor indexed.
  Block* AddBlock(DevicePtr ptr, Chunk* chunk);
  void DropBlock(Block* block);
  static bool IsIdle(const Chunk& chunk, const StreamOrder* order);
  void DropChunk(Chunks::iterator chunk);

  BlockMap blocks_;  // by start
  Chunks chunks_;    // by address
  FreeBlocks<Block> free_;
  std::vector<BlockMap::node_type> spare_blocks_;
  std::uint64_t freed_at_point_ = 0;  // free blocks with a point
  std::uint64_t live_count_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_POOLS_POOL_BLOCKS_H_
