#ifndef STRATA_ALLOCATION_RECLAIM_RETRY_QUEUE_H_
#define STRATA_ALLOCATION_RECLAIM_RETRY_QUEUE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "strata/allocation/failure.h"
#include "strata/allocation/reclaim/thread_census.h"
#include "strata/base/clock.h"
#include "strata/platform/platform.h"
#include "strata/platform/stream.h"

namespace strata {

// Queries of a RetryQueue about the place it serves. Called with no lock held.
class PlaceUsage {
 public:
  PlaceUsage() = default;
  PlaceUsage(const PlaceUsage&) = delete;
  PlaceUsage& operator=(const PlaceUsage&) = delete;
  virtual ~PlaceUsage() = default;

  // Bytes in live allocations. A lower bound; 0 if unknown.
  virtual std::size_t LiveBytes() const noexcept = 0;
  // Number of allocations so far, if none is live and none is in progress.
  // Nothing if one is, or if that is unknown.
  virtual std::optional<std::uint64_t> CountIfUnused() const noexcept = 0;
  // Completes frees by threads that did not yet see the new waiter. On return,
  // a search finds the memory they freed.
  //
  // Errors: std::bad_alloc.
  virtual void SettleFrees() const {}
};

// Waits of the requests of a place, in total.
struct RetryWaits {
  std::uint64_t count = 0;  // number of times that a request slept
  std::chrono::nanoseconds time{0};
};

struct RetryOptions {
  std::chrono::milliseconds time{0};  // longest wait of one request; 0: none
  bool alone = false;  // wait even if no known thread could free memory
  Clock* clock = &Clock::Steady();
  // Reports which streams are capturing; null: none ever is.
  std::shared_ptr<Platform> platform;
  const PlaceUsage* usage = nullptr;  // null: nothing is known
};

// The requests of one place that wait until a thread frees memory, on any
// stream.
//
// Model: first come, first served. A free wakes the first waiter that could fit
//   into the total of the free memory. After that waiter has tried, it wakes
//   the next waiter that could still fit, even if it failed itself. A waiter
//   joins the queue and settles the frees before it searches. So either its
//   search finds the memory of a free, or the free wakes it.
//   - A request does not wait if it exceeds the limit or the device, if no
//     memory is in use, if its stream is capturing, or if no counted thread
//     could free memory (ThreadCensus).
//   - Memory that the search of a waiter acquires and releases again wakes only
//     waiters that searched at the same time. Other waiters have not missed it,
//     and would wake each other for ever.
//   - A request that finds a free block at once never joins, even if others
//     wait.
// Threads: any thread.
// Cost: while no request waits, a free costs one load.
// Source: tf_bfc.md R43, R45, W10 and §5.8; paddle.md §3.5, §5-B7.
class RetryQueue {
 public:
  class Stay;

  explicit RetryQueue(const RetryOptions& options = {});
  RetryQueue(const RetryQueue&) = delete;
  RetryQueue& operator=(const RetryQueue&) = delete;
  ~RetryQueue();

  bool is_on() const { return options_.time.count() > 0; }

  // Records that the calling thread may free memory at this place, now or
  // later.
  void CountThread() noexcept { ThreadCensus::Count(place_); }
  // True if CountThread() of `self`, the calling thread, has nothing to do.
  bool knows(const ThreadState& self) const noexcept {
    return ThreadCensus::IsCounted(place_, self);
  }

  // Also counts the waiters in `count`. Call it before the first wait. `count`
  // must outlive every wait.
  void CountWaitersIn(std::atomic<std::uint32_t>& count) noexcept {
    also_count_in_ = &count;
  }
  // True if requests wait. Call it under the lock under which the memory became
  // free, or later.
  bool has_waiters() const noexcept { return waiters_.load() != 0; }
  // Notifies the queue that `bytes` which were live can be reused. 0 for memory
  // that was idle before and out of reach for a moment.
  void NotifyFree(std::size_t bytes) noexcept {
    if (has_waiters()) Wake(bytes, Failure::Reason::kNone);
  }
  // Notifies only waiters with the last failure `reason`: `bytes` of a limit
  // were claimed in vain and are returned.
  void NotifyReturn(std::size_t bytes, Failure::Reason reason) noexcept {
    if (has_waiters()) Wake(bytes, reason);
  }

