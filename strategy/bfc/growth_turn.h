#ifndef STRATA_STRATEGY_BFC_GROWTH_TURN_H_
#define STRATA_STRATEGY_BFC_GROWTH_TURN_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "strata/base/require_cxx20.h"

namespace strata {

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

#endif  // STRATA_STRATEGY_BFC_GROWTH_TURN_H_
