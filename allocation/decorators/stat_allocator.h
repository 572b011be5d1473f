#ifndef STRATA_ALLOCATION_DECORATORS_STAT_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_STAT_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/hit_state.h"
#include "strata/allocation/hit/usage.h"
#include "strata/base/store_max.h"

namespace strata {

// The exact peak of all streams of a place together, for --strata_exact_peak.
//
// Threads: any thread.
// Cost: one contended atomic addition per call.
class PlaceMeter {
 public:
  void Add(std::uint64_t bytes);
  void Subtract(std::uint64_t bytes) { in_use_bytes_ -= bytes; }
  std::uint64_t in_use_bytes() const { return in_use_bytes_; }
  std::uint64_t peak_in_use_bytes() const { return peak_in_use_bytes_; }
  void ResetPeak() { strata::ResetPeak(peak_in_use_bytes_, in_use_bytes_); }

 private:
  std::atomic<std::uint64_t> in_use_bytes_{0};
  std::atomic<std::uint64_t> peak_in_use_bytes_{0};
};

// Counts the allocations of users: requests, bytes requested, bytes in use, and
// their exact peak on this chain.
//
// Model: the front counts a hit that bypasses the layers by CountHit() and
//   CountGiven(). So the numbers cover the whole chain. A block that a strategy
//   caches counts as free.
// Threads: any thread.
// Cost: two uncontended locks per walk; no additional lock on a hit.
class StatAllocator final : public Decorator {
 public:
  // `meter` may be null. `biased_lock`: a thread may own the lock of this
  // layer, if the chain has no hit lock.
  StatAllocator(std::shared_ptr<Allocator> underlying,
                std::shared_ptr<PlaceMeter> meter, bool biased_lock = false);

  // For the front: the state of the chain's hit path, if it has one. The
  // functions below need its lock.
  HitState& hit_state() const { return hit_; }
  void CountHit(const Block& block) { Count(block); }
  void CountGiven(const Block& block) { Uncount(block); }
  // Undoes CountGiven() for a block that was not freed.
  void CountKept(const Block& block) {
    hit_.counts.Recount(block);
    if (meter_ != nullptr) meter_->Add(block.size);
  }
  // True if these functions only count in hit_state().
  bool counts_plainly() const { return meter_ == nullptr; }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "stat"; }
  Stats stats() const override;
  void ResetPeak() override;

 private:
  void Count(const Block& block) {
    hit_.counts.Count(block);
    if (meter_ != nullptr) meter_->Add(block.size);
  }
  void Uncount(const Block& block) {
    hit_.counts.Uncount(block);
    if (meter_ != nullptr) meter_->Subtract(block.size);
  }

  std::shared_ptr<PlaceMeter> meter_;
  std::unique_ptr<HitState> own_;  // empty if the chain has a hit state
  HitState& hit_;
  std::uint64_t failures_ = 0;  // guarded by hit_.lock
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_STAT_ALLOCATOR_H_
