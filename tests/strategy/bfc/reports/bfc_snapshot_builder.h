#ifndef STRATA_TESTS_STRATEGY_BFC_REPORTS_BFC_SNAPSHOT_BUILDER_H_
#define STRATA_TESTS_STRATEGY_BFC_REPORTS_BFC_SNAPSHOT_BUILDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "strata/strategy/bfc/arena/geometry.h"
#include "strata/strategy/bfc/reports/snapshot.h"

namespace strata {

// Builds a BfcSnapshot by hand, one chunk after another, with consistent
// numbers.
class BfcSnapshotBuilder {
 public:
  explicit BfcSnapshotBuilder(std::uintptr_t address = 0x1000000)
      : address_(address) {
    snapshot_.allocator_name = "bfc";
    snapshot_.place = DevicePlace(0);
  }

  // Starts a region that is not adjacent to the previous one. Chunks follow.
  BfcSnapshotBuilder& Region() {
    address_ += 0x10000;
    snapshot_.regions.push_back({address_, 0, snapshot_.chunks.size(), 0});
    return *this;
  }
  BfcSnapshotBuilder& InUse(std::size_t requested, std::size_t size,
                            const std::string& annotation = "") {
    auto& chunk = Add(size);
    chunk.in_use = true;
    chunk.requested_bytes = requested;
    chunk.allocation_id =
        static_cast<std::int64_t>(++snapshot_.numbers.num_allocs);
    chunk.annotation = annotation;
    auto& numbers = snapshot_.numbers;
    numbers.bytes_in_use += size;
    numbers.peak_bytes_in_use = numbers.bytes_in_use;
    numbers.peak_allocated_bytes = numbers.bytes_in_use;
    numbers.largest_alloc_size = std::max(numbers.largest_alloc_size, size);
    return *this;
  }
  // `freed_at_count` 0: safe.
  BfcSnapshotBuilder& Free(std::size_t size, std::uint64_t freed_at_count = 0) {
    auto& chunk = Add(size);
    chunk.bin = BfcBinOf(size);
    chunk.freed_at_count = freed_at_count;
    snapshot_.numbers.largest_free_block_bytes =
        std::max(snapshot_.numbers.largest_free_block_bytes, size);
    return *this;
  }
  BfcSnapshotBuilder& Limit(std::size_t bytes) {
    snapshot_.memory_limit_bytes = snapshot_.numbers.bytes_limit = bytes;
    return *this;
  }

  // Direct access to fields without a function.
  BfcSnapshot& snapshot() { return snapshot_; }
  BfcSnapshot::ChunkState& last() { return snapshot_.chunks.back(); }

 private:
  BfcSnapshot::ChunkState& Add(std::size_t size) {
    auto& region = snapshot_.regions.back();
    region.size += size;
    ++region.chunk_count;
    snapshot_.numbers.pool_bytes += size;
    snapshot_.numbers.peak_pool_bytes = snapshot_.numbers.pool_bytes;
    auto& chunk = snapshot_.chunks.emplace_back();
    chunk.address = address_;
    chunk.size = size;
    chunk.action_count = ++snapshot_.action_count;
    address_ += size;
    return chunk;
  }

  std::uintptr_t address_;
  BfcSnapshot snapshot_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_BFC_REPORTS_BFC_SNAPSHOT_BUILDER_H_