  // Waits so far. A wait counts when it ends (tf_bfc.md R45).
  RetryWaits waits() const noexcept;

  // Calls PlaceUsage::SettleFrees() of the place, if it is known.
  void SettleFrees() const {
    if (options_.usage != nullptr) options_.usage->SettleFrees();
  }

  // PlaceUsage::LiveBytes of the place; 0 if it is not known.
  std::size_t LiveBytes() const noexcept {
    return options_.usage != nullptr ? options_.usage->LiveBytes() : 0;
  }

  // True if a request of `stream` that failed should wait at all.
  bool MayWait(Stream stream, const Failure& failure) noexcept;

 private:
  bool IsCapturing(Stream stream) const noexcept;
  void Wake(std::size_t bytes, Failure::Reason reason) noexcept;
  void AddWaiter() noexcept {
    if (also_count_in_ != nullptr) ++*also_count_in_;
    ++waiters_;
  }
  void RemoveWaiter() noexcept {
    --waiters_;
    if (also_count_in_ != nullptr) --*also_count_in_;
  }

  const RetryOptions options_;
  const std::uint64_t place_;  // in the census; 0 if waiting is off
  std::atomic<int> waiters_{0};
  std::atomic<std::uint32_t>* also_count_in_ = nullptr;
  // Waiters in the order of arrival. The members below are guarded by the mutex
  // of the census.
  Stay* first_ = nullptr;
  Stay* last_ = nullptr;
  std::size_t freed_bytes_ = 0;  // freed while a request waited
  std::uint64_t searches_ = 0;   // searches that waiters began
  RetryWaits waits_;
};

// The entry of one request in the queue.
//
// Threads: created, used and destroyed by the thread of the request.
// Lifetime: the destructor passes on a wake-up that came too late.
class RetryQueue::Stay {
 public:
  Stay(RetryQueue& queue, const Failure& failure) noexcept;
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;
  ~Stay();

  // Begins a search. Call it before each search.
  void BeginSearch() noexcept;
  // Waits, after a search failed with `failure`, until another search may
  // succeed. Returns false if waiting is pointless; then the request fails with
  // `failure`.
  bool Wait(const Failure& failure) noexcept;

  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  friend class RetryQueue;

  // The functions below need the mutex of the census.
  // True if `searcher` may have kept this request from memory that it now
  // releases.
  bool MissedBy(const Stay& searcher) const;
  bool CouldFit() const;
  bool CouldFitBeside(std::size_t live_bytes) const;
  void Signal() noexcept;
  void PassOn(std::size_t live_bytes) noexcept;
  // Returns true if there is a reason to search again. That includes that no
  // thread is left that could free memory. Returns false if there was no such
  // thread at the start.
  bool WaitForSignal(std::unique_lock<std::mutex>& lock) noexcept;

  RetryQueue& queue_;
  const std::chrono::nanoseconds deadline_;
  std::chrono::nanoseconds waited_{0};
  bool is_last_search_ = false;  // the deadline has passed
  // Number of allocations at the last failure, if none was live then.
  std::optional<std::uint64_t> count_if_unused_;
  bool was_signalled_ = false;  // the present search follows a wake-up
  std::size_t freed_before_search_ = 0;

  // The members below are guarded by the mutex of the census.
  ThreadCensus::Waiter waiter_;
  Stay* previous_ = nullptr;
  Stay* next_ = nullptr;
  bool signalled_ = false;
  std::uint64_t search_ = 0;  // number of the last search
  // Number of searches begun when the last search ended; the maximum while it
  // runs.
  std::uint64_t failed_at_ = std::numeric_limits<std::uint64_t>::max();
  Failure::Reason reason_;
  std::size_t bytes_;          // of the request
  std::size_t ceiling_bytes_;  // most that can be live at once
  // bytes to be freed before the request can fit, counted
  std::size_t missing_bytes_ = 0;
  std::size_t freed_when_known_ = 0;  // from this value of freed_bytes_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECLAIM_RETRY_QUEUE_H_
