#ifndef STRATA_FACADE_POINTER_GROUP_H_
#define STRATA_FACADE_POINTER_GROUP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chain_lock.h"
#include "strata/allocation/lasting.h"
#include "strata/facade/pointer_regions.h"
#include "strata/facade/pointer_table.h"

namespace strata {

class Front;

// Some of the pointers of a PointerMap: those of one front.
//
// Model: while it serves a front, the lock of that front's chain guards it, so
//   that who allocates or frees there knows the pointer with the lock that he
//   takes anyway; else a lock of its own does. Which one that is may change
//   until it is taken: Guard looks again.
//   The last pointer is noted by itself, until the next one comes: one that is
//   freed before goes no further, and is found without a hash, so that who
//   frees it need not wait for what was just stored. Then it goes to its slot:
//   an address has one. What finds that taken goes to one of sixteen tables;
//   sixteen, so that one which has to grow keeps others waiting for a sixteenth
//   of the time. There it waits once more before it enters the table: meanwhile
//   the line it goes to has been fetched. Now and then it gets the slot, and
//   who had that goes to the table: so pointers that stay leave the slots to
//   those that come and go.
// Errors: to Insert an address that is here fails the process. Who inserts with
//   the guard held is believed; where a slot or a table turns out to have it,
//   that fails the process, too.
// Threads: any thread.
// Cost: up to about a thousand live pointers, mostly one line; beyond, that of
//   a table, too. A heap call only when a table has to be twice as large, with
//   no lock held. 34 KiB, and 13 to 26 bytes a pointer that has no slot.
class alignas(64) PointerGroup {
 public:
  // The group `number` of `regions`.
  PointerGroup(std::uint8_t number, std::shared_ptr<PointerRegions> regions);
  PointerGroup(const PointerGroup&) = delete;
  PointerGroup& operator=(const PointerGroup&) = delete;

  std::uint8_t number() const { return number_; }
  bool is_bound() const {
    return guard_.load(std::memory_order_acquire) != &own_->lock;
  }
  // Serves `front`, which lives until Unbind, from now on. False, and nothing
  // is done, if it serves another one.
  bool Bind(Front& front) noexcept;
  void Unbind() noexcept;

  // `data` is the address of `allocation`, here and below.
  //
  // Errors: std::bad_alloc; then nothing is done.
  void Insert(const void* data, Allocation* allocation);
  // Null if the address, which may be any, is unknown.
  Allocation* Find(const void* data) const noexcept;
  Allocation* Take(const void* data) noexcept;
  // Frees what is here; returns how many allocations that were.
  std::size_t Clear() noexcept;

  // The lock to take before what follows, unless IsGuardedBy says then that it
  // was another one's. It may be taken even if this serves nobody any more.
  ChainLock& guard() const { return *guard_.load(std::memory_order_acquire); }
  // Takes it. To be unlocked by guard().unlock().
  void Lock() const;
  bool IsGuardedBy(const ChainLock& lock) const {
    return guard_.load(std::memory_order_relaxed) == &lock;
  }
  // The rest is for who holds it.

  // Null if it serves nobody.
  Front* front() const { return front_; }
  // Whether the address is looked for here.
  bool Owns(const void* data) const noexcept {
    const PointerRegions::Owners owners = regions_->OwnersOf(data);
    return owners.last == number_ || owners.before == number_ ||
           owners.before == PointerRegions::kMany;
  }
  // False, and nothing is done, if another one has the slot of the last one.
  bool InsertAtOnce(const void* data, Allocation* allocation) noexcept {
    if (last_ != nullptr && !PutIntoSlot(last_data_, last_)) return false;
    SetLast(data, allocation);
    return true;
  }
  // The same where it is not said who has that slot: false if a table has to
  // grow first.
  bool InsertHeld(const void* data, Allocation* allocation) noexcept {
    return InsertAtOnce(data, allocation) || InsertPastSlot(data, allocation);
  }
  // Null, and nothing is done, if it is not the last one and has no slot.
  Allocation* TakeAtOnce(const void* data) noexcept {
    if (last_data_ == data) return std::exchange(last_, nullptr);
    const std::uint64_t hash = PointerTable::Hash(data);
    Slot& slot = slots_[IndexOf(hash)];
    Allocation* const allocation = slot.Find(hash, data);
    if (allocation != nullptr) slot = Slot();
    return allocation;
  }
  // The same of one that has no slot: null, and nothing is done, if that takes
  // the next, which searches. Without a call.
  Allocation* TakePastSlot(const void* data) noexcept {
    const std::uint64_t hash = PointerTable::Hash(data);
    // Of null, too: then there is none.
    if (waiting_.hash == hash) return std::exchange(waiting_, {}).allocation;
    return TableOf(hash).TakeAtOnce(hash, data);
  }
  Allocation* TakeBySearch(const void* data) noexcept {
    return TableOf(PointerTable::Hash(data)).Take(data);
  }
  // All of that; null if it is not here.
  Allocation* TakeHeld(const void* data) noexcept;

 private:
  class Guard;
  static constexpr std::size_t kSlots = std::size_t{1} << 12;
  static constexpr std::size_t kTables = 16;
  // Often enough for a few steps of a program, so seldom that it does not count
  // where all pointers are alike.
  static constexpr std::uint32_t kInsertsPerExchange = 8;

