#include "strata/strategy/shared/parked_frees.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

// Larger sizes are out of the range of the index; no real request has them.
constexpr std::size_t kMaxParkedBytes = std::size_t{1} << 47;

// Extra room per Reserve: a program that grows soon needs more.
constexpr std::size_t kSpareRoom = 15;

bool IsAligned(const Block& block, std::size_t alignment) {
  return alignment == 0 ||
         reinterpret_cast<std::uintptr_t>(block.data) % alignment == 0;
}

}  // namespace

struct ParkedFrees::Note {
  // Bytes of the request that the strategy allocated the block for.
  std::size_t requested = 0;
  Tick tick = 0;
  Block* older = nullptr;
  Block* newer = nullptr;
};

ParkedFrees::Note& ParkedFrees::NoteOf(Block* proxy) {
  static_assert(sizeof(Note) <= RecordSlab::kNoteBytes);
  return *static_cast<Note*>(RecordSlab::NoteOf(proxy));
}

ParkedFrees::ParkedFrees(DeferredFrees& frees,
                         std::shared_ptr<Allocator> strategy,
                         std::shared_ptr<StreamTimeline> timeline,
                         const Allocator& view, ChainLock& lock)
    : frees_(frees),
      strategy_(std::move(strategy)),
      timeline_(std::move(timeline)),
      view_(&view) {
  lock_.LendTo(lock);
}

ParkedFrees::~ParkedFrees() {
  STRATA_LOG_IF(Error, !empty()) << "stream_view: destroyed with " << count_
                                 << " blocks that its stream may still use";
  RecordSlab::Noted().Drain(room_);
  if (holds_) frees_.LetGo();
}

bool ParkedFrees::Reserve(std::size_t count) noexcept {
  std::size_t missing = 0;
  bool has_index = false;
  {
    const std::lock_guard<LentLock> guard(lock_);
    has_index = index_ != nullptr;
    const std::size_t room = room_.size();
    missing = count > room ? count - room + kSpareRoom : 0;
  }
  std::unique_ptr<FreeIndex> index(has_index ? nullptr
                                             : new (std::nothrow) FreeIndex());
  RecordList fresh;
  const bool filled = missing == 0 || RecordSlab::Noted().Fill(fresh, missing);
  const std::lock_guard<LentLock> guard(lock_);
  if (index_ == nullptr) index_ = std::move(index);
  while (!fresh.empty()) GiveProxy(fresh.Pop());
  return filled && index_ != nullptr;
}

void ParkedFrees::Leave() noexcept {
  lock_.TakeBack();
  const std::lock_guard<std::mutex> guard(view_mutex_);
  view_ = nullptr;
  is_left_ = true;
}

void ParkedFrees::MakeRoom() noexcept {
  std::uint64_t live = 0;
  {
    const std::lock_guard<std::mutex> guard(view_mutex_);
    if (view_ == nullptr) return;
    live = view_->stats().live_allocations();
  }
  // If Reserve fails, blocks go to the strategy at once.
  if (live != 0) static_cast<void>(Reserve(live));
}

Block* ParkedFrees::TakeProxy() noexcept {
  Block* const proxy = index_ != nullptr ? room_.Pop() : nullptr;
  room_size_.store(room_.size(), std::memory_order_relaxed);
  return proxy;
}

void ParkedFrees::GiveProxy(Block* proxy) noexcept {
  room_.Push(proxy);
  room_size_.store(room_.size(), std::memory_order_relaxed);
}

void ParkedFrees::Link(Block* proxy, Block* block, Tick tick) noexcept {
  proxy->previous = block;
  proxy->data = block->data;
  proxy->size = AlignUp(block->size, FreeIndex::kGranuleBytes);
  Note* note = new (RecordSlab::NoteOf(proxy)) Note();
  note->requested = block->requested;
  if (misfit_count_ != 0) [[unlikely]] {
    note->requested = ForgetMisfit(*block);
  }
  note->tick = tick;
  SetLive(*block, false);
  if (!holds_.load(std::memory_order_relaxed)) {
    frees_.Hold();
    holds_.store(true, std::memory_order_relaxed);
  }
  bytes_ += block->size;
  index_->Insert(proxy);
  // Threads that free at the same time may link out of order. Then a block with
  // an earlier tick waits for the block linked before it, but no longer.
  note->older = newest_;
  (newest_ != nullptr ? NoteOf(newest_).newer : oldest_) = proxy;
  newest_ = proxy;
  count_.store(count_.load(std::memory_order_relaxed) + 1,
               std::memory_order_release);
}

bool ParkedFrees::Park(Block* block) noexcept {
  if (block->size > kMaxParkedBytes) return false;
  Block* proxy = nullptr;
  {
    const std::lock_guard<LentLock> guard(lock_);
    proxy = TakeProxy();
  }
  if (proxy == nullptr) return false;
  const Tick tick = timeline_->Note();
  const std::lock_guard<LentLock> guard(lock_);
  Link(proxy, block, tick);
  return true;
}

bool ParkedFrees::ParkHeld(Block* block) noexcept {
  if (block->size > kMaxParkedBytes || timeline_->IsNextToClose()) return false;
  Block* const proxy = TakeProxy();
  if (proxy == nullptr) return false;
  Link(proxy, block, timeline_->NoteOnly());
  return true;
}

Block* ParkedFrees::Unlink(Block* proxy) noexcept {
  const Note& note = NoteOf(proxy);
  Block* const block = BlockOf(proxy);
  (note.older != nullptr ? NoteOf(note.older).newer : oldest_) = note.newer;
  (note.newer != nullptr ? NoteOf(note.newer).older : newest_) = note.older;
  index_->Remove(proxy);
  bytes_ -= block->size;
  count_.store(count_.load(std::memory_order_relaxed) - 1,
               std::memory_order_release);
  proxy->previous = nullptr;
  GiveProxy(proxy);
  return block;
}

