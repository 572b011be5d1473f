#ifndef STRATA_TESTS_TESTING_AT_THREAD_END_H_
#define STRATA_TESTS_TESTING_AT_THREAD_END_H_

#include <pthread.h>

#include <functional>
#include <utility>

namespace strata {

// Calls `act` when the calling thread ends, after the destructors of its
// thread-local objects and after the calls of ThreadEnd.
inline void AtThreadEnd(std::function<void()> act) {
  // The C library calls the destructors of keys in rounds, as long as a key has
  // a value.
  struct Last {
    std::function<void()> act;
    bool is_second_round = false;
  };
  static pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void* value) {
      auto* const last = static_cast<Last*>(value);
      if (std::exchange(last->is_second_round, true)) {
        last->act();
        delete last;
      } else {
        pthread_setspecific(key, last);
      }
    });
    return made;
  }();
  pthread_setspecific(key, new Last{std::move(act)});
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_AT_THREAD_END_H_
