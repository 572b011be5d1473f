#ifndef STRATA_STRATEGY_BFC_KERNEL_TRACKER_H_
#define STRATA_STRATEGY_BFC_KERNEL_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "strata/strategy/bfc/timestamps.h"

namespace strata {

// Knows which kernels of a stream are done, and so which frees are safe.
//
// Model: a kernel that is launched may be tracked: it gets the next count of
//   the device's counter, and the caller records an event behind it. When that
//   is complete, Terminated says so. The frontier is the last count up to which
//   every tracked kernel is done; memory that was freed before it is safe,
//   which is what BfcAllocator::SetSafeFrontier wants to know.
// Threads: any thread.
// Cost: O(1), amortised, and O(log n) in the pending kernels to find one.
// Source: tf_bfc.md R41.
class KernelTracker {
 public:
  // Which kernels are tracked. All 0: every one, and there are never too many.
  struct Rules {
    int most_interval = 0;       // at the latest the nth after the last one
    std::size_t most_bytes = 0;  // or once so many bytes were allocated
    int most_pending = 0;        // more than these are too many; 0: no bound
  };

  KernelTracker(const Rules& rules, std::shared_ptr<SharedCounter> counter);

  // A kernel was launched; `bytes` were allocated for it. The count to track it
  // by; nothing if it need not be tracked.
  std::optional<std::uint64_t> Launched(std::size_t bytes);
  // The event behind the kernel is complete; in any order, each once. Returns
  // the frontier.
  std::uint64_t Terminated(std::uint64_t count);

  // 0 before any kernel is done.
  std::uint64_t frontier() const;
  // Whether the caller should wait before it launches more: kernels that are
  // not done, each weighed by what was allocated for it.
  bool HasTooMany() const;

 private:
  struct Kernel {
    std::uint64_t count;
    int weight;
    bool is_done;
  };

  const Rules rules_;
  const std::shared_ptr<SharedCounter> counter_;
  mutable std::mutex mutex_;
  std::deque<Kernel> kernels_;        // by count, the first not done; by mutex_
  int pending_weight_ = 0;            // of those not done; guarded by mutex_
  int since_last_ = 0;                // kernels; guarded by mutex_
  std::size_t bytes_since_last_ = 0;  // guarded by mutex_
  std::uint64_t frontier_ = 0;        // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_KERNEL_TRACKER_H_
