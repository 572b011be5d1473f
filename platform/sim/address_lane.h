#ifndef STRATA_PLATFORM_SIM_ADDRESS_LANE_H_
#define STRATA_PLATFORM_SIM_ADDRESS_LANE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "strata/platform/sim/recycled_map.h"

namespace strata {

// An interval of addresses from which ranges are handed out so that a stale
// address stays stale for long: in rising order, starting over at the end of
// the interval (next fit), and never a range among the last
// kQuarantinedFrees freed ones.
//
// Model: addresses only; deterministic.
// Threads: externally synchronised.
// Cost: O(log free ranges); a search looks at no more than kMaxGapsTried.
class AddressLane {
 public:
  static constexpr std::size_t kQuarantinedFrees = 4096;
  static constexpr int kMaxGapsTried = 256;

  // `begin` and `bytes` are multiples of every alignment asked for later.
  AddressLane(std::uint64_t begin, std::uint64_t bytes);

  // `bytes` > 0 addresses from a multiple of `alignment` (a power of two) on.
  // Nothing if no gap tried is large enough; the next search goes on from
  // there.
  std::optional<std::uint64_t> Take(std::uint64_t bytes,
                                    std::uint64_t alignment);
  // The same from the lowest gap that is large enough, however many there are,
  // with the quarantine cut short.
  std::optional<std::uint64_t> TakeLowest(std::uint64_t bytes,
                                          std::uint64_t alignment);
  // Gives a range back to the lane it came from.
  void Give(std::uint64_t begin, std::uint64_t bytes);

  bool Contains(std::uint64_t address) const {
    return address >= begin_ && address - begin_ < bytes_;
  }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t bytes;
  };
  // Free ranges by their end, so that taking the front of one moves no node.
  using FreeMap = RecycledMap<std::uint64_t, std::uint64_t>;  // end -> begin

  std::optional<std::uint64_t> TakeFrom(FreeMap::iterator gap,
                                        std::uint64_t from, std::uint64_t bytes,
                                        std::uint64_t alignment);
  void Insert(Range range);
  void ReleaseQuarantine(std::size_t keep);

  const std::uint64_t begin_;
  const std::uint64_t bytes_;
  std::uint64_t cursor_;  // where the next search starts
  FreeMap free_;
  std::deque<Range> quarantine_;  // oldest first
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_ADDRESS_LANE_H_
