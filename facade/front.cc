#include "strata/facade/front.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

namespace strata {
namespace {

// The Stat layer of a chain, so that hits and walks share its counters.
StatAllocator* FindStat(Allocator* layer) {
  while (layer != nullptr && std::string_view(layer->name()) != "stat") {
    layer = layer->underlying();
  }
  return static_cast<StatAllocator*>(layer);
}

// The fronts where the calling thread is at home (Front::IsHome): a few, each
// in the entry that its address selects.
using Homes = std::array<const Front*, 8>;
thread_local constinit Homes t_homes{};

const Front*& HomeFor(const Front* front) {
  const auto address = reinterpret_cast<std::uintptr_t>(front);
  return t_homes[(address >> 10) % t_homes.size()];
}

// The counters of a hit, under one lock. The Stat layer shares those of the hit
// path. Without a hit path the front counts separately, because upper layers
// may hold back frees.
HitState& StateOf(StatAllocator* stat, HitPath* hit_path,
                  std::optional<LastingHitState>& own, bool biased_lock) {
  if (hit_path != nullptr && stat != nullptr) return stat->hit_state();
  HitState* const state = hit_path != nullptr ? hit_path->hit_state() : nullptr;
  return state != nullptr ? *state : *own.emplace(biased_lock);
}

}  // namespace

Front::Front(std::shared_ptr<PlaceState> state,
             std::shared_ptr<ChainStream> stream,
             std::shared_ptr<Allocator> chain, Role role)
    : Decorator(std::move(chain)),
      state_(std::move(state)),
      stream_(std::move(stream)),
      gate_(state_->gate()),
      retry_(state_->reclaimer()->retry()),
      hit_path_(underlying()->hit_path()),
      stat_(FindStat(underlying())),
      hit_alignment_(underlying()->natural_alignment()),
      role_(role),
      may_wait_(hit_path_ != nullptr && hit_path_->takes_all() &&
                hit_path_->hit_lock() != nullptr),
      hit_(StateOf(stat_, hit_path_, own_,
                   state_->decorator_options().biased_lock())),
      retry_place_(retry_.place()),
      plain_place_(retry_place_),
      remote_frees_(*this, state_->decorator_options().biased_lock()) {
  Front::set_debug_fill(state_->debug_fill());
  set_allocation_log(state_->allocation_log());
}

void Front::set_debug_fill(const DebugFill* fill) {
  Decorator::set_debug_fill(fill);
  const ChainLock::Guard guard(hit_.lock);
  const bool is_plain = fill == nullptr && hit_path_ != nullptr && !orphan_ &&
                        (stat_ == nullptr || stat_->counts_plainly());
  hit_.attention = is_plain ? &gate_.attention() : &HitState::kNeverPlain;
  if (!is_plain) CloseToFrees();
}

[[gnu::noinline, gnu::aligned(64)]] Allocation* Front::AllocInTurn(
    std::size_t bytes) {
  HitState& hit = hit_;
  if (!ChainLock::AsOwner::TakeAtOnce(hit.lock)) return AllocContended(bytes);
  return AllocWith<ChainLock::AsOwner>(hit, bytes);
}

Allocation* Front::AllocFirst(std::size_t bytes) {
  retry_.CountThread();
  return Alloc(hit_, bytes);
}

[[gnu::noinline]] Allocation* Front::AllocContended(std::size_t bytes) {
  ChainLock::AsLocked::Take(hit_.lock);
  return AllocWith<ChainLock::AsLocked>(hit_, bytes);
}

[[gnu::noinline]] Allocation* Front::AllocSlowly(std::size_t bytes) {
  return Allocate(Request{bytes}).release();
}

Allocation* Front::TakeHit(std::size_t bytes) noexcept {
  retry_.CountThread();
  const ChainLock::Guard guard(hit_.lock);
  if (hit_.lock.is_open()) SetHome(true);
  Block* block = hit_path_->Take(bytes);
  if (block == nullptr) return nullptr;
  block->requested = bytes;
  if (stat_ != nullptr) stat_->CountHit(*block);
  if (counts_itself()) hit_.counts.Count(*block);
  return block->allocation();
}

Allocation* Front::TryAllocate(const Request& request,
                               Failure& failure) noexcept {
  if (gate_.any()) return TryAllocateGated(request, failure);
  if (hit_path_ != nullptr && request.alignment <= hit_alignment_ &&
      request.flags == 0 && request.freed_before == 0) {
    if (Allocation* hit = TakeHit(request.bytes)) return hit;
  }
  // The first request of a chain is no hit, so it runs this line.
  was_used_.store(true, std::memory_order_relaxed);
  return Walk(request, failure);
}

Allocation* Front::TryAllocateGated(const Request& request,
                                    Failure& failure) noexcept {
  const RelaxedCaptureScope scope(gate_, state_->device());
  if (!scope) {
    failure = Failure();
    failure.reason = Failure::Reason::kDevice;
    failure.status = Status::kNotReady;
    failure.layer = name();
    failure.detail = "cannot relax the thread's capture mode";
    failure.place = place();
    failure.requested_bytes = request.bytes;
    failure.during_capture = true;
    return nullptr;
  }
  Allocation* allocation = nullptr;
  bool is_captured = false;
  if (role_ == Role::kEager) {
    allocation =
        state_->TryAllocateCaptured(*this, request, failure, &is_captured);
  }
  if (!is_captured) {
    was_used_.store(true, std::memory_order_relaxed);
    allocation = Walk(request, failure);
  }
  if (allocation == nullptr) failure.during_capture = true;
  return allocation;
}

bool Front::CanServe(const Request& request, Failure& failure) const noexcept {
  std::uint32_t unserved = 0;
  for (const Allocator* layer = this; layer != nullptr;
       layer = layer->underlying()) {
    unserved |= layer->unserved_flags();
  }
  unserved &= request.flags;
  if (unserved == 0) return true;
  failure = Failure();
  failure.reason = Failure::Reason::kBadRequest;
  failure.layer = name();
  failure.detail = (unserved & kOneHandle) != 0
                       ? "this strategy gives no allocation a handle"
                       : "memory of this strategy is unknown to "
                         "cudaIpcGetMemHandle";
  failure.place = place();
  failure.requested_bytes = request.bytes;
  return false;
}

Allocation* Front::Walk(const Request& request, Failure& failure) noexcept {
  if ((request.flags & (kOneHandle | kLegacyIpc)) != 0 &&
      !CanServe(request, failure)) {
    return nullptr;
  }
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) {
    if (counts_itself()) {
      const std::lock_guard<ChainLock> guard(hit_.lock);
      hit_.counts.Count(*allocation->block());
    }
    return allocation;
  }
  // A limit refuses without a device call. Advice on the limit needs the free
  // bytes of the device.
  Device* device =
      place().kind == PlaceKind::kDevice ? state_->device() : nullptr;
  if (failure.reason == Failure::Reason::kLimit && device != nullptr) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (device->MemGetInfo(&free_bytes, &total_bytes) == Status::kSuccess) {
      failure.device_free_bytes = free_bytes;
      failure.device_total_bytes = total_bytes;
    }
  }
  // The count acquires the lock of every stream: skip it for requests that only
  // try.
  if (failure.IsExhaustion() && (request.flags & kNoRetry) == 0) {
    state_->Explain(failure);
  }
  return nullptr;
}

