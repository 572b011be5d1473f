#include "strata/allocation/chunks/retired_holders.h"

#include <mutex>
#include <utility>

namespace strata {

void RetiredHolders::Push(std::unique_ptr<ChunkHolder> holder) noexcept {
  ChunkHolder* const last = holder.get();
  const std::lock_guard<SpinLock> guard(lock_);
  (last_ != nullptr ? last_->next_retired_ : first_) = std::move(holder);
  last_ = last;
  ++size_;
}

std::unique_ptr<ChunkHolder> RetiredHolders::Pop() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  std::unique_ptr<ChunkHolder> first = std::move(first_);
  if (first == nullptr) return nullptr;
  first_ = std::move(first->next_retired_);
  if (first_ == nullptr) last_ = nullptr;
  --size_;
  return first;
}

std::size_t RetiredHolders::size() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return size_;
}

}  // namespace strata
