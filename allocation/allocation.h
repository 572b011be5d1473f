#ifndef STRATA_ALLOCATION_ALLOCATION_H_
#define STRATA_ALLOCATION_ALLOCATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/platform/place.h"

namespace strata {

class Allocator;
class Allocation;
class ChunkHolder;
struct Chunk;
struct GuardRecord;

// State of a Block, written by its holder; bits of Block::flags.
enum BlockFlags : std::uint8_t {
  kBlockLive = 1U << 0,      // allocated and not yet freed
  kBlockZeroSize = 1U << 1,  // holds no memory; belongs to no layer
  // Used by a stream other than the stream of its owner. The stream-safe layer
  // records which streams.
  kBlockMarked = 1U << 2,
  // Like kBlockMarked, but the strategy records which streams.
  kBlockMarkedBelow = 1U << 3,
  // `owner` was set by the layer that made the block, and is not of this chain.
  kBlockRouted = 1U << 4,
  // A chunk of another strategy. Set by the strategy that lent it.
  kBlockLent = 1U << 5,
  kBlockOffset = 1U << 6,  // live, and offset_units is not 0
  // A use of the block could be neither recorded nor waited for; see
  // lost_use.h.
  kBlockUseLost = 1U << 7,
};

// The record of one piece of memory, for the layers of a chain. A live block is
// the Allocation that its user holds. A free block belongs to a strategy.
//
// Model: one record serves all layers, so that no layer needs a heap object.
//   `owner` and `requested` are valid while the block is live, the free links
//   while it is free.
// Threads: the lock of the strategy guards `previous`, `next` and `is_free`.
//   The holder of the block owns `flags` and `offset_units`. It writes `flags`
//   with the functions of block_flags.h, because a memory map reads them
//   concurrently.
// Cost: 64 bytes, one cache line.
struct alignas(64) Block {
  std::byte* data = nullptr;
  std::size_t size = 0;
  union {
    Block* previous = nullptr;  // neighbours in address order, for strategies
    GuardRecord* guard;         // of a block made by the Guard layer
  };
  Block* next = nullptr;
  union {
    Allocator* owner;
    Block* free_previous;
    std::uint64_t tick;  // moment of the free, of a block that waits for work
  };
  union {
    std::size_t requested;
    Block* free_next;
  };
  Chunk* chunk = nullptr;  // null if the memory came from the system directly
  std::uint8_t place_kind = 0;  // a PlaceKind
  // Index of the pool of the strategy that the chunk belongs to.
  std::uint8_t pool = 0;
  std::uint16_t place_index = 0;
  bool is_free = false;    // in the free index of a strategy
  std::uint8_t flags = 0;  // BlockFlags
  // Bytes that the Aligned layer skips at the start, in units of
  // kOffsetUnitBytes.
  std::uint16_t offset_units = 0;

  Block() : owner(nullptr), requested(0) {}

  Place place() const { return {PlaceKind{place_kind}, place_index}; }
  void set_place(Place place) {
    place_kind = static_cast<std::uint8_t>(place.kind);
    place_index = place.index;
  }
  std::size_t offset_bytes() const {
    return std::size_t{offset_units} * kOffsetUnitBytes;
  }

  // Minimum alignment of device memory (cuda_semantics.md H2). Bytes.
  static constexpr std::size_t kOffsetUnitBytes = 256;

  inline Allocation* allocation();
};

// A piece of memory that a strategy acquires from the system and splits into
// blocks.
//
// Cost: one cache line. It holds all chunk data that a hit reads. The record of
//   the chunk's memory is another line.
struct alignas(64) Chunk {
  Allocation* memory = nullptr;  // from the layer below
  Block* first = nullptr;        // lowest block; the others follow `next`
  Chunk* previous = nullptr;     // in the strategy's list
  Chunk* next = nullptr;
  Chunk* idle_previous = nullptr;  // in the strategy's list of idle chunks
  Chunk* idle_next = nullptr;
  // The strategy, if it lends blocks of the chunk to other strategies.
  ChunkHolder* owner = nullptr;
  std::uint32_t loans = 0;  // number of blocks that are lent
  // Number of recalls of spare loans before the chunk was last used, when idle.
  std::uint16_t recalls_before_use = 0;
  // Its memory is a block of another strategy's chunk.
  bool is_loan : 1 = false;
  bool is_range : 1 = false;  // an address range that is mapped in part
  // Memory changes its lane only after all work on that memory is done; see
  // SharedOrder.
  std::uint8_t lane = 0;
};

// A piece of memory that a user holds.
//
// Threads: any thread may read it. For the free see Allocator.
// Lifetime: until it is freed, even after the facade is destroyed.
class Allocation final : private Block {
 public:
  // Null if and only if the request was for 0 bytes. The host cannot read
  // device addresses.
  void* data() const { return Block::data + offset_bytes(); }
  // At least requested_bytes(); the strategy rounds up. Bytes.
  std::size_t size() const { return Block::size - offset_bytes(); }
  std::size_t requested_bytes() const { return Block::requested; }
  Place place() const { return Block::place(); }
  // The outermost layer, which frees the allocation. For an allocation of 0
  // bytes, which no layer frees, it is valid only while its chain exists.
  Allocator* owner() const { return Block::owner; }
  // Address that the system returned for the chunk that holds this memory.
  inline void* base() const;

  // For layers.
  Block* block() { return this; }
  const Block* block() const { return this; }

 private:
  friend struct Block;
  friend class RecordSlab;
  Allocation() = default;
};

static_assert(sizeof(Allocation) == 64, "one cache line");
static_assert(sizeof(Chunk) == 64, "one cache line");

inline Allocation* Block::allocation() {
  return static_cast<Allocation*>(this);
}

inline void* Allocation::base() const {
  const Block* block = this;
  while (block->chunk != nullptr) block = block->chunk->memory;
  return block->data;
}

// Frees `allocation` through Allocation::owner(). `allocation` is not null.
void FreeAllocation(Allocation* allocation) noexcept;

// Stateless, so that an AllocationPtr is one word. Inline, so that the compiler
// need not take the address of the pointer and can keep it in a register.
struct AllocationDeleter {
  void operator()(Allocation* allocation) const noexcept {
    FreeAllocation(allocation);
  }
};

using AllocationPtr = std::unique_ptr<Allocation, AllocationDeleter>;

}  // namespace strata

#endif  // STRATA_ALLOCATION_ALLOCATION_H_
