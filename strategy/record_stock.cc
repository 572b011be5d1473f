#include "strata/strategy/record_stock.h"

#include <mutex>

namespace strata {

bool RecordSupply::Fill() noexcept {
  return slab_.Fill(records_, RecordStock::kBatch);
}

void RecordStock::TakeFrom(RecordSupply& supply) noexcept {
  while (size() < kBatch && !supply.records_.empty()) {
    Push(supply.records_.Pop());
  }
}

bool RecordStock::Restock(SpinLock& lock) noexcept {
  RecordSupply supply(slab_);
  const bool filled = supply.Fill();
  const std::lock_guard<SpinLock> guard(lock);
  TakeFrom(supply);
  return filled;
}

void RecordStock::GiveBackDownTo(std::size_t count) noexcept {
  RecordList blank;
  while (size() > count) {
    Block* record = Pop();
    *record = Block();
    blank.Push(record);
  }
  slab_.Drain(blank);
}

}  // namespace strata
