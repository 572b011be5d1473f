#include "strata/allocation/lasting_lock.h"

#include <mutex>
#include <utility>

#include "strata/platform/spin_lock.h"

namespace strata {

struct LastingLock::Shell {
  explicit Shell(bool may_bias) : lock(may_bias) {}

  ChainLock lock;
  Shell* next = nullptr;  // in the stock
};

// Those that serve nobody; of one kind, because what may be biased is so from
// the first use on.
class LastingLock::Stock {
 public:
  Shell* Take() {
    const std::lock_guard<SpinLock> guard(lock_);
    return first_ != nullptr ? std::exchange(first_, first_->next) : nullptr;
  }
  void Give(Shell* shell) {
    const std::lock_guard<SpinLock> guard(lock_);
    shell->next = std::exchange(first_, shell);
  }

 private:
  SpinLock lock_;
  Shell* first_ = nullptr;  // guarded by lock_
};

LastingLock::Stock& LastingLock::StockOf(bool may_bias) {
  // Never destroyed: chains may end during static destruction.
  static auto* const stocks = new Stock[2];
  return stocks[may_bias ? 1 : 0];
}

LastingLock::LastingLock(bool may_bias)
    : may_bias_(may_bias), shell_([may_bias] {
        Shell* const shell = StockOf(may_bias).Take();
        return shell != nullptr ? shell : new Shell(may_bias);
      }()) {}

LastingLock::~LastingLock() { StockOf(may_bias_).Give(shell_); }

ChainLock& LastingLock::operator*() const { return shell_->lock; }

}  // namespace strata
