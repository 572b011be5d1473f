#ifndef STRATA_ALLOCATION_HIT_PLACE_PEAK_H_
#define STRATA_ALLOCATION_HIT_PLACE_PEAK_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

struct ChainState;

// The peak of the bytes in use of all chains of a place together.
//
// Model: each chain has an allowance, and all allowances together are at most
//   the peak. So a chain that stays within its allowance raises no peak, and
//   need not know of the others. A chain that exceeds its allowance locks all
//   chains, sums their bytes in use, and raises the peak if the sum is higher.
//   The rest of the peak is divided evenly among them.
// Units: bytes.
// Threads: any thread. Only a thread that holds the mutex locks several chains.
//   It may wait for a chain's lock, so no thread waits for the mutex with one.
// Cost: nothing on a hit. Raise() locks each chain; docs/design.md has
//   the times of recorded traces.
class PlacePeak {
 public:
  // With more chains the peak is an upper bound, and Raise() locks one chain.
  static constexpr std::size_t kMostChains = 64;

  // The peak is exact for any number of chains if `is_always_exact`.
  explicit PlacePeak(bool is_always_exact = false)
      : most_chains_(is_always_exact ? SIZE_MAX : kMostChains) {}
  PlacePeak(const PlacePeak&) = delete;
  PlacePeak& operator=(const PlacePeak&) = delete;

  // Adds a chain that uses no bytes. `chain` must live until Remove().
  //
  // Errors: std::bad_alloc.
  void Add(ChainState& chain);
  void Remove(ChainState& chain) noexcept;
  // `chain` exceeds its allowance. Its lock is held, and released on return.
  void Raise(ChainState& chain) noexcept;

  std::uint64_t bytes() const;
  // Whether bytes() is an upper bound since the last reset.
  bool is_bound() const;
  // Sets the peak, and the peak of each chain, to the bytes in use.
  void Reset() noexcept;

 private:
  // Lock and unlock all chains but `except`, which may be null. Hold the mutex.
  void LockAll(const ChainState* except) noexcept;
  void UnlockAll(const ChainState* except) noexcept;
  // The bytes in use of all chains, which are locked.
  std::uint64_t InUse() const noexcept;
  // Divides the rest of the peak. All chains are locked.
  void Divide(std::uint64_t in_use) noexcept;

  const std::size_t most_chains_;
  mutable std::mutex mutex_;
  // The members below are guarded by mutex_.
  std::vector<ChainState*> chains_;
  std::uint64_t bytes_ = 0;
  bool is_bound_ = false;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_PLACE_PEAK_H_