void Front::DoFree(Allocation* allocation) noexcept {
  if (IsPlain(*allocation->block())) return FreePlain(allocation);
  FreeSlowly(allocation);
}

[[gnu::aligned(64)]] void Front::FreePlain(Allocation* allocation) noexcept {
  if (!ThreadCensus::IsCounted(plain_place_.load(std::memory_order_relaxed)))
      [[unlikely]] {
    return FreeUnplainly(allocation);
  }
  HitState& hit = hit_;
  if (!ChainLock::ByWord::TakeAtOnce(hit.lock)) [[unlikely]] {
    return FreeInTurn(allocation);
  }
  FreeWith<ChainLock::ByWord>(hit, allocation);
}

[[gnu::noinline, gnu::aligned(64)]] void Front::FreeInTurn(
    Allocation* allocation) noexcept {
  HitState& hit = hit_;
  if (!ChainLock::AsOwner::TakeAtOnce(hit.lock)) {
    return FreeContended(allocation);
  }
  FreeWith<ChainLock::AsOwner>(hit, allocation);
}

bool Front::IsHome() const noexcept { return HomeFor(this) == this; }

void Front::SetHome(bool is_home) const noexcept {
  HomeFor(this) = is_home ? this : nullptr;
}

[[gnu::noinline]] void Front::FreeUnplainly(Allocation* allocation) noexcept {
  if (!ThreadCensus::IsCounted(retry_place_)) return FreeSlowly(allocation);
  if (!IsHome()) return FreeElsewhere(allocation);
  ChainLock::AsLocked::Take(hit_.lock);
  if (++quiet_frees_ >= kQuietFrees) {
    CloseToFrees();
    SetHome(false);
  }
  FreeWith<ChainLock::AsLocked>(hit_, allocation);
}

