#ifndef STRATA_ALLOCATION_USAGE_H_
#define STRATA_ALLOCATION_USAGE_H_

#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/stats.h"

namespace strata {

// What the callers of a layer hold, as few numbers as say it.
//
// Threads: none; the layer's lock guards it.
// Cost: Count and Uncount: three additions, within one cache line.
class alignas(64) UseCounts {
 public:
  // `block` was handed out, with `requested` set.
  void Count(const Block& block) {
    CountBelowPeak(block);
    RaisePeak();
  }
  // The same, for who looks at the peak by himself.
  void CountBelowPeak(const Block& block) {
    ++allocations_;
    total_requested_bytes_ += block.requested;
    in_use_bytes_ += block.size;
  }
  bool is_beyond_peak() const { return in_use_bytes_ > peak_in_use_bytes_; }
  void RaisePeak() {
    if (is_beyond_peak()) peak_in_use_bytes_ = in_use_bytes_;
  }
  // `block`, of which `requested` was asked for, is given back.
  void Uncount(const Block& block, std::uint64_t requested) {
    ++frees_;
    freed_requested_bytes_ += requested;
    in_use_bytes_ -= block.size;
  }
  void Uncount(const Block& block) { Uncount(block, block.requested); }
  // Undoes Uncount, with the lock held ever since.
  void Recount(const Block& block) {
    --frees_;
    freed_requested_bytes_ -= block.requested;
    in_use_bytes_ += block.size;
  }

  std::uint64_t live_allocations() const { return allocations_ - frees_; }
  std::uint64_t in_use_bytes() const { return in_use_bytes_; }
  void ResetPeak() { peak_in_use_bytes_ = in_use_bytes_; }
  // Sets what of `stats` is counted here.
  void FillIn(Stats& stats) const {
    stats.allocations = allocations_;
    stats.frees = frees_;
    stats.requested_bytes = total_requested_bytes_ - freed_requested_bytes_;
    stats.total_requested_bytes = total_requested_bytes_;
    stats.in_use_bytes = in_use_bytes_;
    stats.peak_in_use_bytes = peak_in_use_bytes_;
  }

 private:
  // None beside one that changes with it: compilers take those for a vector,
  // and wait for what was just stored.
  std::uint64_t in_use_bytes_ = 0;
  std::uint64_t peak_in_use_bytes_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t frees_ = 0;
  std::uint64_t total_requested_bytes_ = 0;
  std::uint64_t freed_requested_bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_USAGE_H_
