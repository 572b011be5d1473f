#ifndef STRATA_ALLOCATION_LASTING_H_
#define STRATA_ALLOCATION_LASTING_H_

#include <mutex>
#include <utility>

#include "strata/allocation/chain_lock.h"
#include "strata/platform/fork_lock.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// A T in memory whose lock is one for ever: for who may come to the lock when
// what it guarded is gone.
//
// Model: Ts are recycled, never freed. Who found the lock of one while it had
//   an owner may take it afterwards, too, and then see whose it is now: at
//   worst he keeps another owner waiting for as long as he looks. A T has a
//   ChainLock `lock`, which its constructor makes, and which is renewed for its
//   next owner, and Begin, which makes everything else anew.
// Threads: any thread.
// Cost: to make one, the heap where none is left over, and Begin.
template <class T>
class Lasting {
 public:
  // Errors: std::bad_alloc.
  template <class... Args>
  explicit Lasting(bool may_bias = false, Args... args)
      : stock_(StockOf(may_bias)), shell_(stock_.Take()) {
    if (shell_ == nullptr) {
      shell_ = new Shell(may_bias);
    } else if (may_bias) {
      shell_->value.lock.Renew();
    }
    shell_->value.Begin(args...);
  }
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;
  // The lock is closed, and nobody's but for such a look.
  ~Lasting() { stock_.Give(shell_); }

  T& operator*() const { return shell_->value; }
  T* operator->() const { return &shell_->value; }

 private:
  struct Shell {
    explicit Shell(bool may_bias) : value(may_bias) {}

    T value;
    Shell* next = nullptr;  // in the stock
  };

  // Those that have no owner; of one kind, because what may be biased was made
  // so.
  class Stock {
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
    const ForkLock fork_lock_{lock_};
    Shell* first_ = nullptr;  // guarded by lock_
  };

  static Stock& StockOf(bool may_bias) {
    // Never destroyed: chains may end during static destruction.
    static auto* const stocks = new Stock[2];
    return stocks[may_bias ? 1 : 0];
  }

  Stock& stock_;
  Shell* shell_;
};

// Nothing but a lock.
struct LoneLock {
  explicit LoneLock(bool may_bias) : lock(may_bias) {}
  void Begin() {}

  ChainLock lock;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_LASTING_H_
