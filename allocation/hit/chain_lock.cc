#include "strata/allocation/hit/chain_lock.h"

namespace strata {

[[gnu::noinline]] void ChainLock::TakeInSlowly() noexcept {
  if (has_waiting()) return frees_->TakeIn();
  NoteWays();
}

void ChainLock::Open(RemoteFrees& frees) noexcept {
  if (is_open()) return;
  frees_ = &frees;
  // Set first, so that a thread that knows of a block left here sees the queue
  // as open.
  ways_.store(own_bit() | kOpenBit, std::memory_order_relaxed);
  frees.Open();
}

void ChainLock::Close() noexcept {
  if (!is_open()) return;
  frees_->Close();
  frees_->TakeIn();
  ways_.store(own_bit(), std::memory_order_relaxed);
}

}  // namespace strata
