#ifndef STRATA_PLATFORM_BIASED_LOCK_CORE_H_
#define STRATA_PLATFORM_BIASED_LOCK_CORE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "strata/platform/require_cxx20.h"

namespace strata {

// The steps of BiasedLock, over a `Machine`: the real one, or one that a test
// steps through in every order.
//
// Model: a lock word (`taken_`), and an owner whose slot stands in for it. Each
//   thread has at most one slot; the slot names the one lock that the thread
//   holds by bias. Its owner enters with plain stores: it names the lock, then
//   makes sure that it is still the owner. Everybody else takes the lock word
//   and, if there is an owner, removes it, has all threads pass a barrier, and
//   waits until the former owner's slot does not name the lock. After the
//   barrier the former owner either has seen that it is none, or what it wrote
//   in its slot can be seen. Only a thread itself, with the lock word, makes
//   itself the owner, so an owner that is seen again was owner all the time.
//   It becomes that when it took the lock word so many times in a row; each
//   removal doubles how many, up to a bound at which the time of a barrier does
//   not count any more. A lock that went from thread to thread so often that it
//   cannot be expected to have an owner again is not biasable from then on,
//   until Renew. Who takes the lock word looks after that whether it is enough.
//   What an owner writes last when it unlocks is its slot, so the last user of
//   an object may delete the lock right after.
//
// Machine: Atomic<T> is std::atomic<T>, or looks like it; Guarded<T> a T that
//   only who holds the lock word touches. A Slot has `held`, an Atomic<const
//   void*>. MySlot() is the thread's, null if it has none; TakeSlot() then gets
//   it one, or null. Nobody() owns the locks without owner, and is the slot of
//   no thread. Self() is an address of the thread's own. Wait().While(atomic,
//   value) waits, and acquires what it saw last. Barrier() is the
//   ProcessBarrier, if has_barrier().
// Source: hotpath.md §5; the asymmetric fences of C++ proposal P1202.
template <class Machine>
class BiasedLockCore {
 public:
  using Slot = typename Machine::Slot;

  // Without a barrier it is a spin lock.
  explicit BiasedLockCore(Machine machine)
      : owner_(machine.has_barrier() ? Machine::Nobody() : nullptr),
        machine_(machine),
        run_to_own_(Machine::kFirstRun) {}
  BiasedLockCore(const BiasedLockCore&) = delete;
  BiasedLockCore& operator=(const BiasedLockCore&) = delete;

  // The lock word, for Release; false if somebody has it. It is the lock if
  // that is not biasable: for who cannot know that from before, to ask then.
  bool TakeWordAtOnce() {
    return !taken_.exchange(true, std::memory_order_acquire);
  }
  // As the owner, for Leave with MySlot(); false, and nothing is done, if that
  // takes more.
  bool EnterAtOnce() {
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    Slot* const slot = Machine::MySlot();
    // Of what is not biasable and a thread without a slot, both are null.
    return owner == slot && slot != nullptr && TryEnter(slot);
  }

  // The thread's slot, for Leave, if it entered as the owner; null if it took
  // the lock word, for Release.
  Slot* Lock() {
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) [[likely]] {
      if (taken_.exchange(true, std::memory_order_acquire)) TakeSlow();
      if (is_biasable()) [[unlikely]] {
        Settle(Machine::MySlot());
      }
      return nullptr;
    }
    Slot* const slot = Machine::MySlot();
    if (owner == slot && TryEnter(slot)) return slot;
    LockUnowned(slot);
    return nullptr;
  }

