#ifndef STRATA_STRATEGY_BFC_GROWTH_TURN_H_
#define STRATA_STRATEGY_BFC_GROWTH_TURN_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Lets one thread at a time grow, without a lock held while it calls the
// system: the others wait until it is done, and look again.
//
// Model: whoever finds no block must not ask the system for memory that another
//   thread is just getting: with all of the limit in one region there would be
//   none left. A thread that asks again during its own turn (a visitor of the
//   pool that allocates) gets none.
// Threads: any thread.
class GrowthTurn {
 public:
  // Turns that are over. Whoever reads it before a search, and finds it changed
  // when it has the turn, must search again.
  std::uint64_t count() const { return count_.load(); }

  // One thread's turn, until it is destroyed.
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

    // False: this thread has the turn already.
    bool has_turn() const { return has_turn_; }

   private:
    GrowthTurn& turn_;
    bool has_turn_ = false;
  };

 private:
  std::mutex mutex_;
  std::condition_variable is_over_;
  std::atomic<std::uint64_t> count_{0};
  std::thread::id owner_;  // none: nobody's turn; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_GROWTH_TURN_H_
