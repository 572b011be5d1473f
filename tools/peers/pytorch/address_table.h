#ifndef STRATA_TOOLS_PEERS_PYTORCH_ADDRESS_TABLE_H_
#define STRATA_TOOLS_PEERS_PYTORCH_ADDRESS_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"

namespace strata::peers {

// Maps an address to a value: a flat hash map with linear probing.
//
// Threads: externally synchronised.
// Cost: constant; heap calls only to grow.
template <class Value>
class FlatAddressMap {
 public:
  // `address` is not 0 and not in the map.
  void Insert(DevicePtr address, Value* value) {
    if (2 * (size_ + 1) > cells_.size()) Grow();
    Place(address, value);
    ++size_;
  }

  // Removes `address`; null if it is not in the map.
  Value* Take(DevicePtr address) {
    if (cells_.empty()) return nullptr;
    std::size_t at = Home(address);
    while (cells_[at].address != address) {
      if (cells_[at].address == 0) return nullptr;
      at = Next(at);
    }
    Value* value = cells_[at].value;
    CloseGap(at);
    --size_;
    return value;
  }

  template <class Visit>
  void ForEach(Visit visit) const {
    for (const Cell& cell : cells_) {
      if (cell.address != 0) visit(cell.value);
    }
  }

 private:
  struct Cell {
    DevicePtr address = 0;  // 0: empty
    Value* value = nullptr;
  };

  // Fibonacci hashing: the high bits of the product are well mixed.
  std::size_t Home(DevicePtr address) const {
    return static_cast<std::size_t>((address * 0x9e3779b97f4a7c15U) >> shift_);
  }
  std::size_t Next(std::size_t at) const {
    return (at + 1) & (cells_.size() - 1);
  }
  std::size_t Distance(std::size_t from, std::size_t to) const {
    return (to - from) & (cells_.size() - 1);
  }

  void Place(DevicePtr address, Value* value) {
    std::size_t at = Home(address);
    while (cells_[at].address != 0) at = Next(at);
    cells_[at] = {address, value};
  }

  void Grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : 2 * cells_.size());
    old.swap(cells_);
    shift_ = 64;
    for (std::size_t size = cells_.size(); size > 1; size /= 2) --shift_;
    for (const Cell& cell : old) {
      if (cell.address != 0) Place(cell.address, cell.value);
    }
  }

  // Moves cells up so that no probe ends at `gap` too early.
  void CloseGap(std::size_t gap) {
    for (std::size_t at = Next(gap); cells_[at].address != 0; at = Next(at)) {
      const std::size_t home = Home(cells_[at].address);
      if (Distance(home, at) < Distance(gap, at)) continue;
      cells_[gap] = cells_[at];
      gap = at;
    }
    cells_[gap] = {};
  }

  std::vector<Cell> cells_;  // a power of two, at most half of them used
  std::size_t size_ = 0;
  unsigned shift_ = 64;  // 64 minus the logarithm of the number of cells
};

// FlatAddressMap in 67 shards with a lock each, as in pytorch.md §2.2.
//
// Threads: any thread.
template <class Value>
class ShardedAddressMap {
 public:
  void Insert(DevicePtr address, Value* value) {
    Shard& shard = ShardOf(address);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.map.Insert(address, value);
  }
  Value* Take(DevicePtr address) {
    Shard& shard = ShardOf(address);
    const std::lock_guard<std::mutex> lock(shard.mutex);
    return shard.map.Take(address);
  }
  // No other thread may insert or take meanwhile.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const Shard& shard : shards_) shard.map.ForEach(visit);
  }

 private:
  static constexpr std::size_t kShards = 67;
  struct alignas(64) Shard {
    std::mutex mutex;
    FlatAddressMap<Value> map;  // guarded by mutex
  };

  Shard& ShardOf(DevicePtr address) {
    // Addresses are multiples of 256.
    return shards_[(address >> 8) % kShards];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PYTORCH_ADDRESS_TABLE_H_
