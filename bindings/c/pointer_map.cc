#include "strata/bindings/c/pointer_map.h"

#include <algorithm>
#include <bit>

#include "strata/allocation/allocator.h"
#include "strata/base/log.h"

namespace strata {

PointerMap::Table::Table(std::size_t capacity)
    : entries_(std::make_unique<Entry[]>(capacity)),
      mask_(capacity - 1),
      room_(capacity <= kSparseEntries ? capacity / 4 : capacity / 2),
      shift_(64 - std::countr_zero(capacity)) {}

void PointerMap::Table::RefuseTwice(const void* data) noexcept {
  STRATA_FATAL << "handed out twice: " << data;
}

void PointerMap::Grow(Shard& shard) {
  constexpr std::size_t kFirstCapacity = 8;
  std::size_t capacity = 0;
  {
    const std::lock_guard<SpinLock> guard(shard.lock);
    capacity = shard.table.capacity();
  }
  // No heap call with the lock held; the old table is freed after it, too.
  Table larger(std::max(kFirstCapacity, 2 * capacity));
  const std::lock_guard<SpinLock> guard(shard.lock);
  if (shard.table.capacity() != capacity) return;
  shard.table.ForEach([&larger](const Entry& entry) {
    larger.Insert(entry.data, entry.allocation);
  });
  std::swap(shard.table, larger);
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  for (Shard& shard : shards_) {
    Table all;
    {
      const std::lock_guard<SpinLock> guard(shard.lock);
      std::swap(shard.table, all);
    }
    all.ForEach([&count](const Entry& entry) {
      const AllocationPtr freed(entry.allocation);
      ++count;
    });
  }
  return count;
}

}  // namespace strata
