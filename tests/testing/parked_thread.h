#ifndef STRATA_TESTS_TESTING_PARKED_THREAD_H_
#define STRATA_TESTS_TESTING_PARKED_THREAD_H_

#include <latch>
#include <thread>
#include <utility>

namespace strata {

// A thread that did something once and then does nothing until it is told to
// end: one that may free memory as far as anybody knows.
class ParkedThread {
 public:
  // Returns when `body` has run in the thread.
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
