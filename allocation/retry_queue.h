#ifndef STRATA_ALLOCATION_RETRY_QUEUE_H_
#define STRATA_ALLOCATION_RETRY_QUEUE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "strata/allocation/failure.h"
#include "strata/allocation/thread_census.h"
#include "strata/platform/clock.h"
#include "strata/platform/platform.h"
#include "strata/platform/stream.h"

namespace strata {

// What a RetryQueue asks about the place it serves. No lock is held.
class PlaceUsage {
 public:
  PlaceUsage() = default;
  PlaceUsage(const PlaceUsage&) = delete;
  PlaceUsage& operator=(const PlaceUsage&) = delete;
  virtual ~PlaceUsage() = default;

  // Bytes in live allocations; a lower bound, 0 if nothing better is known.
  virtual std::size_t LiveBytes() const noexcept = 0;
  // How many allocations were made so far, if none of them is live, nor is one
  // being made; nothing if one is, or if that is not known.
  virtual std::optional<std::uint64_t> CountIfUnused() const noexcept = 0;
  // A waiter counts from now on: on return, what was freed by those who did not
  // see it yet is where a search finds it.
  //
  // Errors: std::bad_alloc.
  virtual void SettleFrees() const {}
};

// What the requests of a place have waited, over all of them.
struct RetryWaits {
  std::uint64_t count = 0;  // times that a request went to sleep
  std::chrono::nanoseconds time{0};
};

struct RetryOptions {
  std::chrono::milliseconds time{0};  // longest wait of one request; 0: none
  bool alone = false;  // wait even if no thread is known that could free
  Clock* clock = &Clock::Steady();
  // Knows which streams are capturing; null: none ever is.
  std::shared_ptr<Platform> platform;
  const PlaceUsage* usage = nullptr;  // null: nothing is known
};

// The requests of one place that wait for memory to be freed, by any thread on
// any stream.
//
// Model: first come, first served, and no more is woken than can be served: a
//   free wakes the first waiter whose request could fit into what is free now
//   in total; when that one has tried, it wakes the next one behind it that
//   could still fit, whether it succeeded or not. A waiter joins, and has
//   frees settle, before it searches: so a free is either seen by the search or
//   wakes the waiter.
//   A request does not wait if it exceeds the limit or the device, if nothing
//   is in use, if its stream is capturing, or if no counted thread could free
//   memory (ThreadCensus). What a waiter's own search takes and gives back
//   wakes only those who searched at the same time: others have not missed it,
//   and waiters would wake each other for ever. A request that meets a free
//   block at once never joins, even if others wait.
// Threads: any thread.
// Cost: while nobody waits, a free pays one load.
// Source: tf_bfc.md R43, R45, W10 and §5.8; paddle.md §3.5, §5-B7.
class RetryQueue {
 public:
  class Stay;

  explicit RetryQueue(const RetryOptions& options = {});
  RetryQueue(const RetryQueue&) = delete;
  RetryQueue& operator=(const RetryQueue&) = delete;
  ~RetryQueue();

  bool is_on() const { return options_.time.count() > 0; }

  // The calling thread may free memory at this place, now or later.
  void CountThread() noexcept { ThreadCensus::Count(place_); }
  // That place, for the census; 0 if waiting is off.
  std::uint64_t place() const noexcept { return place_; }

  // Counts who waits in `count`, too. Before anybody does; it outlives
  // every wait.
  void CountWaitersIn(std::atomic<std::uint32_t>& count) noexcept {
    also_count_in_ = &count;
  }
  // Hold the lock under which the memory became free, or call it after.
  bool has_waiters() const noexcept { return waiters_.load() != 0; }
  // `bytes` that were live can be reused now; 0 for memory that was idle
  // before, but out of reach for a moment.
  void NotifyFree(std::size_t bytes) noexcept {
    if (has_waiters()) Wake(bytes, Failure::Reason::kNone);
  }
  // The same for those alone whose last failure was `reason`: so much of a
  // limit was taken in vain and is given back.
  void NotifyReturn(std::size_t bytes, Failure::Reason reason) noexcept {
    if (has_waiters()) Wake(bytes, reason);
  }

  // So far; those that sleep now do not count yet (tf_bfc.md R45).
  RetryWaits waits() const noexcept;

  // PlaceUsage::SettleFrees of the place, if it is known.
  void SettleFrees() const {
    if (options_.usage != nullptr) options_.usage->SettleFrees();
  }

  // PlaceUsage::LiveBytes of the place; 0 if it is not known.
  std::size_t LiveBytes() const noexcept {
    return options_.usage != nullptr ? options_.usage->LiveBytes() : 0;
  }

  // Whether waiting makes sense at all for a request of `stream` that failed.
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
  // In order of coming. Guarded by the census's mutex, as the rest:
  Stay* first_ = nullptr;
  Stay* last_ = nullptr;
  std::size_t freed_bytes_ = 0;  // while somebody waited
  std::uint64_t searches_ = 0;   // that waiters began
  RetryWaits waits_;
};

// One request's place in the queue, from the moment it joins.
//
// Threads: made, used and destroyed by the thread whose request it is.
// Lifetime: leaving passes a wake-up on that came too late.
class RetryQueue::Stay {
 public:
  Stay(RetryQueue& queue, const Failure& failure) noexcept;
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;
  ~Stay();

  // Call before each search.
  void BeginSearch() noexcept;
  // After a search failed with `failure`: waits until another one may succeed.
  // False if there is no point: its failure is what the caller gets.
  bool Wait(const Failure& failure) noexcept;

  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  friend class RetryQueue;

  // Hold the census's mutex.
  // Whether `searcher` may have kept this one from what it gives back now.
  bool MissedBy(const Stay& searcher) const;
  bool CouldFit() const;
  bool CouldFitBeside(std::size_t live_bytes) const;
  void Signal() noexcept;
  void PassOn(std::size_t live_bytes) noexcept;
  // True once there is a reason to search again, as there is when nobody is
  // left who could free; false if there was nobody to begin with.
  bool WaitForSignal(std::unique_lock<std::mutex>& lock) noexcept;

  RetryQueue& queue_;
  const std::chrono::nanoseconds deadline_;
  std::chrono::nanoseconds waited_{0};
  bool is_last_search_ = false;  // the deadline has passed
  // Allocations made when it last failed, if none was live then.
  std::optional<std::uint64_t> count_if_unused_;
  bool was_signalled_ = false;  // the search now made is due to a wake-up
  std::size_t freed_before_search_ = 0;

  // Guarded by the census's mutex:
  ThreadCensus::Waiter waiter_;
  Stay* previous_ = nullptr;
  Stay* next_ = nullptr;
  bool signalled_ = false;
  std::uint64_t search_ = 0;  // number of its last search
  // Searches begun by the end of its last one; the maximum: it goes on.
  std::uint64_t failed_at_ = std::numeric_limits<std::uint64_t>::max();
  Failure::Reason reason_;
  std::size_t bytes_;                 // of the request
  std::size_t ceiling_bytes_;         // most that can be live at once
  std::size_t missing_bytes_ = 0;     // must be freed before it can fit,
  std::size_t freed_when_known_ = 0;  // on top of this freed_bytes_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RETRY_QUEUE_H_
