#include "strata/facade/pointer_map.h"

#include <glog/logging.h>

#include <mutex>

#include "strata/allocation/allocator.h"

namespace strata {

std::size_t PointerMap::Settle(const Allocation& allocation) noexcept {
  // Streams are numbered as they are made.
  const std::uint64_t stream = allocation.owner()->stream().uid;
  const auto group = static_cast<std::uint8_t>(1 + stream % kGroups);
  std::uint8_t before = kNoGroup;
  auto& place = groups_[RegionOf(allocation.data())];
  return place.compare_exchange_strong(before, group) ? group : before;
}

void PointerMap::Grow(Shard& shard) {
  std::size_t buckets = 0;
  {
    const std::lock_guard<BiasedLock> guard(shard.lock);
    if (!shard.table.is_full()) return;
    buckets = shard.table.bucket_count();
  }
  // No heap call with the lock held; neither is the old one freed there.
  PointerTable larger = PointerTable::Larger(buckets);
  const std::lock_guard<BiasedLock> guard(shard.lock);
  // Another thread may have been first.
  if (shard.table.bucket_count() != buckets) return;
  larger.AddAll(shard.table);
  std::swap(shard.table, larger);
}

inline bool PointerMap::MakeWay(Shard& shard, const void* data) noexcept {
  if (shard.newest == nullptr) return true;
  CHECK(shard.newest_data != data) << "handed out twice: " << data;
  if (shard.table.is_full()) return false;
  shard.table.Prefetch(data);
  const bool is_new = shard.table.Insert(shard.newest_data, shard.newest);
  CHECK(is_new) << "handed out twice: " << shard.newest_data;
  return true;
}

inline bool PointerMap::TryInsert(Shard& shard,
                                  Allocation* allocation) noexcept {
  const void* data = allocation->data();
  if (!MakeWay(shard, data)) return false;
  shard.newest_data = data;
  shard.newest = allocation;
  return true;
}

void PointerMap::InsertSlowly(Allocation* allocation) {
  AllocationPtr held(allocation);
  const void* data = allocation->data();
  std::size_t group = GroupOf(data);
  if (group == kNoGroup) group = Settle(*allocation);
  Shard& shard = shards_[ShardIndex(group, data)];
  for (;;) {
    {
      const BiasedLock::Guard guard(shard.lock);
      if (TryInsert(shard, allocation)) break;
    }
    Grow(shard);
  }
  static_cast<void>(held.release());
}

[[gnu::noinline]] void PointerMap::Replace(Shard& shard,
                                           Allocation* allocation) {
  {
    const std::lock_guard<BiasedLock> guard(shard.lock, std::adopt_lock);
    if (TryInsert(shard, allocation)) return;
  }
  InsertSlowly(allocation);
}

[[gnu::noinline]] Allocation* PointerMap::TakeFromTable(
    Shard& shard, const void* data) noexcept {
  const std::lock_guard<BiasedLock> guard(shard.lock, std::adopt_lock);
  return shard.table.Take(data);
}

[[gnu::noinline]] Allocation* PointerMap::TakeSlowly(
    Shard& shard, const void* data) noexcept {
  const BiasedLock::Guard guard(shard.lock);
  if (shard.newest_data != data) return shard.table.Take(data);
  shard.newest_data = nullptr;
  return std::exchange(shard.newest, nullptr);
}

Allocation* PointerMap::Find(const void* data) const {
  const Shard& shard = shards_[ShardIndex(GroupOf(data), data)];
  const std::lock_guard<BiasedLock> guard(shard.lock);
  return shard.newest_data == data ? shard.newest : shard.table.Find(data);
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  const auto free = [&count](Allocation* allocation) {
    const AllocationPtr freed(allocation);
    ++count;
  };
  for (Shard& shard : shards_) {
    PointerTable table;
    Allocation* newest = nullptr;
    {
      const std::lock_guard<BiasedLock> guard(shard.lock);
      std::swap(table, shard.table);
      std::swap(newest, shard.newest);
      shard.newest_data = nullptr;
    }
    if (newest != nullptr) free(newest);
    table.ForEach(free);
  }
  return count;
}

}  // namespace strata
