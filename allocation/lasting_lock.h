#ifndef STRATA_ALLOCATION_LASTING_LOCK_H_
#define STRATA_ALLOCATION_LASTING_LOCK_H_

#include "strata/allocation/chain_lock.h"

namespace strata {

// A ChainLock in memory that is a lock's for ever: the lock of a chain, for who
// may come to it when the chain is gone.
//
// Model: locks are recycled, never freed. Who found one while it served a chain
//   may take it afterwards, too, and then see whom it serves now: at worst he
//   keeps another chain waiting for as long as he looks.
// Threads: any thread.
// Cost: to make one, the heap where no lock is left over; 128 bytes.
class LastingLock {
 public:
  // Errors: std::bad_alloc.
  explicit LastingLock(bool may_bias = false);
  LastingLock(const LastingLock&) = delete;
  LastingLock& operator=(const LastingLock&) = delete;
  // It is closed, and nobody's but for such a look.
  ~LastingLock();

  ChainLock& operator*() const;

 private:
  struct Shell;
  class Stock;

  static Stock& StockOf(bool may_bias);

  const bool may_bias_;
  Shell* const shell_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_LASTING_LOCK_H_
