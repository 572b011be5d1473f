#ifndef STRATA_ALLOCATION_STREAMS_STREAMS_WITHOUT_WAITS_H_
#define STRATA_ALLOCATION_STREAMS_STREAMS_WITHOUT_WAITS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "strata/platform/stream.h"

namespace strata {

// Streams of a facade in which Strata inserts no wait, and for which no other
// stream waits on the device. Example: streams of collectives. A wait that one
// rank inserts and another does not may order two collectives differently.
//
// Threads: any thread.
// Cost: any() is one load. The other functions take a lock if any() is true.
class StreamsWithoutWaits {
 public:
  // Errors: std::bad_alloc.
  void Add(const Stream& stream) {
    const std::lock_guard<std::mutex> guard(mutex_);
    streams_.emplace(stream.device, stream.uid);
    any_ = true;
  }
  void Remove(const Stream& stream) noexcept {
    if (!any()) return;
    const std::lock_guard<std::mutex> guard(mutex_);
    streams_.erase({stream.device, stream.uid});
    any_ = !streams_.empty();
  }

  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  bool Has(const Stream& stream) const noexcept {
    if (!any()) return false;
    const std::lock_guard<std::mutex> guard(mutex_);
    return streams_.count({stream.device, stream.uid}) != 0;
  }

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  // Device and uid; guarded by mutex_.
  std::set<std::pair<std::int32_t, std::uint64_t>> streams_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_STREAMS_WITHOUT_WAITS_H_
