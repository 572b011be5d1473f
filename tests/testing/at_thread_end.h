#ifndef STRATA_TESTS_TESTING_AT_THREAD_END_H_
#define STRATA_TESTS_TESTING_AT_THREAD_END_H_

#include <functional>
#include <utility>

namespace strata {

// Calls `act` when the calling thread ends, after the destruction of all
// thread-local objects that are created after this call.
inline void AtThreadEnd(std::function<void()> act) {
  struct Last {
    Last() = default;
    Last(const Last&) = delete;
    Last& operator=(const Last&) = delete;
    ~Last() { act(); }
    std::function<void()> act;
  };
  static thread_local Last last;
  last.act = std::move(act);
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_AT_THREAD_END_H_
