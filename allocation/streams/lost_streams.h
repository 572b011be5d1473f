#ifndef STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_
#define STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_

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

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_
