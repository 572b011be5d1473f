#ifndef STRATA_TESTS_PLATFORM_BIASED_LOCK_OWN_LOCK_H_
#define STRATA_TESTS_PLATFORM_BIASED_LOCK_OWN_LOCK_H_

#include <mutex>

#include "strata/platform/biased_lock/biased_lock.h"

namespace strata {

// Makes the calling thread the owner, if the lock may have one.
inline void Own(BiasedLock& lock) {
  for (int i = 0;
       i < 2 * static_cast<int>(BiasedLockMachine::kMostRun) && !lock.is_mine();
       ++i) {
    const std::lock_guard<BiasedLock> guard(lock);
  }
}

}  // namespace strata

#endif  // STRATA_TESTS_PLATFORM_BIASED_LOCK_OWN_LOCK_H_
