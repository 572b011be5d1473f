#ifndef STRATA_PLATFORM_SIM_STREAMS_TIMED_PROGRESS_H_
#define STRATA_PLATFORM_SIM_STREAMS_TIMED_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>

#include "strata/platform/sim/streams/progress_policy.h"

namespace strata::sim {

// Number of operations that a device runs at the same time. An estimate: a GPU
// runs a few kernels concurrently and has a few copy engines.
inline constexpr int kConcurrentWork = 8;

// Work takes the time that it costs.
//
// Model: one clock for the platform. Calls advance the clock by their cost. An
//   operation starts when its waits are reached and its device has one of
//   kConcurrentWork slots free, in the order of submission. Its effect happens
//   when the clock reaches its end. A thread that waits advances the clock to
//   the end of the next operation.
class TimedProgress final : public ProgressPolicy {
 public:
  using ProgressPolicy::ProgressPolicy;

  bool MovesAfterCalls() const override { return true; }
  void AfterSubmit(SimLock* lock) override;
  void AfterCall(std::uint64_t ns, SimLock* lock) override;
  bool MoveTowards(const StreamPoint& point, SimLock* lock) override;
  void RunNow(SimStream* stream, SimLock* lock) override;
  std::uint64_t NowNs() const override {
    return now_ns_.load(std::memory_order_relaxed);
  }

 private:
  struct Running {
    std::uint64_t end_ns;
    std::uint64_t number;  // number of the operation; orders equal ends
    SimStream* stream;

    friend bool operator<(const Running& a, const Running& b) {
      return std::tie(a.end_ns, a.number) < std::tie(b.end_ns, b.number);
    }
  };

  void StartReady();
  SimStream* FirstToStart() const;
  void FinishFirst(SimLock* lock);
  void MoveClockTo(std::uint64_t ns);

  std::atomic<std::uint64_t> now_ns_{0};  // changed with the lock held
  std::set<Running> running_;
  std::unordered_map<std::int32_t, int> slots_taken_;  // by device
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_TIMED_PROGRESS_H_
