#ifndef STRATA_ALLOCATION_RECLAIM_THREAD_CENSUS_H_
#define STRATA_ALLOCATION_RECLAIM_THREAD_CENSUS_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "strata/base/fork_lock.h"
#include "strata/base/this_thread.h"

namespace strata {

// Counts which threads of the process use which places, and which of them wait
// for memory. So no thread waits for a free that cannot come.
//
// Model: a thread is counted at a place from its first Count() there until it
//   ends. A place has hope while a thread counted there runs, or waits at a
//   place that has hope. Block() fails at a place without hope. When the end of
//   a thread ends the hope of waiters, they are notified one by one, the latest
//   first, because the failure of one may help the others. A thread that holds
//   memory but was never counted is unknown; no request waits for its frees.
// Threads: any thread. mutex() also guards the lists of waiters, because the
//   end of a thread may affect waiters of several places. It is acquired only
//   when a request waits, and when threads and places are added or removed.
// Cost: the first Count() of a thread at a place, and its end: one lock.
//   Block(): a pass over the counted threads.
class ThreadCensus {
 public:
  struct Entry;  // a counted thread

  // A thread that waits for memory at `place`. Guarded by mutex().
  struct Waiter {
    std::uint64_t place = 0;
    std::condition_variable wake;
    bool hopeless = false;     // no thread can free memory any more
    std::uint64_t number = 0;  // in order of arrival; 0: not yet blocked
    Entry* entry = nullptr;    // of its thread, while the thread is blocked
  };

  static ThreadCensus& Instance();

  std::mutex& mutex() { return mutex_; }

  // Returns a bit for a new place. With more than 64 places, places share bits;
  // a thread of one then counts as a thread of the other.
  std::uint64_t AddPlace() noexcept;
  void RemovePlace(std::uint64_t place) noexcept;

  // Counts the calling thread at `place`; 0 is none.
  static void Count(std::uint64_t place) noexcept {
    if (!IsCounted(place)) Instance().CountFirst(place);
  }
  // True if Count() has nothing to do. `self` is the calling thread.
  static bool IsCounted(std::uint64_t place,
                        const ThreadState& self = ThisThread()) noexcept {
    const auto places = self.counted_places.load(std::memory_order_relaxed);
    return (~places & place) == 0;
  }
  // True if more than one thread was ever counted at `place`.
  bool WasShared(std::uint64_t place) noexcept;

  // Removes the calling thread, when it ends.
  static void EndThread() noexcept;

  // The functions below need mutex().

  // Records that the calling thread, counted at `waiter.place`, is blocked
  // until it is woken. Returns false, and records nothing, if no thread could
  // wake it.
  bool Block(Waiter& waiter) noexcept;
  // Records that the thread runs again. May be called twice.
  static void Unblock(Waiter& waiter) noexcept;

 private:
  struct Slot {
    std::uint64_t places = 0;   // number of places that share the bit
    std::uint64_t threads = 0;  // number of threads ever counted
  };

  ThreadCensus();
  void CountFirst(std::uint64_t place) noexcept;
  void End() noexcept;
  // Removes the entries of all other threads, in a forked child.
  void KeepOwnEntry() noexcept;
  std::uint64_t PlacesWithHope() const noexcept;

  static thread_local constinit Entry t_own;

  std::mutex mutex_;
  const ForkLock fork_lock_;
  Entry* first_ = nullptr;         // every counted thread; guarded by mutex_
  std::array<Slot, 64> slots_;     // guarded by mutex_
  std::uint64_t last_number_ = 0;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECLAIM_THREAD_CENSUS_H_
