#ifndef STRATA_PLATFORM_SIM_MEMORY_ADDRESS_LANE_H_
#define STRATA_PLATFORM_SIM_MEMORY_ADDRESS_LANE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "strata/platform/sim/memory/recycled_map.h"

namespace strata::sim {

// An interval of addresses for ranges. It delays the reuse of addresses, so
// that stale addresses stay invalid for long. Ranges are allocated in rising
// order, starting over at the end of the interval (next fit). The last
// kQuarantinedFrees freed ranges are not reused.
//
// Model: addresses only; deterministic.
// Threads: externally synchronised.
// Cost: O(log free ranges); a search checks at most kMaxGapsTried gaps.
class AddressLane {
 public:
  static constexpr std::size_t kQuarantinedFrees = 4096;
  static constexpr int kMaxGapsTried = 256;

  // `begin` and `bytes` are multiples of every alignment that is requested
  // later.
  AddressLane(std::uint64_t begin, std::uint64_t bytes);

  // Allocates `bytes` > 0 addresses that start at a multiple of `alignment` (a
  // power of two). Returns nullopt if no checked gap is large enough; the next
  // search continues from there.
  std::optional<std::uint64_t> Take(std::uint64_t bytes,
                                    std::uint64_t alignment);
  // Like Take, from the lowest gap that is large enough. Checks all gaps, and
  // ends the quarantine first.
  std::optional<std::uint64_t> TakeLowest(std::uint64_t bytes,
                                          std::uint64_t alignment);
  // Frees a range of this lane.
  void Give(std::uint64_t begin, std::uint64_t bytes);

  bool Contains(std::uint64_t address) const {
    return address >= begin_ && address - begin_ < bytes_;
  }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t bytes;
  };
  std::optional<std::uint64_t> TakeFrom(FreeRanges::iterator gap,
                                        std::uint64_t from, std::uint64_t bytes,
                                        std::uint64_t alignment);
  void ReleaseQuarantine(std::size_t keep);

  const std::uint64_t begin_;
  const std::uint64_t bytes_;
  std::uint64_t cursor_;  // start of the next search
  FreeRanges free_;
  std::deque<Range> quarantine_;  // oldest first
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_ADDRESS_LANE_H_
