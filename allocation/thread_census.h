#ifndef STRATA_ALLOCATION_THREAD_CENSUS_H_
#define STRATA_ALLOCATION_THREAD_CENSUS_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "strata/platform/fork_lock.h"
#include "strata/platform/initial_exec.h"

namespace strata {

// The places where the calling thread is counted, as bits of ThreadCensus.
//
// Cost: one thread-local load; initial-exec as in spin_lock.h.
STRATA_INITIAL_EXEC extern thread_local constinit std::atomic<std::uint64_t>
    t_counted_places;

// Which threads of the process use which places, and which of them wait for
// memory: so that nobody waits for a free that cannot come.
//
// Model: a thread is counted at a place from its first call there until it
//   ends. A place has hope while a thread counted there runs, or waits for
//   memory at a place that has hope. Whoever begins to wait at a place without
//   hope is told so, and waiters whose hope ends with a thread are told one by
//   one, the last that came first: the failure of one may help the others. A
//   thread that holds memory but never called us is not known, so a free of his
//   is not waited for.
// Threads: any thread. mutex() also guards the lists of waiters, because a
//   thread that ends may concern those of several places; it is taken only when
//   somebody waits, and when threads and places come and go.
// Cost: a thread's first call at a place and its end: a lock. Beginning to
//   wait: a pass over the counted threads.
class ThreadCensus {
 public:
  struct Entry;  // a counted thread

  // The bit of no place: no thread is counted there.
  static constexpr std::uint64_t kNowhere = std::uint64_t{1} << 63;

  // A thread that waits for memory at the place `place`. Guarded by mutex().
  struct Waiter {
    std::uint64_t place = 0;
    std::condition_variable wake;
    bool hopeless = false;     // nobody can free any more
    std::uint64_t number = 0;  // in order of coming; 0: has not come yet
    Entry* entry = nullptr;    // of its thread, while that is blocked
  };

  static ThreadCensus& Instance();

  std::mutex& mutex() { return mutex_; }

  // A bit that stands for a new place. Places share bits when there are more
  // than 63; then a thread of one counts as a thread of the other.
  std::uint64_t AddPlace() noexcept;
  void RemovePlace(std::uint64_t place) noexcept;

  // Counts the calling thread at `place`; 0 is none.
  static void Count(std::uint64_t place) noexcept {
    if (!IsCounted(place)) Instance().CountFirst(place);
  }
  // Whether Count has nothing to do.
  static bool IsCounted(std::uint64_t place) noexcept {
    const auto places = t_counted_places.load(std::memory_order_relaxed);
    return (~places & place) == 0;
  }
  // Whether more threads than one were ever counted at `place`.
  bool WasShared(std::uint64_t place) noexcept;

  // Hold mutex().

  // Notes that the calling thread, counted at `waiter.place`, does nothing
  // until it is woken. False, and nothing is noted, if nobody could wake it.
  bool Block(Waiter& waiter) noexcept;
  // It runs, or is about to. May be called twice.
  static void Unblock(Waiter& waiter) noexcept;

 private:
  struct Slot {
    std::uint64_t places = 0;   // that share the bit
    std::uint64_t threads = 0;  // ever counted
  };

  ThreadCensus();
  void CountFirst(std::uint64_t place) noexcept;
  void End(Entry& entry) noexcept;
  // In a forked child: the others are gone.
  void KeepOwnEntry() noexcept;
  std::uint64_t PlacesWithHope() const noexcept;

  std::mutex mutex_;
  const ForkLock fork_lock_;
  Entry* first_ = nullptr;         // every counted thread; by mutex_
  std::array<Slot, 63> slots_;     // by mutex_
  std::uint64_t last_number_ = 0;  // by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_THREAD_CENSUS_H_
