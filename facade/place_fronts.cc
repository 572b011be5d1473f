// The functions of PlaceState that list its fronts and sum their statistics.

#include <algorithm>
#include <new>
#include <set>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/place_state.h"

namespace strata {
namespace {

// Visits each layer once, even if several chains share it.
class OncePerLayer final : public AllocatorVisitor {
 public:
  explicit OncePerLayer(AllocatorVisitor& visitor) : visitor_(visitor) {}

  const std::set<const Allocator*>& layers() const { return layers_; }

  void VisitLayer(const Allocator& layer) override {
    is_new_ = layers_.insert(&layer).second;
    if (is_new_) visitor_.VisitLayer(layer);
  }
  void VisitBlocks(const Allocator& layer,
                   const std::vector<BlockInfo>& blocks) override {
    if (is_new_) visitor_.VisitBlocks(layer, blocks);
  }

 private:
  AllocatorVisitor& visitor_;
  std::set<const Allocator*> layers_;
  bool is_new_ = false;
};

}  // namespace

std::optional<Stats> PlaceState::ExactSum() const noexcept {
  // Without the Stat layer, strategies report a common sum.
  if (!options_.decorators.stat) return std::nullopt;
  try {
    return SumOfFronts();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

std::size_t PlaceState::LiveBytes() const noexcept {
  const std::optional<Stats> sum = ExactSum();
  return sum ? sum->in_use_bytes : 0;
}

std::optional<std::uint64_t> PlaceState::CountIfUnused() const noexcept {
  // An allocation is counted after its memory is acquired, but before it can be
  // freed. So an allocation that was in use meanwhile changes one of the three
  // results.
  const std::optional<Stats> before = ExactSum();
  const bool is_unused = pool_->market().IsUnused();
  const std::optional<Stats> after = ExactSum();
  if (!before || !is_unused || !after ||
      before->allocations != after->allocations) {
    return std::nullopt;
  }
  return after->allocations;
}

void PlaceState::SettleFrees() const {
  // A free under one of these locks either completed before this call acquired
  // the lock, or sees the waiter afterwards.
  ForEachFront([](Front& front) { front.EndWaiting(); });
  static_cast<void>(frees_->deferred());
}

void PlaceState::Unpinner::operator()(Chain* chain) const noexcept {
  chain->Unpin();
}

void PlaceState::Finish(Chain& chain, const Stats& totals) {
  const Allocator* const strategy = &CarvingLayer(chain);
  Stats own;
  // A strategy shared by streams lives on.
  if (strategy != strategy_->shared().get()) own = strategy->stats();
  own.idle_bytes = own.free_blocks = own.largest_free_bytes = 0;
  ForgetHeeds(chain);
  const std::lock_guard<std::mutex> guard(list_mutex_);
  Accumulate(finished_strategies_, own);
  const std::size_t position = chain.listing().position;
  fronts_[position] = fronts_.back();
  fronts_[position]->listing().position = position;
  fronts_.pop_back();
  // The front's remaining memory returns to the pool without it.
  Stats past = totals;
  past.frees = past.allocations;
  past.in_use_bytes = past.requested_bytes = 0;
  past.reserved_bytes = past.idle_bytes = 0;
  past.chunks = past.free_blocks = past.largest_free_bytes = 0;
  Accumulate(finished_, past);
  finished_peak_bytes_ =
      std::max(finished_peak_bytes_, totals.peak_in_use_bytes);
}

Front* PlaceState::AddFront(const std::shared_ptr<ChainStream>& stream,
                            std::shared_ptr<Allocator> chain,
                            Chain::Role role) {
  const std::lock_guard<std::mutex> guard(list_mutex_);
  // First, because a front that was made must be listed.
  if (fronts_.size() == fronts_.capacity()) {
    fronts_.reserve(2 * fronts_.size() + 1);
  }
  auto* front =
      new Front({shared_from_this(), device_, gate(), reclaimer_->retry(),
                 fill_.get(), allocation_log_.get()},
                stream, std::move(chain), role);
  front->listing().position = fronts_.size();
  front->listing().number = ++listed_;
  fronts_.push_back(front);
  HeedEnd(*front, front->stream());
  return front;
}

void PlaceState::Heed(Chain& chain, std::uint64_t uid) {
  Chain::Listing& listing = chain.listing();
  const auto [heeded, is_new] = listing.heeds.insert(uid);
  if (!is_new) return;
  try {
    heeding_[uid].emplace(listing.number, &chain);
  } catch (...) {
    listing.heeds.erase(heeded);
    throw;
  }
}

void PlaceState::HeedEnd(Chain& chain, Stream stream) noexcept {
  std::atomic<std::uint64_t>& heeded = chain.listing().heeded;
  if (stream.uid == 0 || heeded.load(std::memory_order_relaxed) == stream.uid) {
    return;
  }
  try {
    const std::lock_guard<std::mutex> guard(heeds_mutex_);
    Heed(chain, stream.uid);
    heeded.store(stream.uid, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    tells_all_ = true;
  }
}

void PlaceState::ForgetHeeds(Chain& chain) noexcept {
  Chain::Listing& listing = chain.listing();
  const std::lock_guard<std::mutex> guard(heeds_mutex_);
  for (const std::uint64_t uid : listing.heeds) {
    const auto found = heeding_.find(uid);
    if (found == heeding_.end()) continue;
    found->second.erase(listing.number);
    if (found->second.empty()) heeding_.erase(found);
  }
  listing.heeds.clear();
}

void PlaceState::TellOfEnd(Stream stream) {
  const auto tell = [stream](Chain& chain) { chain.StreamDestroyed(stream); };
  if (tells_all_) {
    ForEachFront(tell);
  } else {
    std::vector<PinnedChain> pinned;
    {
      const std::lock_guard<std::mutex> guard(heeds_mutex_);
      const auto found = heeding_.find(stream.uid);
      if (found != heeding_.end()) {
        pinned.reserve(found->second.size());
        for (const auto& [number, chain] : found->second) {
          if (chain->TryPin()) pinned.emplace_back(chain);
          chain->listing().heeds.erase(stream.uid);
          chain->listing().heeded = 0;
        }
        heeding_.erase(found);
      }
    }
    for (const PinnedChain& chain : pinned) tell(*chain);
  }
  // Chains that outlive their front are notified here.
  pool_->holders().TellHeedersOfEnd(stream);
}

std::vector<PlaceState::PinnedFront> PlaceState::PinAll() const {
  std::vector<PinnedFront> pinned;
  pinned.reserve(fronts_.size());
  for (Front* front : fronts_) {
    if (front->TryPin()) pinned.emplace_back(front);
  }
  return pinned;
}

void PlaceState::ForEachFront(FunctionRef<void(Front&)> visit) const {
  std::vector<PinnedFront> pinned;
  {
    const std::lock_guard<std::mutex> guard(list_mutex_);
    pinned = PinAll();
  }
  for (const PinnedFront& front : pinned) visit(*front);
}

void PlaceState::AcceptAll(AllocatorVisitor& visitor) const {
  OncePerLayer once(visitor);
  ForEachFront([&](Front& front) { front.Accept(once); });
  const std::vector<BlockInfo> rest = pool_->BlocksBeside(once.layers());
  if (!rest.empty()) visitor.VisitBlocks(*pool_, rest);
}

Stats PlaceState::SumOfFronts() const {
  Stats sum;
  std::vector<PinnedFront> pinned;
  {
    // Both under one lock, so that a front that ends meanwhile is counted once.
    const std::lock_guard<std::mutex> guard(list_mutex_);
    sum = finished_;
    pinned = PinAll();
  }
  for (const PinnedFront& front : pinned) Accumulate(sum, front->stats());
  return sum;
}

void PlaceState::Explain(Failure& failure) const noexcept {
  try {
    // The size of a driver's pool is a driver call.
    const CaptureGate::RelaxedScope relaxed(gate(), device_);
    failure.live_bytes = SumOfFronts().in_use_bytes;
    const std::size_t reserved = pool_->reserved_bytes();
    failure.cached_bytes = reserved - std::min(reserved, failure.live_bytes);
    failure.knows_place = true;
  } catch (const std::bad_alloc&) {
    // The failure retains its earlier numbers.
  }
}

Stats PlaceState::SumOfStrategies() const {
  Stats sum;
  std::set<const Allocator*> counted;
  const auto add = [&](const Allocator* strategy) {
    if (!counted.insert(strategy).second) return;
    const Stats stats = strategy->stats();
    Accumulate(sum, stats);
    LimitReserved(sum, stats.reserved_limit_bytes, stats.reserved_limit_flag);
  };
  const std::shared_ptr<Allocator> shared = strategy_->shared();
  if (shared != nullptr) add(shared.get());
  std::vector<PinnedFront> pinned;
  {
    const std::lock_guard<std::mutex> guard(list_mutex_);
    Accumulate(sum, finished_strategies_);
    pinned = PinAll();
  }
  for (const PinnedFront& front : pinned) add(&CarvingLayer(*front));
  return sum;
}

std::uint64_t PlaceState::LargestPeak() const {
  std::uint64_t largest = 0;
  ForEachFront([&](Front& front) {
    largest = std::max(largest, front.stats().peak_in_use_bytes);
  });
  const std::lock_guard<std::mutex> guard(list_mutex_);
  return std::max(largest, finished_peak_bytes_);
}

void PlaceState::ResetPeak() {
  ForEachFront([](Front& front) { front.ResetPeak(); });
  if (const auto of_place = peak()) of_place->Reset();
  const std::lock_guard<std::mutex> guard(list_mutex_);
  finished_.peak_in_use_bytes = 0;
  finished_.peak_in_use_is_bound = false;
  finished_peak_bytes_ = 0;
}

}  // namespace strata
