#ifndef STRATA_BASE_STORE_MAX_H_
#define STRATA_BASE_STORE_MAX_H_

#include <atomic>

#include "strata/base/require_cxx20.h"

namespace strata {

// Raises `target` to `value`, unless `target` is higher.
template <class T>
void StoreMax(std::atomic<T>& target, T value) noexcept {
  T seen = target.load();
  while (seen < value && !target.compare_exchange_weak(seen, value)) {
  }
}

// Resets `peak` to `current`, which other threads may change meanwhile. A
// thread that raises `current` then calls StoreMax on `peak`, so that the peak
// is never below it.
template <class T>
void ResetPeak(std::atomic<T>& peak, const std::atomic<T>& current) noexcept {
  peak.store(current.load());
  StoreMax(peak, current.load());
}

}  // namespace strata

#endif  // STRATA_BASE_STORE_MAX_H_