[[gnu::noinline]] void Front::FreeContended(Allocation* allocation) noexcept {
  if (!ChainLock::AsLocked::TryTake(hit_.lock)) {
    return FreeElsewhere(allocation);
  }
  FreeWith<ChainLock::AsLocked>(hit_, allocation);
}

[[gnu::noinline]] void Front::FreeElsewhere(Allocation* allocation) noexcept {
  if (gate_.any()) return FreeSlowly(allocation);
  // Not is_open(): that would read the cache line of the lock, which another
  // core writes.
  if (plain_place_.load(std::memory_order_relaxed) != retry_place_ &&
      remote_frees_.Leave(*allocation->block())) {
    return;
  }
  hit_.lock.lock();
  if (may_wait_ && MayHitPlainly(hit_)) OpenToFrees();
  FreeWith<ChainLock::AsLocked>(hit_, allocation);
}

void Front::OpenToFrees() noexcept {
  if (hit_.lock.is_open()) return;
  quiet_frees_ = 0;
  hit_.lock.Open(remote_frees_);
  plain_place_.store(retry_place_ | ThreadCensus::kNowhere,
                     std::memory_order_relaxed);
}

void Front::CloseToFrees() noexcept {
  plain_place_.store(retry_place_, std::memory_order_relaxed);
  hit_.lock.Close();
}

void Front::TakeIn(std::span<Block* const> blocks) noexcept {
  if (quiet_frees_ != 0) quiet_frees_ = 0;
  // The block records are in the caches of the cores that freed them.
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = 0; i < std::min(kAhead, blocks.size()); ++i) {
    __builtin_prefetch(blocks[i], 1);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i + kAhead < blocks.size()) __builtin_prefetch(blocks[i + kAhead], 1);
    hit_.counts.Uncount(*blocks[i]);
    hit_path_->Give(blocks[i]);
  }
}

Block* Front::TakeAmongLeft(HitState& hit, std::size_t bytes) noexcept {
  SetHome(true);
  hit.lock.TakeIn();
  return hit.cache.Take(bytes);
}

void Front::EndWaiting() noexcept {
  const std::lock_guard<ChainLock> guard(hit_.lock);
  CloseToFrees();
}

