#ifndef STRATA_FACADE_POINTER_SHARD_H_
#define STRATA_FACADE_POINTER_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "strata/allocation/allocation.h"
#include "strata/facade/pointer_table.h"
#include "strata/platform/biased_lock.h"

namespace strata {

// Some of the pointers of a PointerMap, under one lock.
//
// Model: the newest waits before it enters the table, until the next one comes:
//   one that is freed soon never gets there, and for others the line they go to
//   has been fetched meanwhile. Insert and Take do what can be asked of them;
//   each is also cut into steps by what it takes, the likely first, for callers
//   that try them one after the other in functions of their own. A step waits
//   for nobody, and calls nothing but where a bucket of the table does not
//   decide: it says false, or null, if it did nothing.
// Errors: an address that is inserted twice fails the process, at the latest
//   when it enters the table.
// Threads: any thread.
// Cost: one lock, on the line of what waits; two lines more if the table is
//   asked. 128 bytes.
class alignas(64) PointerShard {
 public:
  PointerShard() = default;

  // A thread may own the lock. Before the first use.
  void AllowBias() { lock_.AllowBias(); }
  // Nothing will be inserted, so that no step does it. Before the first use.
  void Close() { newest_data_.store(Nobody(), std::memory_order_relaxed); }

  // `data` is the address of `allocation`, here and below.
  //
  // Errors: std::bad_alloc; then nothing is done.
  void Insert(const void* data, Allocation* allocation);
  // Where nothing waits.
  bool InsertFirst(const void* data, Allocation* allocation) noexcept {
    if (newest_data() != nullptr) return false;
    const BiasedLock::Brief brief(lock_);
    if (!brief || newest_data() != nullptr) [[unlikely]] {
      return false;
    }
    Wait(data, allocation);
    return true;
  }
  // Where the table has room for what waits, if anything does by now.
  bool InsertNext(const void* data, Allocation* allocation) noexcept {
    BiasedLock::Brief brief(lock_);
    if (!brief) [[unlikely]] {
      return false;
    }
    const void* const before = newest_data();
    // Another thread may have taken it since InsertFirst.
    if (before != nullptr) {
      if (before == data || table_.is_full()) [[unlikely]] {
        return false;
      }
      if (!table_.InsertAtOnce(before, newest_)) [[unlikely]] {
        brief.Keep();
        InsertHeld(data, allocation);
        return true;
      }
    }
    table_.Prefetch(data);
    Wait(data, allocation);
    return true;
  }

  // Null if the address is unknown, as null is.
  Allocation* Take(const void* data) noexcept;
  // What waits.
  Allocation* TakeNewest(const void* data) noexcept {
    if (newest_data() != data) return nullptr;
    const BiasedLock::Brief brief(lock_);
    return brief ? GiveNewest(data) : nullptr;
  }
  // What is in the table.
  Allocation* TakeOther(const void* data) noexcept {
    // While the lock is taken, which waits for all that was stored before.
    fetch_.Prefetch(data);
    BiasedLock::Brief brief(lock_);
    if (!brief) [[unlikely]] {
      return nullptr;
    }
    Allocation* const taken = table_.TakeAtOnce(data);
    if (taken == nullptr) [[unlikely]] {
      brief.Keep();
      return TakeHeld(data);
    }
    return taken;
  }

  // Null if the address is unknown.
  Allocation* Find(const void* data) const;
  // Frees what is here; returns how many allocations that were.
  std::size_t Clear() noexcept;

 private:
  // An address that nothing has.
  static const void* Nobody() {
    return reinterpret_cast<const void*>(~std::uintptr_t{0});
  }
  const void* newest_data() const {
    return newest_data_.load(std::memory_order_relaxed);
  }
  // These are for who holds the lock.
  void Wait(const void* data, Allocation* allocation) noexcept {
    newest_data_.store(data, std::memory_order_relaxed);
    newest_ = allocation;
  }
  // Null if the newest is another one.
  Allocation* GiveNewest(const void* data) noexcept {
    // Where it is closed there is none, whatever `data` is.
    if (newest_data() != data || newest_ == nullptr) return nullptr;
    newest_data_.store(nullptr, std::memory_order_relaxed);
    return std::exchange(newest_, nullptr);
  }
  // Has the newest enter the table, since `data` is the new one; false, and
  // nothing is done, if there is no room.
  bool MakeWay(const void* data) noexcept;
  // The rest of InsertNext and TakeOther. They unlock.
  void InsertHeld(const void* data, Allocation* allocation) noexcept;
  Allocation* TakeHeld(const void* data) noexcept;
  // Makes room in the table for one more, without the lock. Errors:
  // std::bad_alloc.
  void Grow();

  // What every use needs is in the first line.
  mutable BiasedLock lock_;
  // All below is guarded by lock_; whoever looks without it looks again. The
  // address of `newest_`, null if that is, unless this is closed.
  std::atomic<const void*> newest_data_{nullptr};
  Allocation* newest_ = nullptr;  // not in the table; may be null
  PointerTable table_;
  PointerTable::Hint fetch_;  // of table_
};

static_assert(sizeof(PointerShard) == 128, "two cache lines");

}  // namespace strata

#endif  // STRATA_FACADE_POINTER_SHARD_H_
