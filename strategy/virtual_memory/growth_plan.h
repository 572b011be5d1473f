#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_GROWTH_PLAN_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_GROWTH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/virtual_memory/address_range.h"
#include "strata/strategy/virtual_memory/free_handles.h"

namespace strata {

// The addresses of a requested block, in a run of free blocks and holes.
struct GrowthTarget {
  AddressRange* range = nullptr;  // null: no run is large enough
  Block* first = nullptr;         // the lowest block of the run
  std::byte* begin = nullptr;     // Begin of the requested block.
  std::byte* end = nullptr;
  std::size_t missing_bytes = 0;  // Bytes to map, whole pages.
  std::size_t run_bytes = 0;      // SIZE_MAX: the run ends its range

  bool Overlaps(const PageHandle& handle) const {
    return handle.base < end && handle.end() > begin;
  }
};

// Chooses the addresses for a block of `size` bytes that need the fewest bytes
// to be mapped. Among equals: the smaller run, then the lower address. `holes`
// are the holes of one arena. With `only_tails`, considers only runs at the end
// of their range.
//
// Cost: O(holes and the square of the blocks of each run).
// Source: memory_policy.md §5.3.
GrowthTarget FindGrowthTarget(const BlockChain& holes, std::size_t size,
                              bool only_tails);

struct GrowthMeans {
  std::size_t budget_bytes = 0;   // Most bytes to create.
  std::size_t handle_bytes = 0;   // Most bytes of a new handle.
  std::size_t quantum_bytes = 0;  // Fewest bytes to create at a tail.
  bool prefer_free = false;       // Move free handles before creating any.
};

struct GrowthPiece {
  // State of the mapping that a handle had before it moved.
  enum class Old : std::uint8_t {
    kUsable,
    kGone,
    kStuck,  // Mapped, but without access; the driver refuses to unmap it.
  };

  std::byte* at = nullptr;
  std::size_t bytes = 0;
  // The handle that moves; null: a handle is created.
  FreeHandle* from = nullptr;
  PageHandle* handle = nullptr;  // Null until it is created.
  // State of the new and the old mapping, after the driver calls or an undo.
  bool is_mapped = false;
  Old old = Old::kUsable;

  bool is_new() const { return from == nullptr; }
};

// The steps of one growth: its addresses, and the handles to map there.
struct GrowthPlan {
  GrowthTarget target;
  FreeHandles free_handles;         // Sorted.
  std::vector<GrowthPiece> pieces;  // Sorted by address; they tile each hole.
  std::size_t new_bytes = 0;
  std::size_t moved_bytes = 0;
  std::size_t short_bytes = 0;  // Bytes that the plan lacks.
  std::byte* low = nullptr;
  std::byte* high = nullptr;
  Block* region = nullptr;         // The pending block at `low`.
  RecordSlab::List spare;          // For the splits of the commit.
  std::size_t records = 0;         // Records needed to split blocks.
  bool lacks_host_memory = false;  // The vectors are too short.

  void Clear();
};

// Chooses the pieces. False if memory is short (short_bytes), or if the vector
// has no room.
//
// Cost: O(pieces log handles).
bool ChoosePieces(const GrowthMeans& means, GrowthPlan& plan);

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_GROWTH_PLAN_H_
