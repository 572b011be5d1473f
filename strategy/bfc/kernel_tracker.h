#ifndef STRATA_STRATEGY_BFC_KERNEL_TRACKER_H_
#define STRATA_STRATEGY_BFC_KERNEL_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "strata/strategy/bfc/arena/timestamps.h"

namespace strata {

// Tracks which kernels of a stream are done, and thus which frees are safe.
//
// Model: a tracked kernel gets the next count of the device's counter, and the
//   caller records an event after the kernel. When the event is complete, the
//   caller calls Terminated. The frontier is the last count up to which every
//   tracked kernel is done. Memory freed before the frontier is safe: pass the
//   frontier to BfcAllocator::SetSafeFrontier.
// Threads: any thread.
// Cost: O(1), amortised, and O(log n) in the pending kernels to find one.
// Source: tf_bfc.md R41.
class KernelTracker {
 public:
  // Which kernels are tracked. All 0: every kernel, without a bound on pending
  // ones.
  struct Rules {
    // A kernel is tracked if it is this many kernels after the last tracked
    // one; 0: no rule.
    int most_interval = 0;
    // It is also tracked if this many bytes were allocated since; 0: no rule.
    std::size_t most_bytes = 0;
    // More pending kernels than this are too many; 0: no bound.
    int most_pending = 0;
  };

  KernelTracker(const Rules& rules, std::shared_ptr<SharedCounter> counter);

  // Call for each launched kernel; `bytes` were allocated for it. Returns the
  // count of a tracked kernel, nullopt if the kernel is not tracked.
  std::optional<std::uint64_t> Launched(std::size_t bytes);
  // Call once per tracked kernel, in any order, when its event is complete.
  // Returns the frontier.
  std::uint64_t Terminated(std::uint64_t count);

  // 0 before any kernel is done.
  std::uint64_t frontier() const;
  // Whether the caller should wait before the next launch. Compares the pending
  // kernels, weighted by their allocated bytes, with most_pending.
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
  // By count, from the first pending one; guarded by mutex_.
  std::deque<Kernel> kernels_;
  int pending_weight_ = 0;  // Sum over pending kernels; guarded by mutex_.
  int since_last_ = 0;      // Kernels; guarded by mutex_.
  std::size_t bytes_since_last_ = 0;  // guarded by mutex_
  std::uint64_t frontier_ = 0;        // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_KERNEL_TRACKER_H_
