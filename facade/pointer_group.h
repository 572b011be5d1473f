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

// Some of the pointers of a PointerMap: the pointers of one front.
//
// Model: while the group is bound to a front, the lock of that front's chain
//   guards it. So an allocation or free there needs no second lock. An unbound
//   group is guarded by its own lock. The guard may change until it is
//   acquired, so the class Guard checks again.
//   The group stores the last pointer in separate members until the next
//   insertion. A pointer that is freed before that is found without a hash, and
//   the free does not wait for a recent store. At the next insertion the last
//   pointer moves to its slot: each address has one slot. If the slot is taken,
//   the pointer moves to one of sixteen tables; while one table grows, the
//   others can be used. Before a pointer enters its table it waits for one more
//   insertion, while its cache line is prefetched. Every eighth such pointer
//   takes the slot instead, and the former owner of the slot moves to the
//   table. So long-lived pointers leave the slots to short-lived ones.
// Errors: Insert of an address that is already here fails the process. The
//   insertions under the guard do not check all places; an address that is
//   found in its slot or table fails the process, too.
// Threads: any thread.
// Cost: up to about a thousand live pointers, mostly one cache line; beyond
//   that, also the cost of a table. A heap call only when a table doubles, with
//   no lock held. 34 KiB, and 13 to 26 bytes per pointer without a slot.
class alignas(64) PointerGroup {
 public:
  // Creates the group `number` of `regions`.
  PointerGroup(std::uint8_t number, std::shared_ptr<PointerRegions> regions);
  PointerGroup(const PointerGroup&) = delete;
  PointerGroup& operator=(const PointerGroup&) = delete;

  std::uint8_t number() const { return number_; }
  bool is_bound() const {
    return guard_.load(std::memory_order_acquire) != &own_->lock;
  }
  // Binds the group to `front`, which lives until Unbind. False, and nothing is
  // done, if it is bound to another front.
  bool Bind(Front& front) noexcept;
  void Unbind() noexcept;

  // `data` is the address of `allocation`, here and below.
  //
  // Errors: std::bad_alloc; then nothing is done.
  void Insert(const void* data, Allocation* allocation);
  // Null if the address, which may be any, is unknown.
  Allocation* Find(const void* data) const noexcept;
  Allocation* Take(const void* data) noexcept;
  // Frees all allocations of the group; returns their number.
  std::size_t Clear() noexcept;

  // The lock to acquire before the calls below. Afterwards call IsGuardedBy:
  // the guard may have changed. It may be acquired even if the group is
  // unbound.
  ChainLock& guard() const { return *guard_.load(std::memory_order_acquire); }
  // Acquires the guard. Release it with guard().unlock().
  void Lock() const;
  bool IsGuardedBy(const ChainLock& lock) const {
    return guard_.load(std::memory_order_relaxed) == &lock;
  }
  // The caller of the functions below holds the guard.

  // Null if the group is unbound.
  Front* front() const { return front_; }
  // Whether a lookup of the address includes this group.
  bool Owns(const void* data) const noexcept {
    const PointerRegions::Owners owners = regions_->OwnersOf(data);
    return owners.last == number_ || owners.before == number_ ||
           owners.before == PointerRegions::kMany;
  }
  // False, and nothing is done, if the slot of the last pointer is taken.
  bool InsertAtOnce(const void* data, Allocation* allocation) noexcept {
    if (last_ != nullptr && !PutIntoSlot(last_data_, last_)) return false;
    SetLast(data, allocation);
    return true;
  }
  // InsertAtOnce, then InsertPastSlot. False if a table has to grow first.
  bool InsertHeld(const void* data, Allocation* allocation) noexcept {
    return InsertAtOnce(data, allocation) || InsertPastSlot(data, allocation);
  }
  // Null, and nothing is done, if the pointer is not the last one and has no
  // slot.
  Allocation* TakeAtOnce(const void* data) noexcept {
    if (last_data_ == data) return std::exchange(last_, nullptr);
    const std::uint64_t hash = PointerTable::Hash(data);
    Slot& slot = slots_[IndexOf(hash)];
    Allocation* const allocation = slot.Find(hash, data);
    if (allocation != nullptr) slot = Slot();
    return allocation;
  }
  // Takes a pointer without a slot. Null, and nothing is done, if it needs the
  // search of TakeBySearch. Makes no call.
  Allocation* TakePastSlot(const void* data) noexcept {
    const std::uint64_t hash = PointerTable::Hash(data);
    // Also for null: then no pointer waits.
    if (waiting_.hash == hash) return std::exchange(waiting_, {}).allocation;
    return TableOf(hash).TakeAtOnce(hash, data);
  }
  Allocation* TakeBySearch(const void* data) noexcept {
    return TableOf(PointerTable::Hash(data)).Take(data);
  }
  // All of these steps; null if the pointer is not here.
  Allocation* TakeHeld(const void* data) noexcept;

