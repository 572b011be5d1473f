#include "strata/facade/pointer_map.h"

#include "strata/allocation/allocator.h"

namespace strata {

void PointerMap::Settle(const Allocation& allocation) noexcept {
  auto& place = groups_[RegionOf(allocation.data())];
  if (place.load(std::memory_order_relaxed) != kNoGroup) return;
  // Streams are numbered as they are made.
  const std::uint64_t stream = allocation.owner()->stream().uid;
  const auto group = static_cast<std::uint8_t>(1 + stream % kGroups);
  std::uint8_t before = kNoGroup;
  place.compare_exchange_strong(before, group);
}

void PointerMap::InsertSlowly(AllocationPtr allocation) {
  Settle(*allocation);
  const void* const data = allocation->data();
  ShardOf(data).Insert(data, allocation.get());
  static_cast<void>(allocation.release());
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  for (PointerShard& shard : shards_) count += shard.Clear();
  return count;
}

}  // namespace strata
