#ifndef STRATA_ALLOCATION_TRACKING_ALLOCATOR_H_
#define STRATA_ALLOCATION_TRACKING_ALLOCATOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/platform/clock.h"

namespace strata {

// Watches what one piece of a program, such as one kernel, allocates: put it
// around an allocator for as long as that piece runs, and ask it afterwards.
//
// Model: counts the sizes as rounded. What is null is not counted, nor what is
//   allocated inside a capture, which belongs to its pool. Not a line of
//   decorators.def: a chain has `stat` for its whole life; this is for a
//   scope.
// Threads: any thread.
// Cost: a table entry and a lock per call.
// Lifetime: memory outlives its scope. The tracker belongs to its Ptr and to
//   every live allocation, and goes with the last of them. The allocator it is
//   put around outlives it.
// Source: tf_bfc.md §2 (TrackingAllocator).
class TrackingAllocator
    final  // NOLINT(cppcoreguidelines-virtual-class-destructor)
    : public Decorator {
 public:
  struct Dropper {
    void operator()(TrackingAllocator* tracker) const noexcept;
  };
  using Ptr = std::unique_ptr<TrackingAllocator, Dropper>;

  // Bytes, since the tracker was made.
  struct Sizes {
    std::size_t total_bytes = 0;  // of all allocations, freed ones too
    std::size_t peak_bytes = 0;   // most that was live at once
    std::size_t live_bytes = 0;
  };
  // One allocation (positive) or free (negative), and when.
  struct Record {
    std::int64_t bytes = 0;
    std::chrono::microseconds time{0};
  };

  // `clock` outlives the tracker too.
  static Ptr Make(Allocator& allocator, const Clock& clock = Clock::Steady());

  Sizes sizes() const;
  // In the order of the calls.
  std::vector<Record> records() const;
  // 1 for the first allocation of this tracker, and so on; 0 for what is not a
  // live one of it.
  std::uint64_t AllocationId(const Allocation& allocation) const;

  // Errors: if the host has no memory for the records, the request fails with
  //   kHostMemory.
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
  // All that follows is guarded by mutex_.
  std::size_t references_ = 1;  // of the Ptr and of each live allocation
  Sizes sizes_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<const Allocation*, std::uint64_t> ids_;  // of live ones
  // Has room for the frees of all that is live: a free makes no heap call.
  std::vector<Record> records_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_TRACKING_ALLOCATOR_H_