 private:
  class Guard;
  static constexpr std::size_t kSlots = std::size_t{1} << 12;
  static constexpr std::size_t kTables = 16;
  // Every eighth: often enough for a few steps of a program, and seldom enough
  // to cost nothing where all pointers have the same lifetime.
  static constexpr std::uint32_t kInsertsPerExchange = 8;

  // An allocation, and a tag of its address: the high 16 bits of the word,
  // which are unused in addresses of host memory, hold bits of the hash. So a
  // lookup nearly always reads only the allocation that it searches.
  class Slot {
   public:
    bool is_empty() const { return word_ == 0; }
    void Set(std::uint64_t hash, Allocation* allocation) {
      word_ = (hash & kTag) | reinterpret_cast<std::uintptr_t>(allocation);
    }
    Allocation* allocation() const {
      return reinterpret_cast<Allocation*>(word_ & ~kTag);
    }
    // Null if it is not the allocation of `data`.
    Allocation* Find(std::uint64_t hash, const void* data) const {
      if (((word_ ^ hash) & kTag) != 0) return nullptr;
      Allocation* const found = allocation();
      return found != nullptr && found->data() == data ? found : nullptr;
    }

   private:
    static constexpr std::uint64_t kTag = ~std::uint64_t{0} << 48;
    std::uint64_t word_ = 0;
  };

  // Uses bits of the hash that the tables do not use, unless they are huge.
  static std::size_t IndexOf(std::uint64_t hash) {
    return (hash >> 36) % kSlots;
  }
  // All addresses of a slot share one table.
  PointerTable& TableOf(std::uint64_t hash) {
    return tables_[IndexOf(hash) % kTables];
  }
  const PointerTable& TableOf(std::uint64_t hash) const {
    return tables_[IndexOf(hash) % kTables];
  }
  // Find; the caller holds the guard.
  Allocation* FindHeld(const void* data) const noexcept;
  void SetLast(const void* data, Allocation* allocation) noexcept {
    last_data_ = data;
    last_ = allocation;
  }
  // False, and nothing is done, if the slot is taken.
  bool PutIntoSlot(const void* data, Allocation* allocation) noexcept {
    const std::uint64_t hash = PointerTable::Hash(data);
    Slot& slot = slots_[IndexOf(hash)];
    if (!slot.is_empty()) return false;
    slot.Set(hash, allocation);
    return true;
  }
  // The rest of InsertHeld: the last pointer moves to a table.
  bool InsertPastSlot(const void* data, Allocation* allocation) noexcept;
  // Lets the last pointer wait for its table. False, and nothing is done, if
  // the pointer that waited needs a search for its place.
  bool MoveLastPastSlot() noexcept;
  // The rest of InsertPastSlot in that case.
  bool InsertBySearch(const void* data, Allocation* allocation) noexcept;
  // Makes the last pointer the waiting one. Every eighth time it takes its
  // slot, and the former owner of the slot waits. Prefetches the line of the
  // waiting pointer.
  void LetLastWait(std::uint64_t hash) noexcept;
  [[noreturn]] static void RefuseTwice(const void* data) noexcept;
  // Without the guard: replaces a table that has `buckets` by one twice as
  // large.
  void Grow(PointerTable& table, std::size_t buckets);

  std::atomic<ChainLock*> guard_;
  // The last pointer; null if it was taken, or there was none: then
  // `last_data_` is no known pointer. The two members are not adjacent: a
  // compiler that writes both with one store makes the next free wait for it.
  const void* last_data_ = nullptr;
  Front* front_ = nullptr;
  Allocation* last_ = nullptr;
  // The pointer without a slot that enters its table next.
  struct {
    // hash of its address; the hash of null if none waits
    std::uint64_t hash = 0;
    Allocation* allocation = nullptr;
  } waiting_;
  std::uint32_t inserts_past_slots_ = 0;
  const std::shared_ptr<PointerRegions> regions_;
  const Lasting<LoneLock> own_;
  const std::uint8_t number_;
  std::array<PointerTable, kTables> tables_;
  // The tag identifies an address by its allocation, which a free reads anyway.
  std::array<Slot, kSlots> slots_{};
};

// ---- Inline, so that the use of a table makes no call if the first bucket
// decides.

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