  // False if somebody holds it. May wait for an owner that enters meanwhile.
  bool TryLock() {
    Slot* const slot = Machine::MySlot();
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner != nullptr && owner == slot && TryEnter(slot)) return true;
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    const Slot* const now = owner_.load(std::memory_order_relaxed);
    if (now != nullptr && now->held.load(std::memory_order_relaxed) == this) {
      Release();
      return false;
    }
    Settle(slot);
    return true;
  }

  // False too if another thread owns it: that one stays the owner.
  bool TryLockUnowned() {
    Slot* const slot = Machine::MySlot();
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner != nullptr && owner == slot && TryEnter(slot)) return true;
    if (!IsOpenTo(owner, slot)) return false;
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    if (!IsOpenTo(owner_.load(std::memory_order_relaxed), slot)) {
      Release();
      return false;
    }
    Settle(slot);
    return true;
  }

  // The slot with which the thread entered, null if it took the lock word. Of
  // who holds the lock.
  Slot* Entered() const {
    if (owner_.load(std::memory_order_relaxed) == nullptr) [[likely]] {
      return nullptr;
    }
    Slot* const slot = Machine::MySlot();
    if (slot == nullptr || slot->held.load(std::memory_order_relaxed) != this) {
      return nullptr;
    }
    return slot;
  }
  static void Leave(Slot* slot) {
    slot->held.store(nullptr, std::memory_order_release);
  }
  void Release() { taken_.store(false, std::memory_order_release); }

  // As new, but for its owner, which stays.
  void Renew() {
    if (!machine_.has_barrier()) return;
    if (taken_.exchange(true, std::memory_order_acquire)) TakeSlow();
    last_ = nullptr;
    run_ = 0;
    turns_ = 0;
    run_to_own_ = Machine::kFirstRun;
    const Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) {
      owner_.store(Machine::Nobody(), std::memory_order_relaxed);
    } else if (owner != Machine::Nobody()) {
      run_to_own_ = Machine::kFirstRun / 2;  // its removal doubles that
    }
    Release();
  }

  bool is_biasable() const {
    return owner_.load(std::memory_order_relaxed) != nullptr;
  }
  // Whether the calling thread owns it.
  bool is_mine() const {
    Slot* const slot = Machine::MySlot();
    return slot != nullptr && owner_.load(std::memory_order_relaxed) == slot;
  }

 private:
  // As the owner, unless the slot is in use for another lock.
  bool TryEnter(Slot* slot) {
    if (slot->held.load(std::memory_order_relaxed) != nullptr) return false;
    // Who removed it from another lock may see this, and not that it was left.
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

  [[gnu::noinline]] void LockUnowned(Slot* slot) {
    if (taken_.exchange(true, std::memory_order_acquire)) TakeSlow();
    Settle(slot);
  }

  // Whether who has `slot` may take the lock word without removing `owner`.
  static bool IsOpenTo(const Slot* owner, const Slot* slot) {
    return owner == nullptr || owner == slot || owner == Machine::Nobody();
  }

  // The rest of these are for who has the lock word.

  // After this the lock word is the lock.
  void Settle(Slot* slot) {
    Slot* const owner = owner_.load(std::memory_order_relaxed);
    if (owner == nullptr) return;
    if (owner == slot) {
      // Its own, but the slot was in use: the lock word keeps others out. Who
      // locks twice waits for itself, as with a spin lock.
      typename Machine::Wait().While(owner->held,
                                     static_cast<const void*>(this));
      return;
    }
    if (owner != Machine::Nobody()) Remove(owner);
    CountRun(slot);
  }

  void Remove(Slot* owner) {
    owner_.store(Machine::Nobody(), std::memory_order_relaxed);
    machine_.Barrier();
    // What the thread sanitizer sees of the hand-over: the release in Leave
    // and the acquire here. The barrier only makes sure that what is read here
    // is not from before the owner entered.
    typename Machine::Wait().While(owner->held, static_cast<const void*>(this));
    run_to_own_ = std::min(2 * run_to_own_, Machine::kMostRun);
  }

  void CountRun(Slot* slot) {
    const void* const self = Machine::Self();
    if (last_ != self) {
      last_ = self;
      run_ = 0;
      turns_ = turns_ + 1;
      if (turns_ == Machine::kMostTurns) {
        // Nobody is inside but who has the word, and nobody can enter again.
        owner_.store(nullptr, std::memory_order_relaxed);
        return;
      }
    }
    run_ = run_ + 1;
    if (run_ < run_to_own_) return;
    run_ = 0;
    if (slot == nullptr) slot = Machine::TakeSlot();
    if (slot == nullptr) return;
    turns_ = 0;
    owner_.store(slot, std::memory_order_release);
  }

  // What every use reads lies in one cache line; without a bias, that is all.
  alignas(16) typename Machine::template Atomic<bool> taken_{false};
  // Null: not biasable. Written with the lock word.
  typename Machine::template Atomic<Slot*> owner_;
  [[no_unique_address]] Machine machine_;

  // Guarded by taken_.
  // Who took the lock word last, and how many times in a row.
  typename Machine::template Guarded<const void*> last_{nullptr};
  typename Machine::template Guarded<std::uint32_t> run_{0};
  // How often another one took it than before since it had an owner.
  typename Machine::template Guarded<std::uint32_t> turns_{0};
  typename Machine::template Guarded<std::uint32_t> run_to_own_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_BIASED_LOCK_CORE_H_
