#ifndef STRATA_ALLOCATION_DECORATORS_RETRY_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_RETRY_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/reclaim/reclaimer.h"

namespace strata {

// Notifies the RetryQueue of the place of every free, so that requests which
// failed for lack of memory can wait for it. The wait is the last step of the
// Reclaimer (reclaimer.h), above this layer.
//
// Model: hits bypass this layer; the front notifies the queue for them. Without
//   a Reclaimer, or if its queue is off, the layer only forwards.
// Threads: any thread.
// Cost: while no request waits, one load per free, and one per call to count
//   the thread.
// Source: paddle.md §3.5 without its faults §5-B6 and B7.
class RetryAllocator final : public Decorator {
 public:
  explicit RetryAllocator(std::shared_ptr<Allocator> underlying);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  std::size_t Release() noexcept override;
  const char* name() const override { return "retry"; }

 private:
  void Notify(std::size_t bytes) noexcept;

  Reclaimer* const ladder_;  // null: there is none
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_RETRY_ALLOCATOR_H_
