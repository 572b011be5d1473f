#ifndef STRATA_PLATFORM_BIASED_LOCK_BIASED_LOCK_CORE_H_
#define STRATA_PLATFORM_BIASED_LOCK_BIASED_LOCK_CORE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata {

// The steps of BiasedLock, over a `Machine`: the real one, or one with which a
// test runs the steps in every order.
//
// Model: a lock word (`taken_`), and an owner whose slot replaces the lock
//   word. Each thread has at most one slot. The slot names the one lock that
//   the thread holds by bias.
//   Enter: the owner enters with plain stores. It stores the lock in its slot,
//   then checks that it is still the owner.
//
//   Remove: any other thread acquires the lock word. If there is an owner, the
//   thread removes it and runs a barrier in all threads. Then it waits until
//   the slot of the former owner does not name the lock. After the barrier the
//   former owner either has seen that it is not the owner, or its store to the
//   slot is visible.
//
//   Become owner: only a thread itself makes itself the owner, while it holds
//   the lock word. So an owner that is read again was the owner all the time. A
//   thread becomes the owner after enough acquisitions of the lock word in a
//   row. Each removal doubles this number, up to a bound at which the cost of a
//   barrier is negligible.
//
//   Not biasable: a lock that passed between threads too often without an owner
//   is never biasable again.
//
//   An unlocking owner writes its slot last, so the last user of an object may
//   delete the lock right after.
//
// Members of Machine:
// - Atomic<T>: std::atomic<T>, or a class with its interface.
// - Guarded<T>: a T that only the holder of the lock word accesses.
// - Slot: has `held`, an Atomic<const void*>.
// - Thread: names a thread; converts to an address that is unique to it.
// - Self(): the calling thread.
// - SlotOf(thread): the slot of the thread; null if it has none.
// - TakeSlot(): acquires a slot for the calling thread; null if none is left.
// - Nobody(): the owner of locks without owner. No thread uses this slot.
// - Wait().While(atomic, value): waits while `atomic` is `value`; acquires the
//   value that it read last.
// - Barrier(): the ProcessBarrier, if has_barrier().
//
// Source: hotpath.md §5; the asymmetric fences of C++ proposal P1202.
template <class Machine>
class BiasedLockCore {
 public:
  using Slot = typename Machine::Slot;
  using Thread = typename Machine::Thread;

  // Without a barrier the lock is a spin lock.
  explicit BiasedLockCore(Machine machine)
      : owner_(machine.has_barrier() ? Machine::Nobody() : nullptr),
        machine_(machine),
        run_to_own_(Machine::kFirstRun) {}
  BiasedLockCore(const BiasedLockCore&) = delete;
  BiasedLockCore& operator=(const BiasedLockCore&) = delete;

