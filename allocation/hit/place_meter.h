#ifndef STRATA_ALLOCATION_HIT_PLACE_METER_H_
#define STRATA_ALLOCATION_HIT_PLACE_METER_H_

#include <atomic>
#include <cstdint>

#include "strata/base/store_max.h"

namespace strata {

// The exact peak of all streams of a place together, for --strata_exact_peak.
//
// Threads: any thread.
// Cost: one contended atomic addition per call.
class PlaceMeter {
 public:
  void Add(std::uint64_t bytes) {
    StoreMax(peak_in_use_bytes_, in_use_bytes_ += bytes);
  }
  void Subtract(std::uint64_t bytes) { in_use_bytes_ -= bytes; }
  std::uint64_t in_use_bytes() const { return in_use_bytes_; }
  std::uint64_t peak_in_use_bytes() const { return peak_in_use_bytes_; }
  void ResetPeak() { strata::ResetPeak(peak_in_use_bytes_, in_use_bytes_); }

 private:
  std::atomic<std::uint64_t> in_use_bytes_{0};
  std::atomic<std::uint64_t> peak_in_use_bytes_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_PLACE_METER_H_
