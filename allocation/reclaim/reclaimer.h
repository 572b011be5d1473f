#ifndef STRATA_ALLOCATION_RECLAIM_RECLAIMER_H_
#define STRATA_ALLOCATION_RECLAIM_RECLAIMER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/failure.h"
#include "strata/allocation/reclaim/retry_queue.h"
#include "strata/base/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// Runs the reactions to exhausted memory at a place.
//
// Model: layers register sources under a step. Climb() runs the steps in order.
//   After each step that released memory, the caller searches again, so a block
//   that a step frees is never overlooked (pytorch.md §2.3).
//   - Steps that release memory to the system are skipped if all of them
//     together could not meet the request. So an impossible request flushes no
//     cache.
//   - A source may allocate and free. Its own failures do not start another
//     climb.
//   - Callbacks run after these steps, by priority. A search follows each
//     callback that released memory. Rounds over all callbacks repeat while a
//     round releases memory. Their number is bounded by `callback_rounds`;
//     without a bound they end after two rounds in a row without change. A
//     round is a change if fewer bytes are in use, or more bytes are idle or
//     free on the device, than after any earlier round. So threads that
//     allocate concurrently cannot make the rounds endless.
//   - Other facades of the device are asked once, if their idle memory, the
//     idle memory here and the free memory of the device could together meet
//     the request.
//   - While another thread releases memory to the system, that memory is
//     neither idle nor free for a moment. A climb that found nothing waits for
//     this and searches again.
//   - Memory freed by a wait for frees, or by a search, may be idle in the
//     chain of another stream. So the steps that move it run once more after
//     the wait.
//   - The last step waits in the RetryQueue until a thread frees memory. Then
//     the steps before the callbacks run again.
// Threads: any thread; no lock is held while a source or `search` runs.
// Cost: a copy of the list of sources per Climb().
class Reclaimer {
 public:
  // The reactions to exhausted memory, the cheapest and least harmful first.
  enum class Step : std::size_t {
    kDrainFrees,         // complete deferred frees that need no more wait
    kFlushCaches,        // return cached blocks to their strategies
    kTakeIdleChunks,     // make idle chunks of other streams available
    kReleaseIdleChunks,  // release idle chunks to the system
    kAwaitFrees,         // wait on the host for deferred frees
    kCallbacks,          // call the callbacks of users
    kAskOthers,          // ask other facades of the device for idle memory
    kReport,             // record the state when all steps have failed
  };
  static constexpr std::size_t kStepCount = 8;

  class Source;  // a part of a chain that can release memory
  class Call;    // a source that calls a function

  // A registered source. The destructor unregisters it and waits for calls in
  // flight. Inside a call of its own source it does not wait; then the source
  // must outlive the calls.
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
    Registration(std::shared_ptr<Reclaimer> reclaimer,
                 std::shared_ptr<Entry> entry);

    std::shared_ptr<Reclaimer> reclaimer_;
    std::shared_ptr<Entry> entry_;
  };

  // `callback_rounds`: most rounds of callbacks per climb; 0 means one; below
  // 0: no bound.
  explicit Reclaimer(const RetryOptions& retry = {},
                     std::int64_t callback_rounds = -1)
      : retry_(retry), callback_rounds_(callback_rounds) {}
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Registers `source`, which must live until the result is destroyed. Within a
  // step, sources with a higher `priority` run first, then sources that
  // registered earlier.
  static Registration Register(const std::shared_ptr<Reclaimer>& reclaimer,
                               Step step, Source& source, int priority = 0);

  // Queue in which requests of this place wait. Code that makes memory
  // available notifies it.
  RetryQueue& retry() { return retry_; }

  // Bracket a release of memory outside the reclaim steps. A climb of another
  // thread that found nothing waits for EndGiving(), and searches again if
  // `gave` is true. Both are called by the same thread.
  void BeginGiving() noexcept;
  void EndGiving(bool gave) noexcept;

  // Runs the steps for the request that failed with `failure`. `search` tries
  // again: true ends the climb; false stores its reason in `failure`. Returns
  // true if a search succeeded. Never throws; if the host runs out of memory,
  // the climb ends.
  bool Climb(Stream stream, Failure& failure,
             FunctionRef<bool()> search) noexcept;

 private:
  using Entry = Registration::Entry;
  // Higher priorities first, then earlier registrations.
  using Order = std::pair<std::int64_t, std::uint64_t>;

  // Memory that a search might find, as far as it is known.
  struct Supply;

  std::vector<std::shared_ptr<Entry>> Sources(Step step) const;
  // Bytes that the steps which release memory to the system could release.
  std::size_t IdleBytes(bool of_limit) const;
  Supply SupplyFor(const Failure& failure) const;
  bool IsWorthReleasing(const Failure& failure) const;
  // Runs the sources of `step`. Returns the bytes released.
  std::size_t RunStep(Step step, Stream stream, std::size_t bytes);
  // Runs the own steps. `seen` is the value of given_ before the last search.
  bool RunSteps(Stream stream, Failure& failure, FunctionRef<bool()> search,
                std::uint64_t& seen);
  bool RunCallbacks(Stream stream, Failure& failure, FunctionRef<bool()> search,
                    std::uint64_t& seen);
  // Runs each callback once. Sets `gave` if one of them released memory.
  bool RunRound(Stream stream, Failure& failure, FunctionRef<bool()> search,
                std::uint64_t& seen, bool& gave);
  // Asks other facades. Searches once more if they released memory, and then
  // runs the own steps again.
  bool AskOthers(Stream stream, Failure& failure, FunctionRef<bool()> search,
                 std::uint64_t& seen);
  bool Retry(Stream stream, Failure& failure, FunctionRef<bool()> search,
             std::uint64_t& seen);
  bool SearchBehindOthers(const Failure& failure, FunctionRef<bool()> search,
                          std::uint64_t& seen) const;

  RetryQueue retry_;
  const std::int64_t callback_rounds_;
  std::atomic<int> giving_{0};           // threads that now release memory
  std::atomic<std::uint64_t> given_{0};  // steps that released memory
  mutable std::mutex mutex_;
  // Sources by step, in the order in which they run. Guarded by mutex_.
  std::array<std::map<Order, std::shared_ptr<Entry>>, kStepCount> entries_;
  std::uint64_t registered_ = 0;  // sources so far; guarded by mutex_
};

// A part of a chain that can release memory.
class Reclaimer::Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Upper bound in bytes of the memory that Reclaim() could release now: to the
  // system or, if `of_limit`, to a limit on held memory. Default: 0.
  virtual std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept {
    return 0;
  }
  // Releases memory for a request of `bytes` on `stream`. Returns the bytes
  // released. No lock is held.
  virtual std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept = 0;
};

// A source that calls a function, and reports no reclaimable bytes. `call` has
// the parameter `bytes` and the result of Source::Reclaim.
class Reclaimer::Call final : public Reclaimer::Source {
 public:
  using Function = std::function<std::size_t(std::size_t bytes)>;

  explicit Call(Function call) : call_(std::move(call)) {}
  std::size_t Reclaim(Stream /*stream*/, std::size_t bytes) noexcept override {
    return call_(bytes);
  }

 private:
  const Function call_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECLAIM_RECLAIMER_H_
