#ifndef STRATA_STRATEGY_BFC_GROWTH_PLAN_H_
#define STRATA_STRATEGY_BFC_GROWTH_PLAN_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "strata/base/require_cxx20.h"

namespace strata {

// Behaviour after the system refuses a region.
enum class BfcBackpedal : std::uint8_t {
  kAlways,  // Requests a tenth less, repeatedly.
  kOnce,    // Only after the first refusal, as TensorFlow up to 2.3.
};

// The sizes of the regions of a BfcAllocator.
//
// Model: the next region has the size of a hint, at most the limit minus held
//   bytes. The hint doubles with each region, except where it was raised for a
//   large request. It stays below four times the limit, so it cannot overflow
//   (tf_bfc.md W5). Without growth the first region takes the whole limit. The
//   original frees regions only for a larger region. Any other free here lowers
//   the hint again; otherwise each free and growth would double it once more.
// Units: bytes; sizes are multiples of 256, the limit need not be.
// Threads: not thread-safe.
// Source: tf_bfc.md R15 to R19; its rules give the numbers.
class BfcGrowthPlan {
 public:
  // Call before the first growth. The first region has `first_bytes`, or less
  // if the limit is lower.
  void Start(std::size_t limit_bytes, std::size_t first_bytes);

  // The rest of the limit while `held` bytes are held. 0 if the system gave
  // more than requested (W6).
  std::size_t Available(std::size_t held) const;
  // The size to request first, so that `needed` bytes fit; nullopt if the limit
  // does not allow it. Raises the hint to `needed` permanently, as the original
  // does.
  std::optional<std::size_t> FirstAsk(std::size_t needed, std::size_t held);
  // Records that the system allocated the size of FirstAsk, or less.
  void Grown();
  // Records that regions were freed and `held` bytes remain. Lowers the hint to
  // the value that growth to `held` bytes would have produced.
  void GaveBack(std::size_t held);
  // The next smaller size to request. Less than `bytes`, which is not 0.
  static std::size_t Less(std::size_t bytes);

  std::size_t limit_bytes() const { return limit_bytes_; }
  std::size_t hint_bytes() const { return hint_bytes_; }

 private:
  std::size_t limit_bytes_ = 0;
  std::size_t first_bytes_ = 0;  // The first hint.
  std::size_t hint_bytes_ = 0;   // The smallest size of the next region.
  bool was_raised_ = false;      // The last FirstAsk raised the hint.
};

// Lets one thread at a time grow, without holding a lock during the system
// call. Other threads wait, and then search again.
//
// Model: a thread that finds no block must not grow while another thread grows,
//   because a single region may take the whole limit. A thread that calls again
//   during its own turn (a visitor of the pool that allocates) does not get a
//   second turn.
// Threads: any thread.
class GrowthTurn {
 public:
  // Number of finished turns. Read it before a search. If it has changed when
  // the thread gets the turn, search again.
  std::uint64_t count() const { return count_.load(); }

  // The turn of one thread, until destruction.
  class Holder {
   public:
    explicit Holder(GrowthTurn& turn) : turn_(turn) {
      std::unique_lock<std::mutex> lock(turn_.mutex_);
      if (turn_.owner_ == std::this_thread::get_id()) return;
      turn_.is_over_.wait(lock,
                          [&] { return turn_.owner_ == std::thread::id(); });
      turn_.owner_ = std::this_thread::get_id();
      has_turn_ = true;
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() {
      if (!has_turn_) return;
      {
        const std::lock_guard<std::mutex> guard(turn_.mutex_);
        turn_.owner_ = std::thread::id();
        ++turn_.count_;
      }
      turn_.is_over_.notify_one();
    }

    // False: this thread already has the turn.
    bool has_turn() const { return has_turn_; }

   private:
    GrowthTurn& turn_;
    bool has_turn_ = false;
  };

 private:
  std::mutex mutex_;
  std::condition_variable is_over_;
  std::atomic<std::uint64_t> count_{0};
  std::thread::id owner_;  // Empty: the turn is free; guarded by mutex_.
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_GROWTH_PLAN_H_
