#include "strata/allocation/record_slab.h"

#include <mutex>
#include <new>

namespace strata {

RecordSlab& RecordSlab::Instance() {
  // Never destroyed: allocations may be freed during static destruction.
  static auto* const slab = new RecordSlab(0);
  return *slab;
}

RecordSlab& RecordSlab::Noted() {
  static auto* const slab = new RecordSlab(kNoteBytes);
  return *slab;
}

bool RecordSlab::AddPage() noexcept {
  const std::size_t page_bytes = kRecordsPerPage * stride_bytes_;
  auto* page = static_cast<std::byte*>(::operator new (
      page_bytes, std::align_val_t{stride_bytes_}, std::nothrow));
  if (page == nullptr) return false;
  const std::lock_guard<SpinLock> guard(lock_);
  for (std::size_t i = kRecordsPerPage; i-- > 0;) {
    stock_.Push((new (page + i * stride_bytes_) Allocation())->block());
  }
  return true;
}

void RecordSlab::FillFromStock(RecordList& list, std::size_t count) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  while (list.size() < count && !stock_.empty()) {
    list.Push(stock_.Pop());
    ++taken_;
  }
}

bool RecordSlab::Fill(RecordList& list, std::size_t count) noexcept {
  FillFromStock(list, count);
  while (list.size() < count) {
    if (!AddPage()) return false;
    FillFromStock(list, count);
  }
  return true;
}

void RecordSlab::Drain(RecordList& list) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  while (Block* record = list.Pop()) {
    stock_.Push(record);
    --taken_;
  }
}

Block* RecordSlab::Take() noexcept {
  RecordList one;
  if (!Fill(one, 1)) return nullptr;
  Block* record = one.Pop();
  record->next = nullptr;
  return record;
}

void RecordSlab::Give(Block* record) noexcept {
  *record = Block();
  const std::lock_guard<SpinLock> guard(lock_);
  stock_.Push(record);
  --taken_;
}

std::size_t RecordSlab::taken() const {
  const std::lock_guard<SpinLock> guard(lock_);
  return taken_;
}

}  // namespace strata
