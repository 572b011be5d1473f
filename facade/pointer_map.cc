#include "strata/facade/pointer_map.h"

#include <glog/logging.h>

#include <utility>

namespace strata {

void PointerMap::Insert(AllocationPtr allocation) {
  const void* data = allocation->data();
  Shard& shard = shards_[Index(data)];
  const std::lock_guard<std::mutex> guard(shard.mutex);
  const auto [entry, is_new] = shard.live.try_emplace(data);
  CHECK(is_new) << "handed out twice: " << data;
  entry->second = std::move(allocation);
}

Allocation* PointerMap::Find(const void* data) const {
  const Shard& shard = shards_[Index(data)];
  const std::lock_guard<std::mutex> guard(shard.mutex);
  const auto found = shard.live.find(data);
  return found != shard.live.end() ? found->second.get() : nullptr;
}

AllocationPtr PointerMap::Take(const void* data) noexcept {
  Shard& shard = shards_[Index(data)];
  const std::lock_guard<std::mutex> guard(shard.mutex);
  const auto found = shard.live.find(data);
  if (found == shard.live.end()) return nullptr;
  AllocationPtr allocation = std::move(found->second);
  shard.live.erase(found);
  return allocation;
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    decltype(shard.live) live;
    {
      const std::lock_guard<std::mutex> guard(shard.mutex);
      live.swap(shard.live);
    }
    count += live.size();
  }
  return count;
}

}  // namespace strata
