#ifndef STRATA_ALLOCATION_STATS_H_
#define STRATA_ALLOCATION_STATS_H_

#include <cstdint>
#include <string>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What one layer has seen. A layer fills in what it knows; the rest stays 0.
//
// Units: bytes and counts since the layer was built; peaks since the last
//   ResetPeak. Sizes "in use" are rounded sizes of live blocks; "requested" is
//   what the callers of those blocks asked for.
struct Stats {
  std::uint64_t allocations = 0;  // requests met
  std::uint64_t frees = 0;
  // Attempts refused: a request that was met only after memory was given back
  // leaves at least one.
  std::uint64_t failures = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t in_use_bytes = 0;
  // Exact for one chain. For several chains together it is an upper bound if
  // peak_in_use_is_bound.
  std::uint64_t peak_in_use_bytes = 0;
  std::uint64_t total_requested_bytes = 0;  // over all requests met so far

  std::uint64_t reserved_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;
  // The smaller of the limits that follow; 0: none.
  std::uint64_t limit_bytes = 0;
  std::uint64_t in_use_limit_bytes = 0;    // --strata_in_use_limit; 0: none
  std::uint64_t reserved_limit_bytes = 0;  // see reserved_limit_flag; 0: none

  // Requests met at once from what is held, and all others; each is one, but
  // for those that must not grow and find nothing. One that is tried again
  // after memory was reclaimed counts once for each try.
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t splits = 0;
  std::uint64_t coalesces = 0;
  std::uint64_t chunks = 0;       // held now
  std::uint64_t idle_bytes = 0;   // in chunks without a live block
  std::uint64_t free_blocks = 0;  // cached now
  std::uint64_t largest_free_bytes = 0;

  // Peaks of several chains were added, which may have been at different times.
  bool peak_in_use_is_bound = false;
  // The flag that sets reserved_limit_bytes, as in Failure::limit_flag.
  const char* reserved_limit_flag = "";

  std::uint64_t live_allocations() const { return allocations - frees; }
};

// The smaller of two limits, of which 0 is none.
std::uint64_t SmallerLimit(std::uint64_t a, std::uint64_t b);
// Lowers the limits of `stats` to one on reserved bytes, of which 0 is none.
void LimitReserved(Stats& stats, std::uint64_t bytes, const char* flag);
// Lowers the limit of `stats` to a limit on bytes in use, of which 0 is none.
void LimitInUse(Stats& stats, std::uint64_t bytes);

// Adds every field of `from` that is a sum over layers side by side (all but
// the limits; largest_free_bytes takes the larger). Peaks add up, which bounds
// the peak of the sum from above.
void Accumulate(Stats& to, const Stats& from);

// One JSON object, keys as the fields. Beside them, `limits` has the limits in
// force by their flags: {"--strata_in_use_limit":10485760}.
std::string ToJson(const Stats& stats);

}  // namespace strata

#endif  // STRATA_ALLOCATION_STATS_H_
