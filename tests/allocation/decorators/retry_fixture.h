#ifndef STRATA_TESTS_ALLOCATION_DECORATORS_RETRY_FIXTURE_H_
#define STRATA_TESTS_ALLOCATION_DECORATORS_RETRY_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <thread>

#include "strata/allocation/decorators/retry_allocator.h"
#include "strata/tests/testing/layers/arena_place.h"
#include "strata/tests/testing/manual_clock.h"
#include "strata/tests/testing/parked_thread.h"

namespace strata {

// A thread that has called `allocator`, and may free memory there.
class Bystander : public ParkedThread {
 public:
  explicit Bystander(Allocator& allocator)
      : ParkedThread([&allocator] { allocator.Allocate(1).reset(); }) {}
};

// A place of a few bytes. Its requests wait on a clock that stands still.
class RetryFixture : public ::testing::Test {
 protected:
  static constexpr std::size_t kArenaBytes = 100;

  RetryOptions Options() {
    RetryOptions options;
    options.time = std::chrono::seconds(10);
    options.clock = &clock_;
    return options;
  }

  // Makes a request in a separate thread, and holds the result.
  class Asker {
   public:
    Asker(Allocator& allocator, std::size_t bytes)
        : thread_([this, &allocator, bytes] {
            result_ = allocator.AllocateOrNull(Request{bytes}, failure_);
          }) {}
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;
    ~Asker() {
      if (thread_.joinable()) thread_.join();
    }

    // Waits for the result.
    AllocationPtr& Get() {
      if (thread_.joinable()) thread_.join();
      return result_;
    }
    const Failure& failure() {
      Get();
      return failure_;
    }

   private:
    AllocationPtr result_;
    Failure failure_;
    std::thread thread_;
  };

  ManualClock clock_;
  ArenaPlace place_{kArenaBytes, Options()};
};

}  // namespace strata

#endif  // STRATA_TESTS_ALLOCATION_DECORATORS_RETRY_FIXTURE_H_
