#ifndef STRATA_TESTS_TESTING_LAYERS_FAILING_ALLOCATOR_H_
#define STRATA_TESTS_TESTING_LAYERS_FAILING_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/decorator.h"

namespace strata {

// Forwards requests, except those that a plan refuses.
//
// Threads: call Fail before the calls that it affects.
class FailingAllocator final : public Decorator {
 public:
  // Requests to refuse, counted from the next request, from 1.
  struct Plan {
    std::uint64_t nth = 0;    // first request to fail; 0: none
    std::uint64_t count = 1;  // consecutive failures
    Failure::Reason reason = Failure::Reason::kDeviceMemory;
  };

  explicit FailingAllocator(std::shared_ptr<Allocator> underlying)
      : Decorator(std::move(underlying)) {}

  void Fail(const Plan& plan) {
    plan_ = plan;
    calls_ = 0;
  }
  std::uint64_t calls() const { return calls_; }
  std::uint64_t refused() const { return refused_; }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    const std::uint64_t call = ++calls_;
    if (plan_.nth == 0 || call < plan_.nth || call >= plan_.nth + plan_.count) {
      return Decorator::TryAllocate(request, failure);
    }
    ++refused_;
    failure = Failure();
    failure.reason = plan_.reason;
    failure.layer = name();
    failure.place = place();
    failure.requested_bytes = failure.rounded_bytes = request.bytes;
    return nullptr;
  }
  const char* name() const override { return "failing"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  Plan plan_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_FAILING_ALLOCATOR_H_
