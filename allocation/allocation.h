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

// What the holder of a Block knows of it; bits of Block::flags.
enum BlockFlags : std::uint8_t {
  kBlockLive = 1U << 0,      // handed out and not yet freed
  kBlockZeroSize = 1U << 1,  // holds no memory; belongs to no layer
  // Another stream than the owner's uses it; the stream-safe layer knows which.
  kBlockMarked = 1U << 2,
  // The same, and the strategy knows which.
  kBlockMarkedBelow = 1U << 3,
  // `owner` was set by the layer that made it: it is not of this chain.
  kBlockRouted = 1U << 4,
  // It is a chunk of another strategy; set by the one that lent it.
  kBlockLent = 1U << 5,
  kBlockOffset = 1U << 6,  // live, and offset_units is not 0
  // A use could be neither noted nor waited for: see lost_use.h.
  kBlockUseLost = 1U << 7,
};

// The record of one piece of memory, for the layers of a chain. A live one is
// the Allocation its user holds; a free one is a block of a strategy.
//
// Model: one record serves all layers, so that no layer needs a heap object.
//   `owner` and `requested` mean something while live, the free links while
//   free. The neighbours' side (`previous`, `next`, `is_free`) belongs to the
//   strategy's lock; `flags` and `offset_units` to whoever holds the block. It
//   writes `flags` as block_flags.h does, since a memory map reads them.
// Cost: 64 bytes, one cache line.
struct alignas(64) Block {
  std::byte* data = nullptr;
  std::size_t size = 0;
  union {
    Block* previous = nullptr;  // neighbours in address order, for strategies
    GuardRecord* guard;         // of a block that the Guard layer made
  };
  Block* next = nullptr;
  union {
    Allocator* owner;
    Block* free_previous;
  };
  union {
    std::size_t requested;
    Block* free_next;
  };
  Chunk* chunk = nullptr;       // null if the memory came from the system alone
  std::uint8_t place_kind = 0;  // a PlaceKind, of which there are few
  // Which of the strategy's pools its chunk belongs to.
  std::uint8_t pool = 0;
  std::uint16_t place_index = 0;
  bool is_free = false;    // in the free index of a strategy
  std::uint8_t flags = 0;  // BlockFlags
  // What the Aligned layer skips at the start, in kOffsetUnitBytes.
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

  // Device memory is at least this aligned (cuda_semantics.md H2).
  static constexpr std::size_t kOffsetUnitBytes = 256;

  inline Allocation* allocation();
};

// What a strategy gets from the system at once, and cuts into blocks.
//
// Cost: one cache line. All that hits read of a chunk is here, not in the
//   record of its memory, which is another line.
struct alignas(64) Chunk {
  Allocation* memory = nullptr;  // from the layer below
  Block* first = nullptr;        // lowest block; the rest follow `next`
  Chunk* previous = nullptr;     // in the strategy's list
  Chunk* next = nullptr;
  Chunk* idle_previous = nullptr;  // in the strategy's list of idle chunks
  Chunk* idle_next = nullptr;
  // The strategy, if it lends blocks of the chunk to others.
  ChunkHolder* owner = nullptr;
  std::uint32_t loans = 0;  // blocks of it that are lent
  // The number of recalls of spare loans before it was last taken, when idle.
  std::uint16_t recalls_before_use = 0;
  bool is_loan = false;   // its memory is a block of another strategy's chunk
  bool is_range = false;  // addresses, of which a part is mapped
};

// A piece of memory that a user holds.
//
// Threads: reading from any thread. Freeing: see Allocator.
// Lifetime: until it is freed, also when the facade is gone.
class Allocation final : private Block {
 public:
  // Null exactly for a request of 0 bytes. Device addresses are not readable
  // from the host.
  void* data() const { return Block::data + offset_bytes(); }
  // At least what was asked for: rounded up by the strategy. Bytes.
  std::size_t size() const { return Block::size - offset_bytes(); }
  std::size_t requested_bytes() const { return Block::requested; }
  Place place() const { return Block::place(); }
  // The outermost layer: the one that frees it. Of an allocation of 0 bytes,
  // which no layer has to free: valid only as long as the chain it came from.
  Allocator* owner() const { return Block::owner; }
  // The address the system gave for the chunk that holds this memory.
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

// Frees through Allocation::owner(). Not null.
void FreeAllocation(Allocation* allocation) noexcept;

// Stateless, so a pointer is one word; and inline, so that its address is not
// asked for and it can stay in a register.
struct AllocationDeleter {
  void operator()(Allocation* allocation) const noexcept {
    FreeAllocation(allocation);
  }
};

using AllocationPtr = std::unique_ptr<Allocation, AllocationDeleter>;

}  // namespace strata

#endif  // STRATA_ALLOCATION_ALLOCATION_H_
