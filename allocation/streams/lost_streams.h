#ifndef STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_
#define STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// Streams that were destroyed without an announcement. Their chains must be
// closed.
//
// Threads: any thread.
class LostStreams {
 public:
  struct Lost {
    Stream stream;
    std::unique_ptr<Lost> next;
  };

  LostStreams() = default;
  LostStreams(const LostStreams&) = delete;
  LostStreams& operator=(const LostStreams&) = delete;
  ~LostStreams() {
    // One by one: the destructor of a linked list recurses once per element.
    for (auto lost = Take(); lost != nullptr; lost = Take()) {
    }
  }

  // True for the first call per stream, so that a stream is logged once. A
  // program may use a destroyed stream repeatedly, each time as a new chain.
  // Remembers the kMostTold newest streams.
  static constexpr std::size_t kMostTold = 1024;
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

  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  void Add(std::unique_ptr<Lost> lost) noexcept {
    const std::lock_guard<SpinLock> guard(lock_);
    lost->next = std::move(first_);
    first_ = std::move(lost);
    any_ = true;
  }
  // Removes one entry, without `next`; null if there is none.
  std::unique_ptr<Lost> Take() noexcept {
    const std::lock_guard<SpinLock> guard(lock_);
    std::unique_ptr<Lost> lost = std::move(first_);
    if (lost != nullptr) first_ = std::move(lost->next);
    any_ = first_ != nullptr;
    return lost;
  }

 private:
  std::atomic<bool> any_{false};
  SpinLock lock_;
  std::unique_ptr<Lost> first_;  // guarded by lock_
  std::mutex told_mutex_;
  // Uid and device; uids increase. Guarded by told_mutex_.
  std::set<std::pair<std::uint64_t, int>> told_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_
