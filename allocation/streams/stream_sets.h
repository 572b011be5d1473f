#ifndef STRATA_ALLOCATION_STREAMS_STREAM_SETS_H_
#define STRATA_ALLOCATION_STREAMS_STREAM_SETS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "strata/platform/stream.h"

namespace strata {

// Streams that were destroyed without an announcement. Their chains must be
// closed.
//
// Threads: any thread.
class LostStreams {
 public:
  // Remembered by TellOnce(): so many of the newest streams.
  static constexpr std::size_t kMostTold = 1024;

  // True for the first call per stream, so that a stream is logged once. A
  // program may use a destroyed stream repeatedly, each time as a new chain.
  bool TellOnce(const Stream& stream) noexcept {
    const std::lock_guard<std::mutex> guard(told_mutex_);
    try {
      if (!told_.emplace(stream.uid, stream.device).second) return false;
      if (told_.size() > kMostTold) told_.erase(told_.begin());
    } catch (const std::bad_alloc&) {
      // A repeated message is better than none.
    }
    return true;
  }
  // Whether TimelineTable::TakeLost() may find a stream.
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  void set_any(bool any) noexcept { any_ = any; }

 private:
  std::atomic<bool> any_{false};
  std::mutex told_mutex_;
  // Uid and device; uids increase. Guarded by told_mutex_.
  std::set<std::pair<std::uint64_t, int>> told_;
};

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

#endif  // STRATA_ALLOCATION_STREAMS_STREAM_SETS_H_
