#include "strata/allocation/record_slab.h"

#include <mutex>
#include <new>

#include "strata/platform/host/huge_pages.h"

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
  const bool is_huge = taken() * stride_bytes_ >= kHugePageBytes;
  const std::size_t bytes =
      is_huge ? kHugePageBytes : kRecordsPerPage * stride_bytes_;
  const std::align_val_t alignment{is_huge ? kHugePageBytes : stride_bytes_};
  auto* const page =
      static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  if (page == nullptr) return false;
  if (is_huge) AdviseHugePages(page, bytes);
  // Writes a byte here, so that the system clears the page while the lock is
  // not held.
  *page = std::byte{0};
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (page_bytes_ == 0) {
      page_ = page;
      page_bytes_ = bytes;
      return true;
    }
  }
  // Another thread added a page first.
  ::operator delete(page, alignment);
  return true;
}

void RecordSlab::FillFromStock(List& list, std::size_t count) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  while (list.size() < count && !stock_.empty()) {
    list.Push(stock_.Pop());
    ++taken_;
  }
  while (list.size() < count && page_bytes_ != 0) {
    list.Push((new (page_) Allocation())->block());
    page_ += stride_bytes_;
    page_bytes_ -= stride_bytes_;
    ++taken_;
  }
}

bool RecordSlab::Fill(List& list, std::size_t count) noexcept {
  FillFromStock(list, count);
  while (list.size() < count) {
    if (!AddPage()) return false;
    FillFromStock(list, count);
  }
  return true;
}

void RecordSlab::Drain(List& list) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  while (Block* record = list.Pop()) {
    stock_.Push(record);
    --taken_;
  }
}

Block* RecordSlab::Take() noexcept {
  List one;
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
