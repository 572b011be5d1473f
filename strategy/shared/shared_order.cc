#include "strata/strategy/shared/shared_order.h"

#include <algorithm>
#include <new>

#include "strata/allocation/streams/visit_each.h"
#include "strata/base/store_max.h"
#include "strata/platform/stream.h"

namespace strata {
namespace {

// Orders later work of `later` after all work that was submitted to `earlier`
// before its last free.
Status Order(ChainStream& earlier, ChainStream& later) noexcept {
  StreamTimeline* timeline = earlier.timeline();
  if (timeline == nullptr) return earlier.Synchronize();
  const StreamTimeline::Tick tick = timeline->owed();
  const Status settled = timeline->Settle();
  const bool is_settled = settled == Status::kSuccess ||
                          // The free may have come before the capture of the
                          // stream.
                          settled == Status::kNotReady;
  if (is_settled && later.device() != nullptr && !later.retired()) {
    const Status status =
        timeline->OrderBefore(tick, *later.device(), later.stream());
    if (status == Status::kSuccess) return status;
  }
  // A capture may forbid to touch `later`; the default stream is an example.
  // The host can still wait for an event that was recorded before. Without such
  // an event, Await returns kNotReady.
  return timeline->Await(tick);
}

}  // namespace

std::uint64_t SharedOrder::Share::SeenOf(const Share& other,
                                         std::size_t lane) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::vector<std::uint64_t>& seen = seen_[lane];
  return other.id_ < seen.size() ? seen[other.id_] : 0;
}

void SharedOrder::Share::See(const Share& other, std::size_t lane,
                             std::uint64_t frees) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<std::uint64_t>& seen = seen_[lane];
  if (seen.size() <= other.id_) seen.resize(other.id_ + 1);
  seen[other.id_] = std::max(seen[other.id_], frees);
}

void SharedOrder::NoteFrees(Share& share) noexcept {
  for (std::size_t lane = 0; lane != kLanes; ++lane) NoteFree(share, lane);
}

void SharedOrder::ForgetOver() noexcept {
  VisitEach(mutex_, shares_, [this](const Share& over) {
    if (!over.stream().retired() || !over.stream().IsDone()) return;
    // A chain that still notes a free holds its share. Otherwise there are two
    // references: in shares_, and of this visit.
    const std::lock_guard<std::mutex> guard(mutex_);
    std::erase_if(shares_, [&](const auto& share) {
      if (share.get() != &over || share.use_count() > 2) return false;
      for (std::size_t lane = 0; lane != kLanes; ++lane) {
        gone_frees_[lane] += over.frees_[lane].load();
      }
      return true;
    });
  });
}

std::shared_ptr<SharedOrder::Share> SharedOrder::Join(
    std::shared_ptr<ChainStream> stream) {
  memory_device_.store(stream->memory_device());
  const std::lock_guard<std::mutex> guard(mutex_);
  shares_.push_back(std::make_shared<Share>(std::move(stream), next_id_));
  ++next_id_;
  return shares_.back();
}

void SharedOrder::Activate(Share& share) noexcept {
  if (share.is_active_.load(std::memory_order_relaxed)) return;
  if (!share.is_active_.exchange(true)) ++active_;
}

void SharedOrder::Leave(Share& share) noexcept {
  if (share.is_active_.exchange(false)) --active_;
}

SharedOrder::Shares SharedOrder::Others(const Share& share, std::size_t lane,
                                        std::uint64_t& frees) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  frees += gone_frees_[lane];
  Shares others;
  others.reserve(shares_.size());
  for (const auto& other : shares_) {
    if (other.get() != &share) others.push_back(other);
  }
  return others;
}

bool SharedOrder::MayWaitFor(const Share& share) const noexcept {
  StreamTimeline* const timeline = share.timeline_;
  return timeline != nullptr && !timeline->during_capture() &&
         !timeline->forbids_waits() &&
         reinterpret_cast<std::uintptr_t>(timeline->stream().handle) !=
             kPerThreadHandle &&
         timeline->Close() == Status::kSuccess;
}

Status SharedOrder::OrderAfterOthers(Share& share, std::size_t lane) noexcept {
  if (IsOrdered(share, lane)) return Status::kSuccess;
  std::uint64_t seen = 0;
  try {
    for (const auto& other : Others(share, lane, seen)) {
      const std::uint64_t frees = other->frees_[lane].load();
      seen += frees;
      // Before Order() reads the tick, so that later frees are counted again.
      StoreMax(other->looked_at_[lane], frees);
      if (frees == share.SeenOf(*other, lane)) continue;
      const Status status = Order(other->stream(), share.stream());
      if (status != Status::kSuccess) return status;
      share.See(*other, lane, frees);
    }
  } catch (const std::bad_alloc&) {
    return Status::kMemoryAllocation;
  }
  StoreMax(share.seen_in_all_[lane], seen);
  return Status::kSuccess;
}

Status SharedOrder::Synchronize() noexcept {
  Status error = Status::kSuccess;
  VisitEach(mutex_, shares_, [&](const Share& share) {
    const Status status = share.stream().Synchronize();
    if (status != Status::kSuccess) error = status;
  });
  return error;
}

bool SharedOrder::IsDone() noexcept {
  bool is_done = true;
  VisitEach(mutex_, shares_, [&](const Share& share) {
    is_done = is_done && share.stream().IsDone();
  });
  return is_done;
}

}  // namespace strata
