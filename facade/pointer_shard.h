#ifndef STRATA_FACADE_POINTER_SHARD_H_
#define STRATA_FACADE_POINTER_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_slots.h"
#include "strata/facade/pointer_table.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// Some of the pointers of a PointerMap, under one lock.
//
// Model: what finds its slot taken. The newest waits before it enters the
//   table, until the next one comes: meanwhile the line it goes to has been
//   fetched. Now and then it gets the slot, and who had that comes here: so
//   pointers that stay leave the slots to those that come and go. InsertAtOnce
//   and TakeAtOnce are what Insert and Take do most of the time, and wait for
//   nobody: false, or null, if they did nothing.
// Errors: an address that is inserted twice fails the process, at the latest
//   when it enters the table.
// Threads: any thread.
// Cost: one lock, on the line of what waits; two lines more if the table is
//   asked. 128 bytes.
class alignas(64) PointerShard {
 public:
  PointerShard() = default;

  // `data` is the address of `allocation`, here and below.
  //
  // Errors: std::bad_alloc; then nothing is done.
  void Insert(const void* data, Allocation* allocation);
  // Where the table has room for what waits. `slots`: those whose addresses
  // come here.
  bool InsertAtOnce(const void* data, Allocation* allocation,
                    PointerSlots& slots) noexcept {
    const std::unique_lock<SpinLock> guard(lock_, std::try_to_lock);
    if (!guard || newest_data_ == data ||
        (newest_ != nullptr && table_.is_full())) [[unlikely]] {
      return false;
    }
    if (++inserts_ % kInsertsPerExchange == 0) slots.Exchange(data, allocation);
    if (newest_ != nullptr && !table_.InsertAtOnce(newest_data_, newest_))
        [[unlikely]] {
      EnterTable();
    }
    table_.Prefetch(data);
    Wait(data, allocation);
    return true;
  }

  // Null if the address is unknown, as null is.
  Allocation* Take(const void* data) noexcept;
  Allocation* TakeAtOnce(const void* data) noexcept {
    // While the lock is taken, which waits for all that was stored before.
    fetch_.Prefetch(data);
    const std::unique_lock<SpinLock> guard(lock_, std::try_to_lock);
    if (!guard) [[unlikely]] {
      return nullptr;
    }
    if (newest_data_ == data) return GiveNewest();
    Allocation* const taken = table_.TakeAtOnce(data);
    return taken != nullptr ? taken : table_.Take(data);
  }

  // Null if the address is unknown.
  Allocation* Find(const void* data) const;
  // Frees what is here; returns how many allocations that were.
  std::size_t Clear() noexcept;

 private:
  // Often enough for a few steps of a program, so seldom that it does not count
  // where all pointers are alike.
  static constexpr std::uint32_t kInsertsPerExchange = 8;

  // These are for who holds the lock.
  void Wait(const void* data, Allocation* allocation) noexcept {
    newest_data_ = data;
    newest_ = allocation;
  }
  Allocation* GiveNewest() noexcept {
    newest_data_ = nullptr;
    return std::exchange(newest_, nullptr);
  }
  // Has the newest enter the table, where there is room.
  void EnterTable() noexcept;
  // Makes room in the table for one more, without the lock. Errors:
  // std::bad_alloc.
  void Grow();

  // What every use needs is in the first line.
  mutable SpinLock lock_;
  // All below is guarded by lock_; fetch_ is read without.
  const void* newest_data_ = nullptr;  // null: none waits
  Allocation* newest_ = nullptr;       // not in the table
  PointerTable table_;
  PointerTable::Hint fetch_;  // of table_
  std::uint32_t inserts_ = 0;
};

static_assert(sizeof(PointerShard) == 128, "two cache lines");

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_SHARD_H_