  // An allocation, and in the bits that no address of host memory has as many
  // of the hash of its own address: so that nearly always only who has the slot
  // is looked at.
  class Slot {
   public:
    bool is_empty() const { return word_ == 0; }
    void Set(std::uint64_t hash, Allocation* allocation) {
      word_ = (hash & kTag) | reinterpret_cast<std::uintptr_t>(allocation);
    }
    Allocation* allocation() const {
      return reinterpret_cast<Allocation*>(word_ & ~kTag);
    }
    // Null if it is not that of `data`.
    Allocation* Find(std::uint64_t hash, const void* data) const {
      if (((word_ ^ hash) & kTag) != 0) return nullptr;
      Allocation* const found = allocation();
      return found != nullptr && found->data() == data ? found : nullptr;
    }

   private:
    static constexpr std::uint64_t kTag = ~std::uint64_t{0} << 48;
    std::uint64_t word_ = 0;
  };

  // By bits of the hash that tables do not use, unless they are huge.
  static std::size_t IndexOf(std::uint64_t hash) {
    return (hash >> 36) % kSlots;
  }
  // One for all addresses of a slot.
  PointerTable& TableOf(std::uint64_t hash) {
    return tables_[IndexOf(hash) % kTables];
  }
  const PointerTable& TableOf(std::uint64_t hash) const {
    return tables_[IndexOf(hash) % kTables];
  }
  // Find, by who holds the guard.
  Allocation* FindHeld(const void* data) const noexcept;
  void SetLast(const void* data, Allocation* allocation) noexcept {
    last_data_ = data;
    last_ = allocation;
  }
  // False, and nothing is done, if another one has it.
  bool PutIntoSlot(const void* data, Allocation* allocation) noexcept {
    const std::uint64_t hash = PointerTable::Hash(data);
    Slot& slot = slots_[IndexOf(hash)];
    if (!slot.is_empty()) return false;
    slot.Set(hash, allocation);
    return true;
  }
  // The rest of InsertHeld: the last one goes to a table.
  bool InsertPastSlot(const void* data, Allocation* allocation) noexcept;
  // Has the last one wait for its table. False, and nothing is done, if the one
  // that waited has to search for its place.
  bool MoveLastPastSlot() noexcept;
  // The rest of InsertPastSlot then.
  bool InsertBySearch(const void* data, Allocation* allocation) noexcept;
  // The last one waits. Now and then it has its slot instead, and who had that
  // waits; fetches the line that this goes to.
  void LetLastWait(std::uint64_t hash) noexcept;
  [[noreturn]] static void RefuseTwice(const void* data) noexcept;
  // Without the guard: makes a table twice as large that has `buckets`.
  void Grow(PointerTable& table, std::size_t buckets);

  std::atomic<ChainLock*> guard_;
  // The last one; null if it has been taken, or there was none: then
  // `last_data_` is no pointer that is known here. Not side by side: a compiler
  // that writes both at once has the next free wait for it.
  const void* last_data_ = nullptr;
  Front* front_ = nullptr;
  Allocation* last_ = nullptr;
  // Of those without a slot, the one that is about to enter its table.
  struct {
    std::uint64_t hash = 0;  // of its address: that of null if there is none
    Allocation* allocation = nullptr;
  } waiting_;
  std::uint32_t inserts_past_slots_ = 0;
  const std::shared_ptr<PointerRegions> regions_;
  const Lasting<LoneLock> own_;
  const std::uint8_t number_;
  std::array<PointerTable, kTables> tables_;
  // What an address has is known from the allocation, which who frees it needs
  // anyway.
  std::array<Slot, kSlots> slots_{};
};

// ---- Inline, so that what a table needs calls nothing where it is found at
// once.

[[gnu::always_inline]] inline bool PointerGroup::InsertPastSlot(
    const void* data, Allocation* allocation) noexcept {
  if (!MoveLastPastSlot()) [[unlikely]] {
    return InsertBySearch(data, allocation);
  }
  SetLast(data, allocation);
  return true;
}

inline bool PointerGroup::MoveLastPastSlot() noexcept {
  const std::uint64_t hash = PointerTable::Hash(last_data_);
  if (slots_[IndexOf(hash)].Find(hash, last_data_) != nullptr ||
      waiting_.hash == hash) [[unlikely]] {
    RefuseTwice(last_data_);
  }
  if (waiting_.hash != 0 &&
      !TableOf(waiting_.hash).InsertAtOnce(waiting_.hash, waiting_.allocation))
      [[unlikely]] {
    return false;
  }
  LetLastWait(hash);
  return true;
}

inline void PointerGroup::LetLastWait(std::uint64_t hash) noexcept {
  waiting_ = {hash, last_};
  if (++inserts_past_slots_ % kInsertsPerExchange == 0) [[unlikely]] {
    Slot& slot = slots_[IndexOf(hash)];
    Allocation* const former = slot.allocation();
    waiting_ = {PointerTable::Hash(former->data()), former};
    slot.Set(hash, last_);
  }
  TableOf(hash).Prefetch(waiting_.hash);
}

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_GROUP_H_
