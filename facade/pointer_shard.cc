#include "strata/facade/pointer_shard.h"

#include <glog/logging.h>

#include <mutex>

#include "strata/allocation/allocator.h"

namespace strata {

void PointerShard::Grow() {
  std::size_t buckets = 0;
  {
    const std::lock_guard<BiasedLock> guard(lock_);
    if (!table_.is_full()) return;
    buckets = table_.bucket_count();
  }
  // No heap call with the lock held; neither is the old one freed there.
  PointerTable larger = PointerTable::Larger(buckets);
  const std::lock_guard<BiasedLock> guard(lock_);
  // Another thread may have been first.
  if (table_.bucket_count() != buckets) return;
  larger.AddAll(table_);
  std::swap(table_, larger);
  fetch_.Set(table_);
}

bool PointerShard::MakeWay(const void* data) noexcept {
  if (newest_ == nullptr) return true;
  CHECK(newest_data_ != data) << "handed out twice: " << data;
  if (table_.is_full()) return false;
  const bool is_new = table_.Insert(newest_data_, newest_);
  CHECK(is_new) << "handed out twice: " << newest_data_;
  return true;
}

[[gnu::noinline]] void PointerShard::InsertHeld(
    const void* data, Allocation* allocation) noexcept {
  const std::lock_guard<BiasedLock> guard(lock_, std::adopt_lock);
  CHECK(MakeWay(data));  // there was room
  Wait(data, allocation);
}

[[gnu::noinline]] Allocation* PointerShard::TakeHeld(
    const void* data) noexcept {
  const std::lock_guard<BiasedLock> guard(lock_, std::adopt_lock);
  return table_.Take(data);
}

void PointerShard::Insert(const void* data, Allocation* allocation) {
  for (;;) {
    {
      const BiasedLock::Guard guard(lock_);
      if (MakeWay(data)) {
        table_.Prefetch(data);
        return Wait(data, allocation);
      }
    }
    Grow();
  }
}

Allocation* PointerShard::Take(const void* data) noexcept {
  const BiasedLock::Guard guard(lock_);
  return newest_data_ == data ? GiveNewest() : table_.Take(data);
}

Allocation* PointerShard::Find(const void* data) const {
  const std::lock_guard<BiasedLock> guard(lock_);
  return newest_data_ == data ? newest_ : table_.Find(data);
}

std::size_t PointerShard::Clear() noexcept {
  PointerTable table;
  Allocation* newest = nullptr;
  {
    const std::lock_guard<BiasedLock> guard(lock_);
    std::swap(table, table_);
    fetch_.Set(table_);
    newest = GiveNewest();
  }
  std::size_t count = 0;
  const auto free = [&count](Allocation* allocation) {
    const AllocationPtr freed(allocation);
    ++count;
  };
  if (newest != nullptr) free(newest);
  table.ForEach(free);
  return count;
}

}  // namespace strata
