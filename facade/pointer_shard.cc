#include "strata/facade/pointer_shard.h"

#include <glog/logging.h>

#include <mutex>

#include "strata/allocation/allocator.h"

namespace strata {

void PointerShard::Grow() {
  std::size_t buckets = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (!table_.is_full()) return;
    buckets = table_.bucket_count();
  }
  // No heap call with the lock held; neither is the old one freed there.
  PointerTable larger = PointerTable::Larger(buckets);
  const std::lock_guard<SpinLock> guard(lock_);
  // Another thread may have been first.
  if (table_.bucket_count() != buckets) return;
  larger.AddAll(table_);
  std::swap(table_, larger);
  fetch_.Set(table_);
}

[[gnu::noinline]] void PointerShard::EnterTable() noexcept {
  const bool is_new = table_.Insert(newest_data_, newest_);
  CHECK(is_new) << "handed out twice: " << newest_data_;
}

void PointerShard::Insert(const void* data, Allocation* allocation) {
  for (;;) {
    {
      const std::lock_guard<SpinLock> guard(lock_);
      CHECK(newest_data_ != data) << "handed out twice: " << data;
      const bool has_room = newest_ == nullptr || !table_.is_full();
      if (has_room) {
        if (newest_ != nullptr) EnterTable();
        table_.Prefetch(data);
        return Wait(data, allocation);
      }
    }
    Grow();
  }
}

Allocation* PointerShard::Take(const void* data) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return newest_data_ == data ? GiveNewest() : table_.Take(data);
}

Allocation* PointerShard::Find(const void* data) const {
  const std::lock_guard<SpinLock> guard(lock_);
  return newest_data_ == data ? newest_ : table_.Find(data);
}

std::size_t PointerShard::Clear() noexcept {
  PointerTable table;
  Allocation* newest = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
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
