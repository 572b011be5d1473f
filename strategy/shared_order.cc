#include "strata/strategy/shared_order.h"

#include <glog/logging.h>

#include <algorithm>
#include <new>

namespace strata {
namespace {

void StoreMax(std::atomic<std::uint64_t>& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load();
  while (seen < value && !peak.compare_exchange_weak(seen, value)) {
  }
}

// Makes `later` wait on the device for all that was submitted to `earlier`.
bool OrderOnDevice(ChainStream& earlier, ChainStream& later) noexcept {
  Device* device = earlier.device();
  if (device == nullptr || later.device() == nullptr || later.retired()) {
    return false;
  }
  Event done;
  if (device->EventCreate(&done, kEventDisableTiming) != Status::kSuccess) {
    return false;
  }
  const bool ordered =
      device->EventRecord(done, earlier.stream(), 0) == Status::kSuccess &&
      later.device()->StreamWaitEvent(later.stream(), done, 0) ==
          Status::kSuccess;
  const Status status = device->EventDestroy(done);
  LOG_IF(ERROR, status != Status::kSuccess)
      << "cannot destroy an event: " << ToString(status);
  return ordered;
}

}  // namespace

std::uint64_t SharedOrder::Share::SeenOf(const Share& other) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return other.id_ < seen_.size() ? seen_[other.id_] : 0;
}

void SharedOrder::Share::See(const Share& other, std::uint64_t frees) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (seen_.size() <= other.id_) seen_.resize(other.id_ + 1);
  seen_[other.id_] = std::max(seen_[other.id_], frees);
}

// Nobody waits for a stream that is retired: its work is done. But its chain
// may still be noting a free, until it lets go of its share.
void SharedOrder::ForgetGone() {
  std::erase_if(shares_, [this](const auto& share) {
    if (!share->stream().retired() || share.use_count() > 1) return false;
    gone_frees_ += share->frees_.load();
    return true;
  });
}

std::shared_ptr<SharedOrder::Share> SharedOrder::Join(
    std::shared_ptr<ChainStream> stream) {
  memory_device_.store(stream->memory_device());
  const std::lock_guard<std::mutex> guard(mutex_);
  ForgetGone();
  shares_.push_back(std::make_shared<Share>(std::move(stream), next_id_));
  ++next_id_;
  return shares_.back();
}

void SharedOrder::NoteFree(Share& share) noexcept {
  if (share.stream().retired()) return;
  // In this order, so that a reader who takes the count of a share first never
  // counts fewer frees of the others than there were.
  ++frees_;
  ++share.frees_;
}

SharedOrder::Shares SharedOrder::Others(const Share* share,
                                        std::uint64_t& frees) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  frees += gone_frees_;
  Shares others;
  others.reserve(shares_.size());
  for (const auto& other : shares_) {
    if (other.get() != share) others.push_back(other);
  }
  return others;
}

SharedOrder::Shares SharedOrder::All() const {
  std::uint64_t ignored = 0;
  return Others(nullptr, ignored);
}

Status SharedOrder::OrderAfterOthers(Share& share) noexcept {
  const std::uint64_t own = share.frees_.load();
  // May count frees that are just being noted, of this share or another. So it
  // tells whether there may be something new, and not how much was seen.
  const std::uint64_t at_most = frees_.load() - own;
  if (at_most == share.seen_in_all_.load()) return Status::kSuccess;
  std::uint64_t seen = 0;
  try {
    for (const auto& other : Others(&share, seen)) {
      const std::uint64_t frees = other->frees_.load();
      seen += frees;
      if (frees == share.SeenOf(*other) || other->stream().retired()) continue;
      if (!OrderOnDevice(other->stream(), share.stream())) {
        const Status status = other->stream().Synchronize();
        if (status != Status::kSuccess) return status;
      }
      share.See(*other, frees);
    }
  } catch (const std::bad_alloc&) {
    return Status::kMemoryAllocation;
  }
  StoreMax(share.seen_in_all_, seen);
  return Status::kSuccess;
}

Status SharedOrder::Synchronize() noexcept {
  Status first_error = Status::kSuccess;
  try {
    for (const auto& share : All()) {
      const Status status = share->stream().Synchronize();
      if (first_error == Status::kSuccess) first_error = status;
    }
  } catch (const std::bad_alloc&) {
    // No host memory for the list of streams: their device covers them all.
    Device* device = nullptr;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (!shares_.empty()) device = shares_.front()->stream().device();
    }
    return device != nullptr ? device->Synchronize() : Status::kSuccess;
  }
  return first_error;
}

bool SharedOrder::IsDone() noexcept {
  try {
    const Shares shares = All();
    return std::all_of(shares.begin(), shares.end(), [](const auto& share) {
      return share->stream().IsDone();
    });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace strata
