#include "strata/facade/pointer_group.h"

#include <glog/logging.h>

#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/facade/front.h"

namespace strata {

class PointerGroup::Guard {
 public:
  explicit Guard(const PointerGroup& group) : group_(group) { group.Lock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { group_.guard().unlock(); }

 private:
  const PointerGroup& group_;
};

void PointerGroup::Lock() const {
  while (true) {
    ChainLock& lock = guard();
    lock.lock();
    if (IsGuardedBy(lock)) return;
    lock.unlock();
  }
}

PointerGroup::PointerGroup(std::uint8_t number,
                           std::shared_ptr<PointerRegions> regions)
    : guard_(nullptr), regions_(std::move(regions)), number_(number) {
  guard_ = &own_->lock;
}

// A change of the guard holds both locks, the group's own first.
bool PointerGroup::Bind(Front& front) noexcept {
  const std::lock_guard<ChainLock> own(own_->lock);
  if (is_bound()) return false;
  const std::lock_guard<ChainLock> guard(front.lock());
  front_ = &front;
  guard_.store(&front.lock(), std::memory_order_release);
  return true;
}

void PointerGroup::Unbind() noexcept {
  const std::lock_guard<ChainLock> own(own_->lock);
  const std::lock_guard<ChainLock> guard(this->guard());
  front_ = nullptr;
  guard_.store(&own_->lock, std::memory_order_release);
}

void PointerGroup::RefuseTwice(const void* data) noexcept {
  LOG(FATAL) << "handed out twice: " << data;
}

bool PointerGroup::InsertBySearch(const void* data,
                                  Allocation* allocation) noexcept {
  PointerTable& table = TableOf(waiting_.hash);
  if (table.is_full()) return false;
  const void* const waiting = waiting_.allocation->data();
  if (!table.Insert(waiting, waiting_.allocation)) RefuseTwice(waiting);
  LetLastWait(PointerTable::Hash(last_data_));
  SetLast(data, allocation);
  return true;
}

Allocation* PointerGroup::TakeHeld(const void* data) noexcept {
  if (Allocation* const taken = TakeAtOnce(data)) return taken;
  if (Allocation* const taken = TakePastSlot(data)) return taken;
  return TakeBySearch(data);
}

void PointerGroup::Insert(const void* data, Allocation* allocation) {
  while (true) {
    PointerTable* full = nullptr;
    std::size_t buckets = 0;
    {
      const Guard guard(*this);
      if (FindHeld(data) != nullptr) RefuseTwice(data);
      if (InsertHeld(data, allocation)) return;
      full = &TableOf(waiting_.hash);
      buckets = full->bucket_count();
    }
    try {
      Grow(*full, buckets);
    } catch (const std::bad_alloc&) {
      // The pointers before it remain where they are; this one may fit a slot.
      const Guard guard(*this);
      if (!InsertAtOnce(data, allocation) && !PutIntoSlot(data, allocation)) {
        throw;
      }
      return;
    }
  }
}

void PointerGroup::Grow(PointerTable& table, std::size_t buckets) {
  // No heap call with the lock held; the old table is freed after it, too.
  PointerTable larger = PointerTable::Larger(buckets);
  const Guard guard(*this);
  // Another thread may have grown the table already.
  if (table.bucket_count() != buckets) return;
  larger.AddAll(table);
  std::swap(table, larger);
}

Allocation* PointerGroup::FindHeld(const void* data) const noexcept {
  if (last_data_ == data) return last_;
  const std::uint64_t hash = PointerTable::Hash(data);
  if (Allocation* const found = slots_[IndexOf(hash)].Find(hash, data)) {
    return found;
  }
  return waiting_.hash == hash ? waiting_.allocation : TableOf(hash).Find(data);
}

Allocation* PointerGroup::Find(const void* data) const noexcept {
  if (data == nullptr) return nullptr;
  const Guard guard(*this);
  return FindHeld(data);
}

Allocation* PointerGroup::Take(const void* data) noexcept {
  if (data == nullptr) return nullptr;
  const Guard guard(*this);
  return TakeHeld(data);
}

std::size_t PointerGroup::Clear() noexcept {
  std::size_t count = 0;
  const auto free = [&count](Allocation* allocation) {
    const AllocationPtr freed(allocation);
    count += freed != nullptr;
  };
  std::array<PointerTable, kTables> tables;
  Allocation* last = nullptr;
  Allocation* waiting = nullptr;
  {
    const Guard guard(*this);
    std::swap(tables, tables_);
    last = std::exchange(last_, nullptr);
    waiting = std::exchange(waiting_, {}).allocation;
  }
  free(last);
  free(waiting);
  for (const PointerTable& table : tables) table.ForEach(free);
  for (Slot& slot : slots_) {
    // One by one, because a free acquires the lock that guards them.
    Allocation* taken = nullptr;
    {
      const Guard guard(*this);
      taken = std::exchange(slot, Slot()).allocation();
    }
    free(taken);
  }
  return count;
}

}  // namespace strata
