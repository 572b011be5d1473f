#ifndef STRATA_ALLOCATION_RECLAIMER_H_
#define STRATA_ALLOCATION_RECLAIMER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/failure.h"
#include "strata/allocation/retry_queue.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// What to do when memory is exhausted, cheapest and least harmful first.
enum class ReclaimStep : std::size_t {
  kDrainFrees,         // take in frees that are only waiting to be noticed
  kFlushCaches,        // return cached blocks to their strategies
  kTakeIdleChunks,     // move idle chunks of other streams within reach
  kReleaseIdleChunks,  // give idle chunks back to the system
  kAwaitFrees,         // wait on the host for the frees that remain
  kCallbacks,          // ask the users' callbacks
  kAskOthers,          // ask other facades of the device for idle memory
  kReport,             // record the state in which every step failed
};
inline constexpr std::size_t kReclaimStepCount = 8;

// A part of a chain that can give memory back.
class ReclaimSource {
 public:
  ReclaimSource() = default;
  ReclaimSource(const ReclaimSource&) = delete;
  ReclaimSource& operator=(const ReclaimSource&) = delete;
  virtual ~ReclaimSource() = default;

  // An upper bound, in bytes, on what Reclaim could give now: to the system or,
  // `of_limit`, back to a limit on what is held.
  virtual std::size_t ReclaimableBytes(bool of_limit) const noexcept = 0;
  // Gives back what it can for a request of `bytes` on `stream`; returns the
  // bytes given. No lock is held.
  virtual std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept = 0;
};

// The one ladder of reactions to exhaustion at a place.
//
// Model: layers register sources under a step. Climb runs the steps in order
//   and lets the caller search again after each one that gave something, so a
//   block that a step brings back is never overlooked (pytorch.md §2.3). The
//   steps that give memory to the system are skipped if all of them together
//   could not meet the request: an impossible request flushes no cache.
//   A source may allocate and free; its own failures do not climb again.
//   Callbacks are asked after these steps, by priority, with a search after
//   each one that gave something. Rounds over all callbacks follow each other
//   while a round gives something. Their number is bounded or, without a
//   number, they end when two rounds in a row have changed nothing. A round
//   changes something if fewer bytes are in use, or more bytes are idle or free
//   on the device, than after any round before it. So threads that allocate
//   meanwhile cannot make the rounds endless.
//   Other facades of the device are asked once, if their idle memory and the
//   free memory of the device could together meet the request.
//   Memory that another thread is giving to the system is neither idle nor free
//   for a moment: a climb that found nothing waits for that and searches again.
//   What a wait for frees brings may be idle in the chain of another stream, so
//   the steps that take it from there run once more after it.
//   The last rung is to wait, in the RetryQueue, until somebody frees memory;
//   then the steps before the callbacks run again.
// Threads: any thread; no lock is held while a source or `search` runs.
// Cost: a copy of the list of sources per Climb.
class Reclaimer {
 public:
  // Unregisters on destruction, after waiting for calls in flight. Inside a
  // call of its own source it does not wait: the source then has to outlive
  // the calls.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&&) = default;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { Reset(); }
    void Reset() noexcept;

   private:
    friend class Reclaimer;
    struct Entry;
    class Calling;
    Registration(std::shared_ptr<Reclaimer> reclaimer,
                 std::shared_ptr<Entry> entry);

    std::shared_ptr<Reclaimer> reclaimer_;
    std::shared_ptr<Entry> entry_;
  };

  // Most rounds of callbacks per climb: `callback_rounds`, 0 is one. Below 0
  // there is no such number.
  explicit Reclaimer(const RetryOptions& retry = {},
                     std::int64_t callback_rounds = -1)
      : retry_(retry), callback_rounds_(callback_rounds) {}
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // `source` stays valid until the result is destroyed. Within a step, sources
  // of higher `priority` are asked first, then those registered first.
  static Registration Register(const std::shared_ptr<Reclaimer>& reclaimer,
                               ReclaimStep step, ReclaimSource& source,
                               int priority = 0);

  // Where requests of this place wait. Code that makes memory available
  // notifies it.
  RetryQueue& retry() { return retry_; }

  // Memory that another thread gives back outside the ladder, between these
  // calls: a climb that found nothing waits for the second one, and searches
  // again if that says that there was any.
  void BeginGiving() noexcept { ++giving_; }
  void EndGiving(bool gave) noexcept {
    if (gave) ++given_;
    --giving_;
  }

  // Runs the ladder for the request that failed with `failure`. `search` tries
  // again: true ends the climb; false leaves its reason in `failure`. Returns
  // whether a search succeeded. Never throws; if the host is out of memory, the
  // climb ends where it is.
  bool Climb(Stream stream, Failure& failure,
             FunctionRef<bool()> search) noexcept;

 private:
  using Entry = Registration::Entry;
  // Higher priorities first, then those that came first.
  using Order = std::pair<std::int64_t, std::uint64_t>;

  // The memory that a search might find, as far as the place knows.
  struct Supply;

  // Counts a thread in for as long as it gives memory to the system.
  class Giving;

  std::vector<std::shared_ptr<Entry>> Sources(ReclaimStep step) const;
  // Bytes that the steps which give memory to the system could give.
  std::size_t IdleBytes(bool of_limit) const;
  Supply SupplyFor(const Failure& failure) const;
  bool IsWorthReleasing(const Failure& failure) const;
  // The bytes that the sources of `step` gave.
  std::size_t RunStep(ReclaimStep step, Stream stream, std::size_t bytes);
  // `seen` is given_ as it was before the last search.
  bool RunSteps(Stream stream, Failure& failure, FunctionRef<bool()> search,
                std::uint64_t& seen);
  bool RunCallbacks(Stream stream, Failure& failure, FunctionRef<bool()> search,
                    std::uint64_t& seen);
  // Asks each callback once. Sets `gave` if one of them gave something.
  bool RunRound(Stream stream, Failure& failure, FunctionRef<bool()> search,
                std::uint64_t& seen, bool& gave);
  // Searches once more if others gave something.
  bool AskOthers(Stream stream, Failure& failure, FunctionRef<bool()> search,
                 std::uint64_t& seen);
  bool Retry(Stream stream, Failure& failure, FunctionRef<bool()> search,
             std::uint64_t& seen);
  bool SearchBehindOthers(const Failure& failure, FunctionRef<bool()> search,
                          std::uint64_t& seen) const;

  RetryQueue retry_;
  const std::int64_t callback_rounds_;
  std::atomic<int> giving_{0};           // threads inside such a step
  std::atomic<std::uint64_t> given_{0};  // steps that gave something
  mutable std::mutex mutex_;
  // By step, in the order in which they are asked. Guarded by mutex_.
  std::array<std::map<Order, std::shared_ptr<Entry>>, kReclaimStepCount>
      entries_;
  std::uint64_t registered_ = 0;  // so far; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECLAIMER_H_
