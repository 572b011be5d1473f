#ifndef STRATA_STRATEGY_BLOCKS_RECORD_STOCK_H_
#define STRATA_STRATEGY_BLOCKS_RECORD_STOCK_H_

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "strata/allocation/record_slab.h"

namespace strata {

// Records that are fetched at once.
inline constexpr std::size_t kRecordBatch = 64;

// The records that a strategy holds ready, so that a hit calls neither the slab
// nor the heap.
//
// Model: records are fetched in batches. Records that coalescing frees stay, up
//   to a bound. They need not be blank; the stock blanks those that it returns
//   to the slab. A stock on the call stack supplies records that are fetched
//   before the acquisition of the lock under which they are needed. Destroy it
//   without that lock.
// Threads: not thread-safe, except Restock. The strategy's lock guards it.
class RecordStock : public RecordSlab::List {
 public:
  explicit RecordStock(RecordSlab& slab) : slab_(slab) {}
  RecordStock(const RecordStock&) = delete;
  RecordStock& operator=(const RecordStock&) = delete;
  ~RecordStock() { GiveBackDownTo(0); }

  // Whether the stock holds `count` records, after a fetch of those that the
  // slab has ready. No heap call.
  bool Has(std::size_t count) noexcept {
    if (size() < count) {
      slab_.FillFromStock(*this, std::max(count, kRecordBatch));
    }
    return size() >= count;
  }
  // Fetches records until the stock holds `count`. False if the host is out of
  // memory.
  bool Fill(std::size_t count = kRecordBatch) noexcept {
    return slab_.Fill(*this, count);
  }
  // Moves records from `supply` until a batch is complete.
  void TakeFrom(RecordStock& supply) noexcept;
  // Returns records above the bound to the slab.
  void Shed() noexcept {
    if (size() > kMost) GiveBackDownTo(kMost / 2);
  }

  // Fetches records, from the heap if needed. `lock`, which guards this stock,
  // is not held. False if the host is out of memory.
  template <class Lock>
  bool Restock(Lock& lock) noexcept {
    RecordStock supply(slab_);
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

#endif  // STRATA_STRATEGY_BLOCKS_RECORD_STOCK_H_
