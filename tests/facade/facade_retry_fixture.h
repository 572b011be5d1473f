#ifndef STRATA_TESTS_FACADE_FACADE_RETRY_FIXTURE_H_
#define STRATA_TESTS_FACADE_FACADE_RETRY_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/manual_clock.h"
#include "strata/tests/testing/parked_thread.h"

namespace strata {

// A facade whose waiting requests follow a clock of the test.
class FacadeRetryTest : public FacadeFixture {
 protected:
  AllocatorFacade& BuildWithClock(const std::string& options = "") {
    facade_ =
        std::make_unique<AllocatorFacade>(Parsed(options), platform_, clock_);
    return *facade_;
  }

  // Runs `body` while another idle thread exists that might free memory at
  // `place`.
  template <class Body>
  void BesideAnotherThread(Place place, Body body) {
    const ParkedThread other([&] { facade().Alloc(place, 100).reset(); });
    body();
  }

  // A request on `stream` in its own thread. It waits when the constructor
  // returns.
  class Waiting {
   public:
    Waiting(FacadeRetryTest& test, std::size_t bytes, Stream stream)
        : thread_([this, &test, bytes, stream] {
            result_ = test.facade().TryAlloc(kPlace, Request{bytes}, stream,
                                             failure_);
            ended_.set_value();
          }) {
      test.clock_.AwaitWaiters(1);
    }
    AllocationPtr Get() {
      thread_.join();
      return std::move(result_);
    }
    // True if it ends by itself within ten seconds.
    bool Ends() const {
      return end_.wait_for(std::chrono::seconds(10)) ==
             std::future_status::ready;
    }
    const Failure& failure() const { return failure_; }

   private:
    std::promise<void> ended_;
    std::future<void> end_ = ended_.get_future();
    AllocationPtr result_;
    Failure failure_;
    std::thread thread_;
  };

  // The failure of a request that must not wait: the clock stands still.
  Failure FailAtOnce(std::size_t bytes, Stream stream) {
    Failure failure;
    EXPECT_EQ(facade().TryAlloc(kPlace, Request{bytes}, stream, failure),
              nullptr);
    EXPECT_EQ(clock_.waits(), 0U);
    return failure;
  }

  ManualClock clock_;
};

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_FACADE_RETRY_FIXTURE_H_
