#include "strata/facade/pointer_map.h"

#include <glog/logging.h>

#include <memory>

#include "strata/allocation/allocator.h"

namespace strata {

PointerMap::~PointerMap() {
  Clear();
  for (const auto& group : groups_) delete group.load();
}

PointerMap::Group& PointerMap::Settle(const Allocation& allocation) {
  // Streams are numbered as they are made.
  const auto number =
      static_cast<std::uint8_t>(1 + allocation.owner()->stream().uid % kGroups);
  Group* group = groups_[number].load();
  if (group == nullptr) {
    auto made = std::make_unique<Group>();
    // If another thread was first, its group is there now.
    if (groups_[number].compare_exchange_strong(group, made.get())) {
      group = made.release();
    }
  }
  std::uint8_t settled = kNoGroup;
  std::atomic<std::uint8_t>& region = regions_[RegionOf(allocation.data())];
  return region.compare_exchange_strong(settled, number) ? *group
                                                         : *groups_[settled];
}

void PointerMap::Insert(AllocationPtr allocation) {
  const void* const data = allocation->data();
  Group* group = GroupOf(data);
  if (group == nullptr) group = &Settle(*allocation);
  if (!group->slots.Insert(data, allocation.get())) {
    CHECK(group->slots.Find(data) == nullptr) << "handed out twice: " << data;
    PointerShard& shard = group->ShardOf(data);
    if (!shard.InsertAtOnce(data, allocation.get(), group->slots)) {
      shard.Insert(data, allocation.get());
    }
  }
  static_cast<void>(allocation.release());
}

Allocation* PointerMap::Find(const void* data) const {
  Group* const group = GroupOf(data);
  if (group == nullptr) return nullptr;
  Allocation* const found = group->slots.Find(data);
  return found != nullptr ? found : group->ShardOf(data).Find(data);
}

AllocationPtr PointerMap::Take(const void* data) noexcept {
  Group* const group = GroupOf(data);
  if (group == nullptr) return nullptr;
  Allocation* const taken = group->slots.Take(data);
  return AllocationPtr(taken != nullptr ? taken
                                        : group->ShardOf(data).Take(data));
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  for (const auto& place : groups_) {
    Group* const group = place.load();
    if (group == nullptr) continue;
    group->slots.TakeAll([&count](Allocation* allocation) {
      const AllocationPtr freed(allocation);
      ++count;
    });
    for (PointerShard& shard : group->shards) count += shard.Clear();
  }
  return count;
}

}  // namespace strata
