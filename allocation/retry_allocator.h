#ifndef STRATA_ALLOCATION_RETRY_ALLOCATOR_H_
#define STRATA_ALLOCATION_RETRY_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/reclaimer.h"

namespace strata {

// Lets requests that fail for lack of memory wait until another thread frees
// some: it tells the place's RetryQueue of every free. The waiting itself is
// the last rung of the place's ladder (reclaimer.h), above this layer.
//
// Model: hits go past this layer; the front does the telling for them. Without
//   a ladder, or with one whose queue is off, the layer only forwards.
// Threads: any thread.
// Cost: while nobody waits, one load per free and one per call to count the
//   thread.
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

#endif  // STRATA_ALLOCATION_RETRY_ALLOCATOR_H_
