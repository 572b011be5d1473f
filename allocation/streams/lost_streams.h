#ifndef STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_
#define STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "strata/platform/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// Streams that turned out to be destroyed although nobody announced their end.
// Their chains are to be closed.
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
    // One by one: a list that destroys itself is as deep as it is long.
    for (auto lost = Take(); lost != nullptr; lost = Take()) {
    }
  }

  bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  void Add(std::unique_ptr<Lost> lost) noexcept {
    const std::lock_guard<SpinLock> guard(lock_);
    lost->next = std::move(first_);
    first_ = std::move(lost);
    any_ = true;
  }
  // One of them, without `next`; null if there is none.
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
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_LOST_STREAMS_H_
