#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_GROWTH_PLAN_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_GROWTH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/strategy/open_blocks.h"
#include "strata/strategy/virtual_memory/address_range.h"
#include "strata/strategy/virtual_memory/free_handles.h"

namespace strata {

// The addresses of a block to serve, in a run of free blocks and holes.
struct GrowthTarget {
  AddressRange* range = nullptr;  // null: no run is large enough
  Block* first = nullptr;         // the lowest block of the run
  std::byte* begin = nullptr;     // of the block to serve
  std::byte* end = nullptr;
  std::size_t missing_bytes = 0;  // to be mapped, whole pages
  std::size_t run_bytes = 0;      // SIZE_MAX: the run ends its range
};

// Chooses the addresses for a block of `size` bytes where the fewest bytes must
// be mapped, in the smaller run and at the lower address among equals. `holes`
// are those of an arena. With `only_tails`, runs that end their range.
//
// Cost: O(holes and the square of the blocks of each run).
// Source: memory_policy.md §5.3.
GrowthTarget FindGrowthTarget(const BlockChain& holes, std::size_t size,
                              bool only_tails);

// How a growth may obtain the memory that it maps.
struct GrowthMeans {
  std::size_t budget_bytes = 0;   // that may be created
  std::size_t handle_bytes = 0;   // of a new handle, at most
  std::size_t quantum_bytes = 0;  // to create at a tail, at least
  bool prefer_free = false;       // move free handles before creating any
};

// One mapping of a growth.
struct GrowthPiece {
  // The mapping that a handle had before it moved.
  enum class Old : std::uint8_t {
    kUsable,
    kGone,
    kStuck,  // mapped, but without access; the driver refuses to unmap it
  };

  std::byte* at = nullptr;
  std::size_t bytes = 0;
  FreeHandle* from = nullptr;    // the handle that moves; null: one is created
  PageHandle* handle = nullptr;  // null until it is created
  // The state of the two mappings after the driver calls, or after an undo.
  bool is_mapped = false;
  Old old = Old::kUsable;

  bool is_new() const { return from == nullptr; }
};

// The steps of one growth: its addresses, and the handles that it maps there.
struct GrowthPlan {
  GrowthTarget target;
  FreeHandles free_handles;         // sorted
  std::vector<GrowthPiece> pieces;  // sorted by address; they tile each hole
  std::size_t new_bytes = 0;
  std::size_t moved_bytes = 0;
  std::size_t short_bytes = 0;  // the bytes that it lacks
  // All addresses that it touches.
  std::byte* low = nullptr;
  std::byte* high = nullptr;
  Block* region = nullptr;         // the pending block at `low`
  RecordList spare;                // for the cuts of the commit
  std::size_t records = 0;         // that it takes to cut blocks
  bool lacks_host_memory = false;  // the vectors are too short

  void Clear();
};

// Chooses the pieces for the target of `plan`. False if memory is short: see
// short_bytes; or if the vector of pieces has no room for one more.
//
// Cost: O(pieces log handles).
bool ChoosePieces(const GrowthMeans& means, GrowthPlan& plan);

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_GROWTH_PLAN_H_
