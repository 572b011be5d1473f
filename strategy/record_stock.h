#ifndef STRATA_STRATEGY_RECORD_STOCK_H_
#define STRATA_STRATEGY_RECORD_STOCK_H_

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "strata/allocation/record_slab.h"

namespace strata {

// Some records, fetched before the lock is taken under which they are needed.
// Destroy it without that lock: what is left goes back to the slab.
class RecordSupply {
 public:
  explicit RecordSupply(RecordSlab& slab) : slab_(slab) {}
  RecordSupply(const RecordSupply&) = delete;
  RecordSupply& operator=(const RecordSupply&) = delete;
  ~RecordSupply() { slab_.Drain(records_); }

  // A batch, or just `count`. False if the host is out of memory.
  bool Fill() noexcept;
  bool Fill(std::size_t count) noexcept { return slab_.Fill(records_, count); }

 private:
  friend class RecordStock;

  RecordSlab& slab_;
  RecordList records_;
};

// The records that a strategy keeps ready, so that a hit asks neither the slab
// nor the heap.
//
// Model: fetched by the batch; what coalescing leaves is kept, up to a bound.
//   Its records need not be blank; those that go back to the slab are made so.
// Threads: none but Restock; the strategy's lock guards it.
class RecordStock : public RecordList {
 public:
  static constexpr std::size_t kBatch = 64;

  explicit RecordStock(RecordSlab& slab) : slab_(slab) {}
  RecordStock(const RecordStock&) = delete;
  RecordStock& operator=(const RecordStock&) = delete;
  ~RecordStock() { GiveBackDownTo(0); }

  // Whether `count` records are there, now that the slab has been asked for
  // what it has. No heap call.
  bool Has(std::size_t count) noexcept {
    if (size() < count) slab_.FillFromStock(*this, std::max(count, kBatch));
    return size() >= count;
  }
  // Takes what is missing to a batch.
  void TakeFrom(RecordSupply& supply) noexcept;
  // Gives back what is too much.
  void Shed() noexcept {
    if (size() > kMost) GiveBackDownTo(kMost / 2);
  }

  // Fetches records, if need be from the heap; `lock`, which guards this stock,
  // is not held. False if the host is out of memory.
  template <class Lock>
  bool Restock(Lock& lock) noexcept {
    RecordSupply supply(slab_);
    const bool filled = supply.Fill();
    const std::lock_guard<Lock> guard(lock);
    TakeFrom(supply);
    return filled;
  }

 private:
  static constexpr std::size_t kMost = 1024;

  void GiveBackDownTo(std::size_t count) noexcept;

  RecordSlab& slab_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_RECORD_STOCK_H_
