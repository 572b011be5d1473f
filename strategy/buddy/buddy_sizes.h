#ifndef STRATA_STRATEGY_BUDDY_BUDDY_SIZES_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_SIZES_H_

#include <array>
#include <cstddef>

#include "strata/allocation/option_fields.h"
#include "strata/platform/place.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Options of naive_best_fit and thread_local; options.def describes each field.
struct BuddyOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/buddy/options.def"
#undef STRATA_OWN_OPTION
};

// Errors: std::invalid_argument that names the invalid option of the buddy
//   strategies.
void CheckBuddyOptions(const BuddyOptions& options);

// Bytes of physical memory of the host, as the system reports it.
std::size_t HostMemoryBytes();

// The sizes of the buddy strategies: the smallest block, the chunks, and the
// total.
//
// Model: on a device the first chunk has initial_gpu_memory_in_mb, each further
//   one reallocate_gpu_memory_in_mb. If the flag is 0, the chunk is a fraction
//   (fraction_of_gpu_memory_to_use) of the memory available then: free memory
//   less 5 %. On the host a chunk has 1/32 of the allowed part of the host's
//   memory (fraction_of_cpu_memory_to_use), at most initial_cpu_memory_in_mb.
//   For pinned memory a chunk has 1/256 of the allowed part
//   (fraction_of_cuda_pinned_memory_to_use), and all chunks together have at
//   most that part. A larger request gets a chunk of its size.
// Units: bytes.
// Source: paddle.md §3.4 rules 1, 4 and 5; §2; §3.2-3.
class BuddySizes {
 public:
  static constexpr std::size_t kGrowthSteps = 4;

  // Errors: as CheckBuddyOptions and FrontCachePolicy.
  BuddySizes(const StrategyOptions& all, PlaceKind kind,
             std::size_t host_bytes = HostMemoryBytes());

  // Sizes of blocks are multiples of this.
  std::size_t min_block_bytes() const { return min_block_bytes_; }
  // A rest of a block below this size is not split off.
  std::size_t min_remainder_bytes() const { return min_remainder_bytes_; }
  // Limits of the front cache.
  const FrontCachePolicy& front_cache() const { return front_cache_; }
  // The most bytes to hold from the system; 0: no limit.
  std::size_t cap_bytes() const { return cap_bytes_; }

  // The part of `free_bytes` that may be allocated; the rest is for the driver.
  std::size_t Available(std::size_t free_bytes) const;
  // Whether RefillBytes depends on the available bytes.
  bool NeedsAvailable(bool is_first) const;
  // Size of a chunk. `is_first`: the pools hold no memory.
  std::size_t RefillBytes(bool is_first, std::size_t available) const;
  // Chunk sizes to try, largest first; unused entries are 0. `size` is the
  // bytes of the request; `wanted` is at least that. In between: the available
  // bytes, and the request in whole steps of the system.
  std::array<std::size_t, kGrowthSteps> GrowthSizes(
      std::size_t size, std::size_t wanted, std::size_t available) const;

 private:
  FrontCachePolicy front_cache_;
  std::size_t min_block_bytes_;
  std::size_t min_remainder_bytes_;
  std::size_t cap_bytes_ = 0;
  // Sizes of the first chunk and of the others; 0: fraction_ of the available
  // bytes.
  std::size_t first_bytes_ = 0;
  std::size_t next_bytes_ = 0;
  double fraction_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_BUDDY_SIZES_H_
