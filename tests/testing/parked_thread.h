#ifndef STRATA_TESTS_TESTING_PARKED_THREAD_H_
#define STRATA_TESTS_TESTING_PARKED_THREAD_H_

#include <latch>
#include <thread>
#include <utility>

namespace strata {

// A thread that runs a function once and then idles until destruction.
// Allocators must assume that it may still free memory.
class ParkedThread {
 public:
  // Returns when `body` has returned in the thread.
  template <class Body>
  explicit ParkedThread(Body body)
      : thread_([this, body = std::move(body)] {
          body();
          ready_.count_down();
          end_.wait();
        }) {
    ready_.wait();
  }
  ParkedThread(const ParkedThread&) = delete;
  ParkedThread& operator=(const ParkedThread&) = delete;
  ~ParkedThread() { End(); }

  void End() {
    if (!thread_.joinable()) return;
    end_.count_down();
    thread_.join();
  }

 private:
  std::latch ready_{1};
  std::latch end_{1};
  std::thread thread_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_PARKED_THREAD_H_
