#ifndef STRATA_STRATEGY_BUDDY_BUDDY_SIZES_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_SIZES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/platform/place.h"
#include "strata/strategy/front_cache_policy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Errors: std::invalid_argument naming the option of the buddy strategies that
//   is wrong.
void CheckBuddyOptions(const StrategyOptions& options);

// The physical memory of the host in bytes, as the system says.
std::size_t HostMemoryBytes();

// The numbers of the buddy strategies: the smallest block, how much to take
// from the system at a time, and how much in all.
//
// Model: on a device the first chunk is initial_gpu_memory_in_mb, each further
//   one reallocate_gpu_memory_in_mb; where the flag is 0, a fraction
//   (fraction_of_gpu_memory_to_use) of what is available then: what is free
//   less 5 %. On the host every chunk is the smaller of a 32nd of a fraction
//   of all memory and initial_cpu_memory_in_mb; pinned, a 256th of a fraction
//   of all memory, which is also the most that is held at once. A larger
//   request gets a chunk of its size.
// Units: bytes.
// Source: paddle.md §3.4 rules 1, 4 and 5; §2; §3.2-3.
class BuddySizes {
 public:
  static constexpr std::size_t kGrowthSteps = 4;

  // Errors: as CheckBuddyOptions and FrontCachePolicy.
  BuddySizes(const StrategyOptions& options, PlaceKind kind,
             std::size_t host_bytes = HostMemoryBytes());

  // Sizes of blocks are multiples of it.
  std::size_t min_block_bytes() const { return min_block_bytes_; }
  // A smaller rest of a block is not split off.
  std::size_t min_remainder_bytes() const { return min_remainder_bytes_; }
  // What to keep whole of freed blocks.
  const FrontCachePolicy& front_cache() const { return front_cache_; }
  // The most to hold from the system; 0: no bound.
  std::size_t cap_bytes() const { return cap_bytes_; }

  // What can be taken of `free_bytes`: the rest is left to the driver.
  std::size_t Available(std::size_t free_bytes) const;
  // Whether RefillBytes depends on what is available.
  bool NeedsAvailable(bool is_first) const;
  // What to take at a time. `is_first`: nothing is held.
  std::size_t RefillBytes(bool is_first, std::size_t available) const;
  // Chunk sizes to try, largest first; unused entries are 0. `wanted` is at
  // least `size`, which is what the request needs. Between the two: what is
  // available, and the request in whole steps of the system.
  std::array<std::size_t, kGrowthSteps> GrowthSizes(
      std::size_t size, std::size_t wanted, std::size_t available) const;

 private:
  FrontCachePolicy front_cache_;
  std::size_t min_block_bytes_;
  std::size_t min_remainder_bytes_;
  std::size_t cap_bytes_ = 0;
  // Of the first chunk and of the others; 0: the fraction of what is available.
  std::size_t first_bytes_ = 0;
  std::size_t next_bytes_ = 0;
  double fraction_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_BUDDY_SIZES_H_
