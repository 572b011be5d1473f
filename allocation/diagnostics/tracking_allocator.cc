#include "strata/allocation/diagnostics/tracking_allocator.h"

#include <algorithm>
#include <new>

#include "strata/allocation/block_flags.h"

namespace strata {

TrackingAllocator::TrackingAllocator(Allocator& allocator, const Clock& clock)
    : Decorator(std::shared_ptr<Allocator>(std::shared_ptr<void>(),
                                           &allocator)),  // not owned
      clock_(clock) {
  set_debug_fill(allocator.debug_fill());
  set_allocation_log(allocator.allocation_log());
}

TrackingAllocator::Ptr TrackingAllocator::Make(Allocator& allocator,
                                               const Clock& clock) {
  return Ptr(new TrackingAllocator(allocator, clock));
}

void TrackingAllocator::Dropper::operator()(
    TrackingAllocator* tracker) const noexcept {
  tracker->Unreference();
}

void TrackingAllocator::Unreference() noexcept {
  bool is_last = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    is_last = --references_ == 0;
  }
  if (is_last) delete this;
}

std::chrono::microseconds TrackingAllocator::Now() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(clock_.Now());
}

bool TrackingAllocator::Count(const Allocation& allocation) noexcept {
  const auto bytes = static_cast<std::int64_t>(allocation.size());
  const std::lock_guard<std::mutex> guard(mutex_);
  try {
    // Capacity for this record, and for the free of each live allocation.
    const std::size_t needed = records_.size() + ids_.size() + 2;
    if (records_.capacity() < needed) records_.reserve(2 * needed);
    ids_.emplace(&allocation, last_id_ + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++last_id_;
  ++references_;
  sizes_.total_bytes += allocation.size();
  sizes_.live_bytes += allocation.size();
  sizes_.peak_bytes = std::max(sizes_.peak_bytes, sizes_.live_bytes);
  records_.push_back(Record{bytes, Now()});
  return true;
}

Allocation* TrackingAllocator::TryAllocate(const Request& request,
                                           Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  // The free of memory from a capture's pool bypasses this layer.
  if (allocation == nullptr || HasFlag(*allocation->block(), kBlockRouted) ||
      Count(*allocation)) {
    return allocation;
  }
  underlying()->DoFree(allocation);
  failure = Refusal(Failure::Reason::kHostMemory, request);
  return nullptr;
}

void TrackingAllocator::DoFree(Allocation* allocation) noexcept {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const std::size_t bytes = allocation->size();
    ids_.erase(allocation);
    sizes_.live_bytes -= bytes;
    records_.push_back(Record{-static_cast<std::int64_t>(bytes), Now()});
  }
  underlying()->DoFree(allocation);
  Unreference();
}

TrackingAllocator::Sizes TrackingAllocator::sizes() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return sizes_;
}

std::vector<TrackingAllocator::Record> TrackingAllocator::records() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return records_;
}

std::uint64_t TrackingAllocator::AllocationId(
    const Allocation& allocation) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = ids_.find(&allocation);
  return found == ids_.end() ? 0 : found->second;
}

}  // namespace strata
