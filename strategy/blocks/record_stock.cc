#include "strata/strategy/blocks/record_stock.h"

namespace strata {

void RecordStock::TakeFrom(RecordStock& supply) noexcept {
  while (size() < kRecordBatch && !supply.empty()) Push(supply.Pop());
}

void RecordStock::GiveBackDownTo(std::size_t count) noexcept {
  RecordSlab::List blank;
  while (size() > count) {
    Block* record = Pop();
    *record = Block();
    blank.Push(record);
    // In batches, so that other threads do not wait long for the slab.
    if (blank.size() == kRecordBatch) slab_.Drain(blank);
  }
  slab_.Drain(blank);
}

}  // namespace strata