  // `self` is the calling thread, here and below. Returns its slot, for Leave,
  // if it entered as the owner. Returns null if it acquired the lock word, for
  // Release.
  Slot* Lock(Thread self) {
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) [[likely]] {
      // Nobody will ever own the lock again.
      if (taken_.exchange(true, std::memory_order_acquire)) TakeSlow();
      return nullptr;
    }
    if (owner == Machine::SlotOf(self) && TryEnter(owner)) return owner;
    LockUnowned(self);
    return nullptr;
  }

  // How TryLock acquired the lock: not at all, by its word, for Release, or as
  // the owner, for Leave.
  enum class Way : std::uint8_t { kNone, kWord, kOwner };

  // Waits for no thread, removes no owner, and makes no call. So it also fails
  // if another thread owns the lock, and where Lock() has more to do: to count
  // the first of several acquisitions in a row, or to make the thread the
  // owner.
  Way TryLock(Thread self) {
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) [[likely]] {
      return taken_.exchange(true, std::memory_order_acquire) ? Way::kNone
                                                              : Way::kWord;
    }
    if (owner == Machine::SlotOf(self)) {
      return TryEnter(owner) ? Way::kOwner : Way::kNone;
    }
    if (owner != Machine::Nobody()) return Way::kNone;
    return TryContinueRun(self) ? Way::kWord : Way::kNone;
  }

  // The slot with which the calling thread entered; null if it acquired the
  // lock word. The caller holds the lock.
  Slot* Entered(Thread self) const {
    if (owner_.load(std::memory_order_relaxed) == nullptr) [[likely]] {
      return nullptr;
    }
    Slot* const slot = Machine::SlotOf(self);
    if (slot == nullptr || slot->held.load(std::memory_order_relaxed) != this) {
      return nullptr;
    }
    return slot;
  }
  static void Leave(Slot* slot) {
    slot->held.store(nullptr, std::memory_order_release);
  }
  void Release() { taken_.store(false, std::memory_order_release); }

  bool is_biasable() const {
    return owner_.load(std::memory_order_relaxed) != nullptr;
  }
  // True if the calling thread owns the lock.
  bool is_mine() const {
    Slot* const slot = Machine::SlotOf(Machine::Self());
    return slot != nullptr && owner_.load(std::memory_order_relaxed) == slot;
  }

 private:
  // Enters as the owner, unless the slot is in use for another lock.
  bool TryEnter(Slot* slot) {
    if (slot->held.load(std::memory_order_relaxed) != nullptr) return false;
    // A thread that removes this owner from another lock may read this store
    // instead of the earlier one in Leave. So this is a release, too.
    slot->held.store(this, std::memory_order_release);
    // The processor may still do the load first; see Remove.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_acquire) == slot) return true;
    Leave(slot);
    return false;
  }

  [[gnu::noinline]] void TakeSlow() {
    typename Machine::Wait wait;
    do {
      wait.While(taken_, true);
    } while (taken_.exchange(true, std::memory_order_acquire));
  }

  [[gnu::noinline]] void LockUnowned(Thread self) {
    if (taken_.exchange(true, std::memory_order_acquire)) TakeSlow();
    Settle(self);
  }

  // Acquires the word of a lock without owner, for the next of several
  // acquisitions in a row, but not for the one that makes an owner.
  bool TryContinueRun(Thread self) {
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    const Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) return true;
    const void* const address = self;
    if (owner == Machine::Nobody() && last_ == address &&
        run_ + 1 < run_to_own_) {
      run_ = run_ + 1;
      return true;
    }
    Release();
    return false;
  }

  // The caller of each function below holds the lock word.

  // After this call the lock word alone holds the lock.
  void Settle(Thread self) {
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) return;
    if (owner == Machine::SlotOf(self)) {
      // The thread owns the lock, but its slot was in use: the lock word
      // excludes others. A thread that locks twice waits for itself, as with a
      // spin lock.
      typename Machine::Wait().While(owner->held,
                                     static_cast<const void*>(this));
      return;
    }
    if (owner != Machine::Nobody()) Remove(owner);
    CountRun(self);
  }

  void Remove(Slot* owner) {
    owner_.store(Machine::Nobody(), std::memory_order_relaxed);
    machine_.Barrier();
    // The thread sanitizer sees the hand-over as the release in Leave and the
    // acquire here. The barrier only ensures that the value read here is not
    // older than the entry of the owner.
    typename Machine::Wait().While(owner->held, static_cast<const void*>(this));
    run_to_own_ = std::min(2 * run_to_own_, Machine::kMostRun);
  }

  void CountRun(Thread self) {
    const void* const address = self;
    if (last_ != address) {
      last_ = address;
      run_ = 0;
      turns_ = turns_ + 1;
      if (turns_ == Machine::kMostTurns) {
        // Only the holder of the word is inside, and no owner can enter again.
        owner_.store(nullptr, std::memory_order_relaxed);
        return;
      }
    }
    run_ = run_ + 1;
    if (run_ < run_to_own_) return;
    run_ = 0;
    Slot* slot = Machine::SlotOf(self);
    if (slot == nullptr) slot = Machine::TakeSlot();
    if (slot == nullptr) return;
    turns_ = 0;
    owner_.store(slot, std::memory_order_release);
  }

  // The members that every use reads are in one cache line. An unbiased lock
  // uses no other member.
  alignas(16) typename Machine::template Atomic<bool> taken_{false};
  // Null: not biasable. Written with the lock word held.
  typename Machine::template Atomic<Slot*> owner_;
  [[no_unique_address]] Machine machine_;

  // Guarded by taken_.
  // The last thread that acquired the lock word, and its number of acquisitions
  // in a row.
  typename Machine::template Guarded<const void*> last_{nullptr};
  typename Machine::template Guarded<std::uint32_t> run_{0};
  // Number of times that the word passed to another thread since the last
  // owner.
  typename Machine::template Guarded<std::uint32_t> turns_{0};
  typename Machine::template Guarded<std::uint32_t> run_to_own_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_BIASED_LOCK_BIASED_LOCK_CORE_H_
