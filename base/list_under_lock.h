#ifndef STRATA_BASE_LIST_UNDER_LOCK_H_
#define STRATA_BASE_LIST_UNDER_LOCK_H_

#include <cstddef>
#include <mutex>

#include "strata/base/require_cxx20.h"

namespace strata {

// Calls `list` under `lock` when there is room for the `count()` objects that
// it lists. Calls `reserve(n)` without the lock to make room for n objects. So
// no memory is allocated under the lock.
template <class Lock, class Count, class Reserve, class List>
void ListUnderLock(Lock& lock, const Count& count, const Reserve& reserve,
                   const List& list) {
  std::size_t room = 0;
  while (true) {
    reserve(room);
    const std::lock_guard<Lock> guard(lock);
    if (count() <= room) {
      list();
      return;
    }
    room = 2 * count();  // the count may grow meanwhile
  }
}

}  // namespace strata

#endif  // STRATA_BASE_LIST_UNDER_LOCK_H_
