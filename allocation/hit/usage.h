#ifndef STRATA_ALLOCATION_HIT_USAGE_H_
#define STRATA_ALLOCATION_HIT_USAGE_H_

#include <algorithm>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/stats.h"

namespace strata {

// Numbers of the blocks that the callers of a layer hold.
//
// Threads: not thread-safe. The lock of the layer guards it.
// Cost: Count() and Uncount(): three additions in one cache line.
class alignas(64) UseCounts {
 public:
  // Counts an allocation of `block`. Its `requested` must be set.
  void Count(const Block& block) {
    CountBelowPeak(block);
    if (is_beyond_limit()) RaisePeak();
  }
  // Like Count(), for callers that call RaisePeak() if is_beyond_limit().
  void CountBelowPeak(const Block& block) {
    ++allocations_;
    total_requested_bytes_ += block.requested;
    in_use_bytes_ += block.size;
  }
  // Whether the bytes in use exceed the peak, or the last allowance that was
  // passed to RaisePeak().
  bool is_beyond_limit() const { return in_use_bytes_ > limit_bytes_; }
  void RaisePeak(std::uint64_t allowance_bytes = UINT64_MAX) {
    peak_in_use_bytes_ = std::max(peak_in_use_bytes_, in_use_bytes_);
    limit_bytes_ = std::min(peak_in_use_bytes_, allowance_bytes);
  }
  // Counts the free of `block`, for which `requested` bytes were requested.
  void Uncount(const Block& block, std::uint64_t requested) {
    ++frees_;
    freed_requested_bytes_ += requested;
    in_use_bytes_ -= block.size;
  }
  void Uncount(const Block& block) { Uncount(block, block.requested); }
  // Undoes Uncount(). The caller must have held the lock since then.
  void Recount(const Block& block) {
    --frees_;
    freed_requested_bytes_ -= block.requested;
    in_use_bytes_ += block.size;
  }

  std::uint64_t live_allocations() const { return allocations_ - frees_; }
  std::uint64_t in_use_bytes() const { return in_use_bytes_; }
  void ResetPeak() { peak_in_use_bytes_ = limit_bytes_ = in_use_bytes_; }
  // Sets the fields of `stats` that are counted here.
  void FillIn(Stats& stats) const {
    stats.allocations = allocations_;
    stats.frees = frees_;
    stats.requested_bytes = total_requested_bytes_ - freed_requested_bytes_;
    stats.total_requested_bytes = total_requested_bytes_;
    stats.in_use_bytes = in_use_bytes_;
    stats.peak_in_use_bytes = peak_in_use_bytes_;
  }

 private:
  // Members that change together are not neighbours. Otherwise compilers
  // combine them into a vector, and a load waits for the previous stores.
  std::uint64_t in_use_bytes_ = 0;
  std::uint64_t limit_bytes_ = 0;  // the lesser of the peak and the allowance
  std::uint64_t allocations_ = 0;
  std::uint64_t frees_ = 0;
  std::uint64_t total_requested_bytes_ = 0;
  std::uint64_t freed_requested_bytes_ = 0;
  std::uint64_t peak_in_use_bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_USAGE_H_
