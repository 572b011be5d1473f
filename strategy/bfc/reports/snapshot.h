#ifndef STRATA_STRATEGY_BFC_REPORTS_SNAPSHOT_H_
#define STRATA_STRATEGY_BFC_REPORTS_SNAPSHOT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/platform/place.h"
#include "strata/strategy/bfc/arena/geometry.h"

namespace strata {

// The state of a BfcAllocator at one moment, for reports. Made under its lock,
// rendered without it. Sizes in bytes.
struct BfcSnapshot {
  struct ChunkState {
    std::uintptr_t address = 0;
    std::size_t size = 0;
    std::size_t requested_bytes = 0;  // 0 while free
    int bin = -1;                     // Bin of a free chunk; -1 while in use.
    bool in_use = false;
    bool deferred = false;  // In use, but freed: see BlockState::kDeferred.
    std::int64_t allocation_id = -1;   // -1 while free
    std::uint64_t freed_at_count = 0;  // Count of the timing counter; 0: none.
    std::uint64_t action_count = 0;  // Number of the call that made this state.
    std::string annotation;     // Annotation of the allocation, if recorded.
    std::string op_name;        // AnnotationOp(), if recorded.
    std::int64_t step_id = -1;  // Step, if recorded; -1: none.
  };
  struct RegionState {
    std::uintptr_t address = 0;
    std::size_t size = 0;
    std::size_t first_chunk = 0;  // index into `chunks`
    std::size_t chunk_count = 0;
  };
  // The bytes in use after an action, oldest first.
  struct SizeAt {
    std::uint64_t action_count = 0;
    std::size_t in_use_bytes = 0;
  };
  // tf_bfc.md R47.
  struct Numbers {
    std::uint64_t num_allocs = 0;
    std::size_t bytes_in_use = 0;  // Whole chunks, not requests.
    std::size_t peak_bytes_in_use = 0;
    std::size_t largest_alloc_size =
        0;  // The largest chunk that was allocated.
    std::size_t bytes_limit = 0;
    std::size_t bytes_reserved = 0;  // Reserved without a chunk: always 0 here.
    std::size_t peak_bytes_reserved = 0;
    std::size_t largest_free_block_bytes = 0;
    std::size_t pool_bytes = 0;  // Bytes in regions.
    std::size_t peak_pool_bytes = 0;
    std::size_t peak_allocated_bytes =
        0;  // Peak of bytes in use plus reserved.
  };

  std::string allocator_name;
  Place place;
  // The failed request that is the reason for this snapshot, rounded; 0: none.
  std::size_t refused_bytes = 0;
  Numbers numbers;
  std::size_t memory_limit_bytes = 0;
  std::size_t growth_hint_bytes = 0;  // Size of the next region.
  bool has_timing_counter = false;
  std::uint64_t action_count = 0;    // Calls that changed the state so far.
  std::vector<RegionState> regions;  // In address order.
  std::vector<ChunkState> chunks;    // In address order, region after region.
  std::vector<SizeAt> size_history;  // Empty without history.
};

// The chunks of one size class, free and in use. Bytes and counts.
struct BfcBinSummary {
  std::size_t chunks = 0;
  std::size_t chunks_in_use = 0;
  std::size_t bytes = 0;
  std::size_t bytes_in_use = 0;            // whole chunks
  std::size_t requested_bytes_in_use = 0;  // As requested.
};

// Summaries by bin (geometry.h), of free chunks and chunks in use.
//
// Source: tf_bfc.md R53, R54.
using BfcBinSummaries = std::array<BfcBinSummary, kBfcBins>;

// Cost: O(chunks).
BfcBinSummaries SummarizeBins(const BfcSnapshot& snapshot);

// Fragmentation: the fraction of the free bytes outside the largest free block.
// 0 if all is in one block, or nothing is free.
//
// Source: tf_bfc.md R51.
double Fragmentation(const BfcSnapshot::Numbers& numbers);

// The regions as 100 characters, by address: `*` requested bytes, `x` bytes
// added by rounding, `_` free. In a character with several kinds, `*` wins,
// then `x`. Without regions the result is "<allocator contains no memory>".
//
// Cost: O(chunks).
// Source: tf_bfc.md R52.
std::string RenderOccupancy(const BfcSnapshot& snapshot);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_SNAPSHOT_H_
