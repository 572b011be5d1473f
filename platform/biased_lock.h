#ifndef STRATA_PLATFORM_BIASED_LOCK_H_
#define STRATA_PLATFORM_BIASED_LOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/platform/biased_lock_core.h"
#include "strata/platform/initial_exec.h"
#include "strata/platform/process_barrier.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// What a BiasedLock is made of in a running program. Names as in
// biased_lock_core.h.
class BiasedLockMachine {
 public:
  template <class T>
  using Atomic = std::atomic<T>;
  template <class T>
  using Guarded = T;

  // A thread's. Whole cache lines, two because cores fetch neighbours too.
  struct alignas(128) Slot {
    std::atomic<const void*> held{nullptr};  // the lock held by bias
    Slot* next = nullptr;                    // idle slots
  };

  // So few that a stream of its own gains soon, so many that a look from
  // another thread does not count.
  static constexpr std::uint32_t kFirstRun = 64;
  // A removal costs 40 us, the lock word 8 ns: from 5000 uses on it pays.
  static constexpr std::uint32_t kMostRun = 65536;
  // So few that threads which share a lock soon have it plain, so many that who
  // looks now and then at a lock that is little used does not bring that about.
  static constexpr std::uint32_t kMostTurns = 4096;

  // `barrier`: of locks that may be biased; null, or not available: of others.
  explicit BiasedLockMachine(ProcessBarrier* barrier)
      : barrier_(barrier != nullptr && barrier->is_available() ? barrier
                                                               : nullptr) {}
  bool has_barrier() const { return barrier_ != nullptr; }

  static Slot* Nobody() { return &nobody_; }
  static Slot* MySlot() { return t_slot; }
  static const void* Self() { return &t_slot; }
  // There are kSlots; a thread that got none when it asked first stays without.
  // A thread gives its slot back when it ends, and whoever gets it owns what
  // the thread owned. A thread's first call takes memory of the C library.
  static Slot* TakeSlot() noexcept;
  class Wait {
   public:
    template <class T>
    void While(const std::atomic<T>& word, T value) {
      while (word.load(std::memory_order_acquire) == value) wait_.Once();
    }

   private:
    SpinWait wait_;
  };
  void Barrier() noexcept { barrier_->Run(); }
  // Whether the calling thread holds a lock as its owner.
  static bool IsInside() noexcept {
    return t_slot != nullptr &&
           t_slot->held.load(std::memory_order_relaxed) != nullptr;
  }

  static constexpr std::size_t kSlots = 256;

 private:
  class IdleSlots;
  class OwnSlot;

  static Slot nobody_;
  static IdleSlots idle_slots_;
  STRATA_INITIAL_EXEC static thread_local constinit Slot* t_slot;

  ProcessBarrier* const barrier_;
};

// A lock that one thread at a time may own: the owner locks and unlocks it
// without an atomic read-modify-write. For locks that a thread uses many times
// in a row.
//
// Model: as SpinLock, which it is unless biased: while no thread owns it, where
//   the system has no ProcessBarrier, and for an owner that holds another
//   biased lock. A thread becomes the owner when it took the lock 64 times in a
//   row, and after each removal twice as many, up to 65536; any other thread
//   that locks removes it. Once it went from one thread to another 4096 times
//   without an owner in between, it is a spin lock, until Renew. Meets
//   BasicLockable and Lockable; try_lock of another thread may remove an owner.
//   Not recursive, not fair. Unlocking touches the lock last, so the last user
//   of an object may delete it then.
// Cost: 1 to 2 ns a pair for the owner, 8 ns for an uncontended pair otherwise;
//   a removal 20 to 40 us, for the thread that removes. 48 bytes.
// Threads: any thread. How the thread sanitizer sees it: biased_lock_core.h.
// Source: hotpath.md §2, §5; `BiasedLockModelTest` looks at all orders.
class BiasedLock {
 public:
  // Never biased.
  BiasedLock() : BiasedLock(nullptr) {}
  explicit BiasedLock(bool may_bias)
      : BiasedLock(may_bias ? &ProcessBarrier::Instance() : nullptr) {}
  // `barrier` outlives this. Null, or not available: never biased.
  explicit BiasedLock(ProcessBarrier* barrier)
      : core_(BiasedLockMachine(barrier)) {}

  // Holds a lock, and remembers how: a few instructions less than lock() and
  // unlock(), which ask again.
  class Guard {
   public:
    explicit Guard(BiasedLock& lock) : lock_(lock), slot_(lock.core_.Lock()) {
      if (slot_ == nullptr) ++t_held_words;
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { lock_.Unlock(slot_); }

   private:
    BiasedLock& lock_;
    BiasedLockMachine::Slot* const slot_;  // null: has the lock word
  };

  // Two ways to hold a lock over a few instructions that call nothing, so that
  // HeldLocks need not count it and nothing is left to ask at their end. What
  // was taken at once is released in the same way, or kept: then it is held as
  // after lock(), to be unlocked, or to be no longer kept and released.

  // With its word: a lock that may not be biased, and is not renewed meanwhile,
  // or IsAll says that it was not.
  struct ByWord {
    static bool TakeAtOnce(BiasedLock& lock) {
      return lock.core_.TakeWordAtOnce();
    }
    static bool IsAll(const BiasedLock& lock) { return !lock.may_be_biased(); }
    static void Release(BiasedLock& lock) { lock.core_.Release(); }
    static void Keep() { ++t_held_words; }
    static void Unkeep() { --t_held_words; }
  };
  // As its owner.
  struct AsOwner {
    static bool TakeAtOnce(BiasedLock& lock) {
      return lock.core_.EnterAtOnce();
    }
    static bool IsAll(const BiasedLock& /*lock*/) { return true; }
    static void Release(BiasedLock& /*lock*/) {
      BiasedLockCore<BiasedLockMachine>::Leave(BiasedLockMachine::MySlot());
    }
    // HeldLocks knows anyway.
    static void Keep() {}
    static void Unkeep() {}
  };

  void lock() {
    if (core_.Lock() == nullptr) ++t_held_words;
  }
  bool try_lock() {
    if (!core_.TryLock()) return false;
    if (core_.Entered() == nullptr) ++t_held_words;
    return true;
  }
  // The same, but false too if another thread owns it, which stays the owner.
  bool try_lock_unowned() {
    if (!core_.TryLockUnowned()) return false;
    if (core_.Entered() == nullptr) ++t_held_words;
    return true;
  }
  void unlock() { Unlock(core_.Entered()); }

  // As what it guards begins anew: how often threads took it is forgotten, and
  // what was made to be biased may be that again. An owner stays. Waits for who
  // has the word; calls nothing.
  void Renew() { core_.Renew(); }
  // Whether it can have an owner now.
  bool may_be_biased() const { return core_.is_biasable(); }
  // Whether the calling thread owns it.
  bool is_mine() const { return core_.is_mine(); }

 private:
  void Unlock(BiasedLockMachine::Slot* slot) {
    if (slot == nullptr) [[likely]] {
      --t_held_words;
      core_.Release();
    } else {
      BiasedLockCore<BiasedLockMachine>::Leave(slot);
    }
  }

  BiasedLockCore<BiasedLockMachine> core_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_BIASED_LOCK_H_
