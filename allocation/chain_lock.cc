#include "strata/allocation/chain_lock.h"

namespace strata {

[[gnu::noinline]] void ChainLock::TakeInSlowly() noexcept {
  if (has_waiting()) return frees_->TakeIn();
  // It can have no owner any more.
  if (own_bit() == 0 && !is_simple()) {
    ways_.store(ways_.load(std::memory_order_relaxed) & kOpenBit,
                std::memory_order_relaxed);
  }
}

void ChainLock::Open(RemoteFrees& frees) noexcept {
  if (is_open()) return;
  frees_ = &frees;
  frees.Open();
  ways_.store(own_bit() | kOpenBit, std::memory_order_relaxed);
}

bool ChainLock::Close() noexcept {
  if (!is_open()) return false;
  frees_->Close();
  frees_->TakeIn();
  ways_.store(own_bit(), std::memory_order_relaxed);
  return true;
}

}  // namespace strata
