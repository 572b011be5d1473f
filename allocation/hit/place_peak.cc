#include "strata/allocation/hit/place_peak.h"

#include <algorithm>

#include "strata/allocation/hit/chain_state.h"

namespace strata {

void PlacePeak::Add(ChainState& chain) {
  const std::lock_guard<std::mutex> guard(mutex_);
  chains_.push_back(&chain);
  const std::lock_guard<ChainLock> chain_guard(chain.lock);
  chain.place_peak = this;
  chain.allowance_bytes = 0;
}

void PlacePeak::Remove(ChainState& chain) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase(chains_, &chain);
  const std::lock_guard<ChainLock> chain_guard(chain.lock);
  chain.place_peak = nullptr;
  chain.allowance_bytes = ChainState::kNoPlacePeak;
}

void PlacePeak::Raise(ChainState& chain) noexcept {
  std::unique_lock<std::mutex> guard(mutex_, std::try_to_lock);
  if (!guard) {
    chain.lock.unlock();
    guard.lock();
    chain.lock.lock();
  }
  if (chains_.size() <= most_chains_) {
    LockAll(&chain);
    const std::uint64_t in_use = InUse();
    bytes_ = std::max(bytes_, in_use);
    Divide(in_use);
    UnlockAll(&chain);
  } else {
    const std::uint64_t in_use = chain.counts.in_use_bytes();
    if (in_use > chain.allowance_bytes) {
      bytes_ += in_use - chain.allowance_bytes;
      is_bound_ = true;
      chain.allowance_bytes = in_use;
    }
    chain.counts.RaisePeak(chain.allowance_bytes);
  }
  chain.lock.unlock();
}

std::uint64_t PlacePeak::bytes() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return bytes_;
}

bool PlacePeak::is_bound() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return is_bound_;
}

void PlacePeak::Reset() noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  LockAll(nullptr);
  bytes_ = InUse();
  is_bound_ = false;
  for (ChainState* chain : chains_) chain->counts.ResetPeak();
  Divide(bytes_);
  UnlockAll(nullptr);
}

void PlacePeak::LockAll(const ChainState* except) noexcept {
  for (ChainState* chain : chains_) {
    if (chain != except) chain->lock.lock();
  }
}

void PlacePeak::UnlockAll(const ChainState* except) noexcept {
  for (ChainState* chain : chains_) {
    if (chain != except) chain->lock.unlock();
  }
}

std::uint64_t PlacePeak::InUse() const noexcept {
  std::uint64_t sum = 0;
  for (const ChainState* chain : chains_) sum += chain->counts.in_use_bytes();
  return sum;
}

void PlacePeak::Divide(std::uint64_t in_use) noexcept {
  if (chains_.empty()) return;
  const std::uint64_t share = (bytes_ - in_use) / chains_.size();
  for (ChainState* chain : chains_) {
    chain->allowance_bytes = chain->counts.in_use_bytes() + share;
    chain->counts.RaisePeak(chain->allowance_bytes);
  }
}

}  // namespace strata
