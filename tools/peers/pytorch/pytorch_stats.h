#ifndef STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_STATS_H_
#define STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_STATS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/tools/peers/peer.h"

namespace strata::peers {

// One number of torch.cuda.memory_stats.
struct PytorchStat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  // total
  std::int64_t freed = 0;      // total

  void Increase(std::int64_t more) {
    current += more;
    peak = std::max(peak, current);
    allocated += more;
  }
  void Decrease(std::int64_t less) {
    current -= less;
    freed += less;
  }
};

// The statistics that change with each allocation and free, and the reserved
// bytes; each for all blocks, for small ones and for large ones.
//
// Threads: externally synchronised.
// Source: pytorch.md §2.12, §5.
class PytorchStats {
 public:
  // The row of a number, beside the row of all blocks.
  enum Pool : std::size_t { kSmall = 1, kLarge = 2 };

  void Allocated(Pool pool, std::size_t bytes, std::size_t requested_bytes) {
    Increase(allocation_, pool, 1);
    Increase(allocated_bytes_, pool, bytes);
    Increase(active_, pool, 1);
    Increase(active_bytes_, pool, bytes);
    Increase(requested_bytes_, pool, requested_bytes);
  }
  void Freed(Pool pool, std::size_t bytes, std::size_t requested_bytes) {
    Decrease(allocation_, pool, 1);
    Decrease(allocated_bytes_, pool, bytes);
    Decrease(active_, pool, 1);
    Decrease(active_bytes_, pool, bytes);
    Decrease(requested_bytes_, pool, requested_bytes);
  }
  // An inactive split is a free part of a plain segment that is partly in use.
  // Call these when one is created or removed.
  void AddedInactiveSplit(Pool pool, std::size_t bytes) {
    Increase(inactive_split_, pool, 1);
    Increase(inactive_split_bytes_, pool, bytes);
  }
  void RemovedInactiveSplit(Pool pool, std::size_t bytes) {
    Decrease(inactive_split_, pool, 1);
    Decrease(inactive_split_bytes_, pool, bytes);
  }
  void Reserved(Pool pool, std::size_t bytes) {
    Increase(reserved_bytes_, pool, bytes);
  }
  void GivenBack(Pool pool, std::size_t bytes) {
    Decrease(reserved_bytes_, pool, bytes);
  }

  const PytorchStat& active_bytes(Pool pool) const {
    return active_bytes_[pool];
  }
  const PytorchStat& requested_bytes(Pool pool) const {
    return requested_bytes_[pool];
  }
  const PytorchStat& inactive_split(Pool pool) const {
    return inactive_split_[pool];
  }
  const PytorchStat& inactive_split_bytes(Pool pool) const {
    return inactive_split_bytes_[pool];
  }
  PeerStats ForPeer() const {
    const auto unsigned_of = [](std::int64_t number) {
      return static_cast<std::uint64_t>(number);
    };
    return {unsigned_of(allocation_[kAll].allocated),
            unsigned_of(allocated_bytes_[kAll].current),
            unsigned_of(reserved_bytes_[kAll].current),
            unsigned_of(reserved_bytes_[kAll].peak)};
  }

 private:
  static constexpr std::size_t kAll = 0;
  using Row = std::array<PytorchStat, 3>;

  static void Increase(Row& row, Pool pool, std::size_t more) {
    for (const std::size_t which : {kAll, std::size_t{pool}}) {
      row[which].Increase(static_cast<std::int64_t>(more));
    }
  }
  static void Decrease(Row& row, Pool pool, std::size_t less) {
    for (const std::size_t which : {kAll, std::size_t{pool}}) {
      row[which].Decrease(static_cast<std::int64_t>(less));
    }
  }

  Row allocation_{};
  Row allocated_bytes_{};
  Row active_{};
  Row active_bytes_{};
  Row requested_bytes_{};
  Row inactive_split_{};
  Row inactive_split_bytes_{};
  Row reserved_bytes_{};
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PYTORCH_PYTORCH_STATS_H_
