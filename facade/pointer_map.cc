#include "strata/facade/pointer_map.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace strata {
namespace {

constexpr std::size_t kFirstCapacity = 16;

}  // namespace

std::size_t PointerMap::Table::Position(const void* data) const {
  std::size_t position = Home(data);
  while (slots[position].data != nullptr && slots[position].data != data) {
    position = (position + 1) & mask;
  }
  return position;
}

void PointerMap::Table::Remove(std::size_t position) {
  --count;
  // Whoever is further from home than the gap moves into it.
  std::size_t next = position;
  while (true) {
    next = (next + 1) & mask;
    const Slot& slot = slots[next];
    if (slot.data == nullptr) break;
    if (((next - Home(slot.data)) & mask) < ((next - position) & mask)) {
      continue;
    }
    slots[position] = slot;
    position = next;
  }
  slots[position] = Slot();
}

void PointerMap::Grow(Shard& shard) {
  std::size_t capacity = 0;
  {
    const std::lock_guard<SpinLock> guard(shard.lock);
    if (!shard.table.is_full()) return;
    capacity = std::max(kFirstCapacity, 2 * shard.table.capacity());
  }
  // No heap call with the lock held; neither is the old one freed there.
  Table larger;
  larger.slots = std::make_unique<Slot[]>(capacity);
  larger.mask = capacity - 1;
  larger.shift = 64 - std::countr_zero(capacity);
  const std::lock_guard<SpinLock> guard(shard.lock);
  Table& table = shard.table;
  if (table.capacity() >= capacity) return;  // another thread was first
  for (std::size_t i = 0; i < table.capacity(); ++i) {
    const Slot& slot = table.slots[i];
    if (slot.data != nullptr) larger.slots[larger.Position(slot.data)] = slot;
  }
  larger.count = table.count;
  std::swap(table, larger);
}

void PointerMap::Insert(AllocationPtr allocation) {
  const void* data = allocation->data();
  Shard& shard = shards_[Index(data)];
  while (true) {
    {
      const std::lock_guard<SpinLock> guard(shard.lock);
      Table& table = shard.table;
      if (!table.is_full()) {
        Slot& slot = table.slots[table.Position(data)];
        CHECK(slot.data == nullptr) << "handed out twice: " << data;
        slot = Slot{data, allocation.release()};
        ++table.count;
        return;
      }
    }
    Grow(shard);
  }
}

Allocation* PointerMap::Find(const void* data) const {
  const Shard& shard = shards_[Index(data)];
  const std::lock_guard<SpinLock> guard(shard.lock);
  if (data == nullptr || shard.table.count == 0) return nullptr;
  return shard.table.slots[shard.table.Position(data)].allocation;
}

AllocationPtr PointerMap::Take(const void* data) noexcept {
  Shard& shard = shards_[Index(data)];
  const std::lock_guard<SpinLock> guard(shard.lock);
  Table& table = shard.table;
  if (data == nullptr || table.count == 0) return nullptr;
  const std::size_t position = table.Position(data);
  AllocationPtr allocation(table.slots[position].allocation);
  if (allocation != nullptr) table.Remove(position);
  return allocation;
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    Table table;
    {
      const std::lock_guard<SpinLock> guard(shard.lock);
      std::swap(table, shard.table);
    }
    for (std::size_t i = 0; i < table.capacity(); ++i) {
      const AllocationPtr freed(table.slots[i].allocation);
    }
    count += table.count;
  }
  return count;
}

}  // namespace strata
