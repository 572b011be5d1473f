#include "strata/platform/biased_lock/biased_lock.h"

#include <array>
#include <mutex>
#include <type_traits>
#include <utility>

#include "strata/base/fork_lock.h"
#include "strata/base/thread_end.h"

namespace strata {

constinit BiasedLockMachine::Slot BiasedLockMachine::nobody_;

int HeldLocks() noexcept {
  return ThisThread().held_words + (BiasedLockMachine::IsInside() ? 1 : 0);
}

// The slots that no thread uses.
//
// Threads: any thread. A slot passes from one thread to the next under lock_.
//   So all actions of the former thread as an owner happen before those of the
//   next thread, which inherits its locks.
class BiasedLockMachine::IdleSlots {
 public:
  // Null if no slot is left.
  Slot* Take() noexcept {
    const std::lock_guard<SpinLock> guard(lock_);
    Slot* slot = idle_;
    if (slot != nullptr) {
      idle_ = slot->next;
    } else if (used_ < slots_.size()) {
      slot = &slots_[used_++];
    }
    return slot;
  }
  void KeepFreeInForks() noexcept {
    static const ForkLock fork_lock(lock_);
    static_cast<void>(fork_lock);
  }
  void Give(Slot* slot) noexcept {
    const std::lock_guard<SpinLock> guard(lock_);
    slot->next = idle_;
    idle_ = slot;
  }

 private:
  SpinLock lock_;
  // Guarded by lock_.
  std::array<Slot, kSlots> slots_;
  std::size_t used_ = 0;  // slots of slots_ that were ever used
  Slot* idle_ = nullptr;  // list of returned slots
};

constinit BiasedLockMachine::IdleSlots BiasedLockMachine::idle_slots_;

void BiasedLockMachine::GiveSlot() noexcept {
  // Destructors that run later in this thread may lock, but they no longer own
  // a lock.
  auto* const slot =
      static_cast<Slot*>(std::exchange(ThisThread().lock_slot, nullptr));
  if (slot != nullptr) idle_slots_.Give(slot);
}

BiasedLockMachine::Slot* BiasedLockMachine::TakeSlot() noexcept {
  // Static objects may be destroyed before the last thread ends.
  static_assert(std::is_trivially_destructible_v<IdleSlots>);
  static thread_local constinit ThreadEnd end(&GiveSlot);
  idle_slots_.KeepFreeInForks();
  if (!end.is_pending() && end.Add()) {
    ThisThread().lock_slot = idle_slots_.Take();
  }
  return SlotOf(Self());
}

}  // namespace strata