Block* ParkedFrees::FindFit(const Request& request, bool may_waste) noexcept {
  const std::size_t bytes = AlignUp(request.bytes, FreeIndex::kGranuleBytes);
  const auto serves = [&request](const Block* proxy) {
    return proxy != nullptr && BlockOf(proxy)->size >= request.bytes &&
           IsAligned(*proxy, request.alignment);
  };
  // Prefers the block parked last among equal sizes: older ones become free for
  // all streams sooner.
  Block* proxy = index_->FindLast(bytes);
  if (!serves(proxy)) proxy = index_->FindBestFit(bytes);
  if (!serves(proxy)) return nullptr;
  const Block& block = *BlockOf(proxy);
  const std::size_t most_waste =
      std::max(FreeIndex::kGranuleBytes, request.bytes / 8);
  // If the strategy rounds a larger request to this block size, it rounds all
  // requests in between to the same size.
  return may_waste || block.size - request.bytes <= most_waste ||
                 request.bytes >= NoteOf(proxy).requested
             ? proxy
             : nullptr;
}

Block* ParkedFrees::Take(const Request& request) noexcept {
  if (empty()) return nullptr;
  const std::lock_guard<LentLock> guard(lock_);
  return TakeHeld(request);
}

void ParkedFrees::NoteMisfit(const Block& block,
                             std::size_t given_for) noexcept {
  Misfit& misfit = misfits_[next_misfit_++ % misfits_.size()];
  misfit_count_ += misfit.block == nullptr;
  misfit = {&block, given_for};
}

std::size_t ParkedFrees::ForgetMisfit(const Block& block) noexcept {
  for (Misfit& misfit : misfits_) {
    if (misfit.block != &block) continue;
    --misfit_count_;
    return std::exchange(misfit, {}).given_for;
  }
  return block.requested;
}

Block* ParkedFrees::TakeAny(const Request& request) noexcept {
  if (empty()) return nullptr;
  const std::lock_guard<LentLock> guard(lock_);
  return TakeFit(request, /*may_waste=*/true);
}

Block* ParkedFrees::TakeHeld(const Request& request) noexcept {
  return TakeFit(request, /*may_waste=*/false);
}

inline Block* ParkedFrees::TakeFit(const Request& request,
                                   bool may_waste) noexcept {
  // These flags affect the effort, not the choice of the block.
  constexpr std::uint32_t kAnywhere = kNoGrowth | kNoRetry | kWillBeLogged;
  const std::uint32_t served = kAnywhere | (may_waste ? kLongLived : 0U);
  if (empty() || request.freed_before != 0 || (request.flags & ~served) != 0 ||
      request.bytes > kMaxParkedBytes) {
    return nullptr;
  }
  Block* const proxy = FindFit(request, may_waste);
  if (proxy == nullptr) return nullptr;
  const std::size_t given_for = NoteOf(proxy).requested;
  Block* const block = Unlink(proxy);
  if (may_waste) NoteMisfit(*block, given_for);
  SetFlags(*block, kBlockLive);
  block->offset_units = 0;
  block->requested = request.bytes;
  return block;
}

std::size_t ParkedFrees::FreeUpTo(Tick tick) noexcept {
  DeferredFrees::Giving giving(frees_);
  frees_.Hold();  // Covers blocks that are neither parked nor freed yet.
  std::size_t bytes = 0;
  while (true) {
    Block* block = nullptr;
    {
      const std::lock_guard<LentLock> guard(lock_);
      Block* const proxy = oldest_;
      if (proxy == nullptr) LetGo();
      if (proxy == nullptr || NoteOf(proxy).tick > tick) break;
      block = Unlink(proxy);
    }
    giving.Gave();
    bytes += block->size;
    frees_.FreeNow(*block, *strategy_);
  }
  frees_.LetGo();
  return bytes;
}

void ParkedFrees::LetGo() noexcept {
  if (holds_.exchange(false)) frees_.LetGo();
}

// Acquires no lock where there is nothing to do, because the lock may be that
// of hits.
void ParkedFrees::LetGoIfEmpty() noexcept {
  if (!holds_) return;
  const std::lock_guard<LentLock> guard(lock_);
  if (empty()) LetGo();
}

Deferral ParkedFrees::deferred() const noexcept {
  const std::lock_guard<LentLock> guard(lock_);
  return {count_.load(std::memory_order_relaxed), bytes_};
}

std::size_t ParkedFrees::Drain() noexcept {
  if (empty()) {
    LetGoIfEmpty();
    return 0;
  }
  return FreeUpTo(timeline_->Refresh());
}

std::size_t ParkedFrees::Await() noexcept {
  if (empty()) {
    LetGoIfEmpty();
    return 0;
  }
  Tick last = 0;
  {
    const std::lock_guard<LentLock> guard(lock_);
    if (newest_ == nullptr) return 0;
    last = NoteOf(newest_).tick;
  }
  // Another block may have a later tick than the newest one.
  last = std::max(last, timeline_->noted());
  const bool passed = timeline_->Await(last) == Status::kSuccess;
  return FreeUpTo(passed ? last : timeline_->done());
}

std::size_t ParkedFrees::FreeUnproven() noexcept {
  const std::size_t bytes = FreeUpTo(std::numeric_limits<Tick>::max());
  STRATA_LOG_IF(Error, bytes != 0)
      << "stream_view: " << bytes
      << " bytes go to the system although the stream that used them could "
         "not be waited for";
  return bytes;
}

}  // namespace strata
