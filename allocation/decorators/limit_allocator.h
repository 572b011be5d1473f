#ifndef STRATA_ALLOCATION_DECORATORS_LIMIT_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_LIMIT_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/reclaim/reclaimer.h"

namespace strata {

// A limit on the bytes in use, shared by the chains of a place.
//
// Threads: any thread; a reservation is atomic, so the sum never exceeds the
//   limit.
class Budget {
 public:
  explicit Budget(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Reserves `bytes`. Returns false, and changes nothing, if that would exceed
  // the limit.
  bool Reserve(std::size_t bytes);
  void Return(std::size_t bytes) { in_use_bytes_ -= bytes; }
  std::size_t in_use_bytes() const { return in_use_bytes_; }
  std::size_t limit_bytes() const { return limit_bytes_; }

 private:
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> in_use_bytes_{0};
};

// Limits the bytes that may be in use at once.
//
// Model: counts requested bytes, not rounded bytes. (The ChunkPool limits the
//   bytes held from the device.)
// Cost: one atomic exchange per call.
class LimitAllocator final : public Decorator {
 public:
  LimitAllocator(std::shared_ptr<Allocator> underlying,
                 std::shared_ptr<Budget> budget);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "limit"; }
  Stats stats() const override;
  HitPath* hit_path() override { return nullptr; }

 private:
  std::shared_ptr<Budget> budget_;
  Reclaimer* const ladder_;  // null: no request waits for the budget
  // bytes of the budget held by this layer
  std::atomic<std::size_t> held_bytes_{0};
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_LIMIT_ALLOCATOR_H_
