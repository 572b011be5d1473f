#ifndef STRATA_ALLOCATION_STATS_H_
#define STRATA_ALLOCATION_STATS_H_

#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// Numbers of one layer. A layer sets the fields it knows; the others stay 0.
//
// Units: bytes, and counts since the layer was built; peaks since the last
//   ResetPeak(). "In use" is the sum of the rounded sizes of live blocks.
//   "Requested" is the sum of the sizes that callers requested for them.
struct Stats {
  std::uint64_t allocations = 0;  // requests met
  std::uint64_t frees = 0;
  // Failed attempts. A request that was met only after memory was released
  // counts at least one.
  std::uint64_t failures = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t in_use_bytes = 0;
  // Exact for one chain. For several chains together it is an upper bound if
  // peak_in_use_is_bound.
  std::uint64_t peak_in_use_bytes = 0;
  std::uint64_t total_requested_bytes = 0;  // over all requests met so far

  std::uint64_t reserved_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;
  // The smaller of the two limits below; 0: none.
  std::uint64_t limit_bytes = 0;
  std::uint64_t in_use_limit_bytes = 0;    // --strata_in_use_limit; 0: none
  std::uint64_t reserved_limit_bytes = 0;  // see reserved_limit_flag; 0: none

  // Requests met at once from held memory, and all other requests. A request
  // counts in one of them, except a request that must not grow and finds no
  // block. A repeated attempt after a reclaim counts again.
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t splits = 0;
  std::uint64_t coalesces = 0;
  std::uint64_t chunks = 0;       // held now
  std::uint64_t idle_bytes = 0;   // in chunks without a live block
  std::uint64_t free_blocks = 0;  // cached now
  std::uint64_t largest_free_bytes = 0;

  // True if the peak may be too high: it adds peaks of several chains, which
  // may have occurred at different times.
  bool peak_in_use_is_bound = false;
  // The flag that sets reserved_limit_bytes, as in Failure::limit_flag.
  const char* reserved_limit_flag = "";

  std::uint64_t live_allocations() const { return allocations - frees; }
};

// Returns the smaller of two limits; 0 means no limit.
std::uint64_t SmallerLimit(std::uint64_t a, std::uint64_t b);
// Lowers the limits of `stats` to `bytes`, a limit on reserved bytes; 0: none.
void LimitReserved(Stats& stats, std::uint64_t bytes, const char* flag);
// Lowers the limits of `stats` to `bytes`, a limit on bytes in use; 0: none.
void LimitInUse(Stats& stats, std::uint64_t bytes);

// Adds every field of `from` that is a sum over layers side by side. Leaves the
// limits. Keeps the larger largest_free_bytes. The sum of the peaks is an upper
// bound of the peak of the sum.
void Accumulate(Stats& to, const Stats& from);

// One JSON object with the fields as keys. The additional key `limits` holds
// the limits in force by flag: {"--strata_in_use_limit":10485760}.
std::string ToJson(const Stats& stats);

}  // namespace strata

#endif  // STRATA_ALLOCATION_STATS_H_