[[gnu::noinline]] void Front::FreeSlowly(Allocation* allocation) noexcept {
  Block* const block = allocation->block();
  if (!MayHit() || !IsPlain(*block)) return WalkFree(allocation);
  retry_.CountThread();
  const std::size_t bytes = block->size;
  hit_.lock.lock();
  if (stat_ != nullptr) stat_->CountGiven(*block);
  if (counts_itself()) hit_.counts.Uncount(*block);
  if (hit_path_->Give(block)) return EndFree(bytes);
  if (stat_ != nullptr) stat_->CountKept(*block);
  if (counts_itself()) hit_.counts.Recount(*block);
  hit_.lock.unlock();
  WalkFree(allocation);
}

void Front::EndFree(std::size_t bytes) noexcept {
  if (retry_.has_waiters()) {
    // This front must live until the waiters are notified.
    ++pins_;
    hit_.lock.unlock();
    retry_.NotifyFree(bytes);
    return Unpin();
  }
  const bool is_last = is_over();
  hit_.lock.unlock();
  if (is_last) Destroy();
}

void Front::WalkFree(Allocation* allocation) noexcept {
  // If a capture is announced, the scope below ends after this front.
  const std::shared_ptr<PlaceState> held = gate_.any() ? state_ : nullptr;
  const RelaxedCaptureScope scope(gate_,
                                  held != nullptr ? held->device() : nullptr);
  {
    // Pin the front until the layers have completed the free; the Stat layer
    // uncounts it earlier.
    const std::lock_guard<ChainLock> guard(hit_.lock);
    ++pins_;
    if (counts_itself()) hit_.counts.Uncount(*allocation->block());
  }
  const std::size_t bytes = allocation->size();
  underlying()->DoFree(allocation);
  // The layers notify the graph pool's queue, but the budget belongs to the
  // place.
  if (role_ == Role::kGraph) retry_.NotifyFree(bytes);
  Unpin();
}

bool Front::RecordStream(Allocation* allocation, Stream stream) noexcept {
  state_->HeedEnd(*this, stream);
  return Decorator::RecordStream(allocation, stream);
}

bool Front::RecordUse(Allocation* allocation, Stream stream,
                      Event event) noexcept {
  state_->HeedEnd(*this, stream);
  return Decorator::RecordUse(allocation, stream, event);
}

Stats Front::stats() const {
  if (stat_ == nullptr) {
    // An inner layer may count for many fronts.
    Stats stats;
    const std::lock_guard<ChainLock> guard(hit_.lock);
    hit_.counts.FillIn(stats);
    return stats;
  }
  const RelaxedCaptureScope scope(gate_, state_->device());
  return Decorator::stats();
}

void Front::ResetPeak() {
  if (stat_ == nullptr) {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    hit_.counts.ResetPeak();
  }
  Decorator::ResetPeak();
}

void Front::Accept(AllocatorVisitor& visitor) const {
  const RelaxedCaptureScope scope(gate_, state_->device());
  Decorator::Accept(visitor);
}

bool Front::TryPin() noexcept {
  const std::lock_guard<ChainLock> guard(hit_.lock);
  if (is_over()) return false;
  ++pins_;
  return true;
}

void Front::Unpin() noexcept {
  bool is_last = false;
  {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    --pins_;
    is_last = is_over();
  }
  if (is_last) Destroy();
}

void Front::Drop() noexcept {
  bool is_last = false;
  {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    orphan_ = true;
    hit_.attention = &HitState::kNeverPlain;
    CloseToFrees();
    is_last = is_over();
  }
  if (is_last) Destroy();
}

void Front::Destroy() noexcept {
  // The gate must outlive the call, which may destroy this front.
  const std::shared_ptr<PlaceState> held = state_;
  // Add the totals now, even if End has to wait: no later call counts them.
  held->Finish(*this, stats());
  gate_.EndLater(*this);
}

void Front::End() noexcept {
  // The state must outlive this front, which refers to it.
  const std::shared_ptr<PlaceState> state = state_;
  delete this;
  state->ReleaseIfClosed();
}

}  // namespace strata
