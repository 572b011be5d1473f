#ifndef STRATA_PLATFORM_BIASED_LOCK_BIASED_LOCK_H_
#define STRATA_PLATFORM_BIASED_LOCK_BIASED_LOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/base/this_thread.h"
#include "strata/platform/biased_lock/biased_lock_core.h"
#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// The machine of a BiasedLock in a running program. Names as in
// biased_lock_core.h.
class BiasedLockMachine {
 public:
  template <class T>
  using Atomic = std::atomic<T>;
  template <class T>
  using Guarded = T;

  // The slot of one thread. It occupies whole cache lines: two, because cores
  // also fetch the neighbouring line.
  struct alignas(128) Slot {
    std::atomic<const void*> held{nullptr};  // null: no lock held by bias
    Slot* next = nullptr;                    // next idle slot
  };

  // Low enough that a lock used by one thread is biased soon. High enough that
  // an occasional use by another thread costs little.
  static constexpr std::uint32_t kFirstRun = 64;
  // A removal costs 40 us, an acquisition of the lock word 8 ns: a bias pays
  // off from 5000 uses on.
  static constexpr std::uint32_t kMostRun = 65536;
  // Low enough that threads that share a lock soon get a plain lock. High
  // enough that occasional uses of a rarely used lock do not make it plain.
  static constexpr std::uint32_t kMostTurns = 4096;

  // Locks with an available `barrier` may be biased. Locks with a null or
  // unavailable one are never biased.
  explicit BiasedLockMachine(ProcessBarrier* barrier)
      : barrier_(barrier != nullptr && barrier->is_available() ? barrier
                                                               : nullptr) {}
  bool has_barrier() const { return barrier_ != nullptr; }

  static Slot* Nobody() { return &nobody_; }
  using Thread = ThreadState*;
  static Thread Self() { return &ThisThread(); }
  static Slot* SlotOf(Thread thread) {
    return static_cast<Slot*>(thread->lock_slot);
  }
  // There are kSlots slots. A thread that receives no slot at its first call
  // never receives one. A thread returns its slot when it ends; the next thread
  // with this slot inherits the locks that the former thread owned. The first
  // call of a thread allocates memory of the C library.
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
  // True if the calling thread holds a lock as its owner.
  static bool IsInside() noexcept {
    const Slot* const slot = SlotOf(Self());
    return slot != nullptr &&
           slot->held.load(std::memory_order_relaxed) != nullptr;
  }

  static constexpr std::size_t kSlots = 256;

 private:
  class IdleSlots;
  // Returns the slot of the thread, when the thread ends.
  static void GiveSlot() noexcept;

  static Slot nobody_;
  static IdleSlots idle_slots_;

  ProcessBarrier* const barrier_;
};

// A lock that one thread at a time may own: the owner locks and unlocks it
// without an atomic read-modify-write. For locks that a thread uses many times
// in a row.
//
// Model: behaves as SpinLock unless it is biased. It is not biased while no
//   thread owns it, where the system has no ProcessBarrier, and for an owner
//   that holds another biased lock.
//   A thread becomes the owner when it has acquired the lock 64 times in a row.
//   Each removal of an owner doubles this number, up to 65536. Any other thread
//   that locks removes the owner.
//   After the lock has passed from one thread to another 4096 times without an
//   owner in between, it stays a spin lock.
//   Meets BasicLockable and Lockable. Not recursive, not fair. Unlocking
//   accesses the lock last, so the last user of an object may delete the object
//   then.
// Cost: 1 to 2 ns per pair for the owner, 8 ns for an uncontended pair
//   otherwise. A removal costs the thread that removes 20 to 40 us. 48 bytes.
// Threads: any thread. For the view of the thread sanitizer see
//   biased_lock_core.h.
// Source: hotpath.md §2, §5; `BiasedLockModelTest` checks all interleavings.
class BiasedLock {
 public:
  // Never biased.
  BiasedLock() : BiasedLock(nullptr) {}
  explicit BiasedLock(bool may_bias)
      : BiasedLock(may_bias ? &ProcessBarrier::Instance() : nullptr) {}
  // `barrier` outlives this. If it is null or not available, the lock is never
  // biased.
  explicit BiasedLock(ProcessBarrier* barrier)
      : core_(BiasedLockMachine(barrier)) {}

  // `self` must be ThisThread(); another thread's state breaks the lock.
  void lock(ThreadState& self = ThisThread()) {
    if (core_.Lock(&self) == nullptr) ++self.held_words;
  }
  // Waits for no thread and removes no owner. Returns false if another thread
  // holds the lock, owns it, or locked it last, and where lock() makes the
  // thread the owner.
  bool try_lock(ThreadState& self = ThisThread()) {
    const Core::Way way = core_.TryLock(&self);
    if (way == Core::Way::kWord) [[likely]] {
      ++self.held_words;
    }
    return way != Core::Way::kNone;
  }
  void unlock(ThreadState& self = ThisThread()) {
    BiasedLockMachine::Slot* const slot = core_.Entered(&self);
    if (slot == nullptr) [[likely]] {
      --self.held_words;
      core_.Release();
    } else {
      Core::Leave(slot);
    }
  }

  // For tests and reports.

  // True if the lock can have an owner now.
  bool may_be_biased() const { return core_.is_biasable(); }
  // True if the calling thread owns the lock.
  bool is_mine() const { return core_.is_mine(); }

 private:
  using Core = BiasedLockCore<BiasedLockMachine>;

  Core core_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_BIASED_LOCK_BIASED_LOCK_H_
