#ifndef STRATA_ALLOCATION_DIAGNOSTICS_TRACKING_ALLOCATOR_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_TRACKING_ALLOCATOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/base/clock.h"

namespace strata {

// Measures the allocations of one piece of a program, such as one kernel. Wrap
// an allocator while that piece runs, and read the numbers afterwards.
//
// Model: counts rounded sizes. Does not count null, and memory allocated inside
//   a capture, which belongs to the pool of the capture. Not in decorators.def:
//   a chain has `stat` for its whole life, and this layer is for a scope.
// Threads: any thread.
// Cost: a table entry and a lock per call.
// Lifetime: memory may outlive the scope. The Ptr and every live allocation
//   share the tracker; the last of them destroys it. The wrapped allocator must
//   outlive the tracker.
// Source: tf_bfc.md §2 (TrackingAllocator).
class TrackingAllocator
    final  // NOLINT(cppcoreguidelines-virtual-class-destructor)
    : public Decorator {
 public:
  struct Dropper {
    void operator()(TrackingAllocator* tracker) const noexcept;
  };
  using Ptr = std::unique_ptr<TrackingAllocator, Dropper>;

  // Bytes since the tracker was created.
  struct Sizes {
    std::size_t total_bytes = 0;  // of all allocations, including freed ones
    std::size_t peak_bytes = 0;   // most bytes live at once
    std::size_t live_bytes = 0;
  };
  // One allocation (positive) or free (negative), and its time.
  struct Record {
    std::int64_t bytes = 0;
    std::chrono::microseconds time{0};
  };

  // `clock` must outlive the tracker.
  static Ptr Make(Allocator& allocator, const Clock& clock = Clock::Steady());

  Sizes sizes() const;
  // Records in the order of the calls.
  std::vector<Record> records() const;
  // Number of an allocation: 1 for the first of this tracker. 0 if it is not a
  // live allocation of this tracker.
  std::uint64_t AllocationId(const Allocation& allocation) const;

  // Errors: kHostMemory if the host has no memory for the records.
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  const char* name() const override { return "tracking"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  TrackingAllocator(Allocator& allocator, const Clock& clock);
  ~TrackingAllocator() override = default;

  bool Count(const Allocation& allocation) noexcept;
  void Unreference() noexcept;
  std::chrono::microseconds Now() const;

  const Clock& clock_;
  mutable std::mutex mutex_;
  // The members below are guarded by mutex_.
  std::size_t references_ = 1;  // the Ptr and each live allocation
  Sizes sizes_;
  std::uint64_t last_id_ = 0;
  // Numbers of live allocations.
  std::unordered_map<const Allocation*, std::uint64_t> ids_;
  // Has capacity for the frees of all live allocations, so a free makes no heap
  // call.
  std::vector<Record> records_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_TRACKING_ALLOCATOR_H_
