#include "strata/allocation/hit/chain_lock.h"

namespace strata {

void ChainLock::Open(RemoteFrees& frees) noexcept {
  if (is_open()) return;
  frees_ = &frees;
  frees.Open();
}

void ChainLock::Close() noexcept {
  if (!is_open()) return;
  frees_->Close();
  frees_->TakeIn();
  frees_ = nullptr;
}

}  // namespace strata
