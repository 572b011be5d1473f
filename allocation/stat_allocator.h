#ifndef STRATA_ALLOCATION_STAT_ALLOCATOR_H_
#define STRATA_ALLOCATION_STAT_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "strata/allocation/chain_lock.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/decorator_options.h"
#include "strata/allocation/lasting_lock.h"
#include "strata/allocation/usage.h"

namespace strata {

// The exact peak of all streams of a place together, for --strata_exact_peak.
//
// Threads: any thread.        Cost: one contended atomic addition per call.
class PlaceMeter {
 public:
  void Add(std::uint64_t bytes);
  void Subtract(std::uint64_t bytes) { in_use_bytes_ -= bytes; }
  std::uint64_t in_use_bytes() const { return in_use_bytes_; }
  std::uint64_t peak_in_use_bytes() const { return peak_in_use_bytes_; }
  void ResetPeak() { peak_in_use_bytes_ = in_use_bytes_.load(); }

 private:
  std::atomic<std::uint64_t> in_use_bytes_{0};
  std::atomic<std::uint64_t> peak_in_use_bytes_{0};
};

// Counts what users asked for and hold: requests, bytes requested, bytes in
// use, and their exact peak on this chain.
//
// Model: a hit that goes past the layers is counted by the front through
//   CountHit and CountGiven, so the numbers hold for the whole chain. A block
//   that a strategy caches counts as free.
// Threads: any thread.
// Cost: two uncontended locks per walk; none of its own on a hit.
class StatAllocator final : public Decorator {
 public:
  // `meter` may be null. `biased_lock`: whether a thread may own its lock, if
  // the chain has no hit lock.
  StatAllocator(std::shared_ptr<Allocator> underlying,
                std::shared_ptr<PlaceMeter> meter, bool biased_lock = false);

  // For the front. Hold lock(): the hit lock of the chain, if it has one.
  ChainLock& lock() const { return lock_; }
  void CountHit(const Block& block) { Count(block); }
  void CountGiven(const Block& block) { Uncount(block); }
  // It was not given back after all.
  void CountKept(const Block& block) {
    uses_.Recount(block);
    if (meter_ != nullptr) meter_->Add(block.size);
  }
  // What these count in; null if that is not all that they do.
  UseCounts* plain_counts() { return meter_ == nullptr ? &uses_ : nullptr; }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "stat"; }
  Stats stats() const override;
  void ResetPeak() override;

 private:
  void Count(const Block& block) {
    uses_.Count(block);
    if (meter_ != nullptr) meter_->Add(block.size);
  }
  void Uncount(const Block& block) {
    uses_.Uncount(block);
    if (meter_ != nullptr) meter_->Subtract(block.size);
  }

  std::shared_ptr<PlaceMeter> meter_;
  const LastingLock own_lock_;
  ChainLock& lock_;  // the hit lock if the chain has one, else own_lock_
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STAT_ALLOCATOR_H_
