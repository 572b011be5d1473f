#include "strata/strategy/parked_frees.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/size.h"

namespace strata {
namespace {

// Sizes that the index does not know: no strategy gives such blocks in earnest.
constexpr std::size_t kMaxParkedBytes = std::size_t{1} << 47;

bool IsAligned(const Block& block, std::size_t alignment) {
  return alignment == 0 ||
         reinterpret_cast<std::uintptr_t>(block.data) % alignment == 0;
}

}  // namespace

struct ParkedFrees::Note {
  Block* block = nullptr;
  std::size_t requested = 0;  // what the block was given for
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
                         const Allocator& view)
    : frees_(frees),
      strategy_(std::move(strategy)),
      timeline_(std::move(timeline)),
      view_(&view) {}

ParkedFrees::~ParkedFrees() {
  LOG_IF(ERROR, !empty()) << "stream_view: destroyed with " << count_
                          << " blocks that its stream may still use";
  RecordSlab::Noted().Drain(room_);
}

bool ParkedFrees::Reserve(std::size_t count) noexcept {
  std::size_t missing = 0;
  bool has_index = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    has_index = index_ != nullptr;
    const std::size_t room = room_.size();
    missing = count > room ? count - room : 0;
  }
  std::unique_ptr<FreeIndex> index(has_index ? nullptr
                                             : new (std::nothrow) FreeIndex());
  RecordList fresh;
  const bool filled = missing == 0 || RecordSlab::Noted().Fill(fresh, missing);
  const std::lock_guard<SpinLock> guard(lock_);
  if (index_ == nullptr) index_ = std::move(index);
  while (!fresh.empty()) GiveProxy(fresh.Pop());
  return filled && index_ != nullptr;
}

void ParkedFrees::Leave() noexcept {
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
  // Without it they go to the strategy at once.
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
  proxy->data = block->data;
  proxy->size = AlignUp(block->size, FreeIndex::kGranuleBytes);
  Note* note = new (RecordSlab::NoteOf(proxy)) Note();
  note->block = block;
  note->requested = block->requested;
  note->tick = tick;
  RemoveFlag(*block, kBlockLive);
  frees_.Defer(*block);
  index_->Insert(proxy);
  // Threads that free together may come out of order: then the later one's
  // block waits no longer than the earlier one's.
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
    const std::lock_guard<SpinLock> guard(lock_);
    proxy = TakeProxy();
  }
  if (proxy == nullptr) return false;
  const Tick tick = timeline_->Note();
  const std::lock_guard<SpinLock> guard(lock_);
  Link(proxy, block, tick);
  return true;
}

bool ParkedFrees::ParkHeld(Block* block) noexcept {
  if (block->size > kMaxParkedBytes || timeline_->IsNextToClose()) return false;
  const std::lock_guard<SpinLock> guard(lock_);
  Block* const proxy = TakeProxy();
  if (proxy == nullptr) return false;
  Link(proxy, block, timeline_->NoteOnly());
  return true;
}

void ParkedFrees::Unlink(Block* proxy) noexcept {
  const Note& note = NoteOf(proxy);
  (note.older != nullptr ? NoteOf(note.older).newer : oldest_) = note.newer;
  (note.newer != nullptr ? NoteOf(note.newer).older : newest_) = note.older;
  index_->Remove(proxy);
  count_.store(count_.load(std::memory_order_relaxed) - 1,
               std::memory_order_release);
}

Block* ParkedFrees::FindFit(const Request& request) noexcept {
  Block* proxy =
      index_->FindBestFit(AlignUp(request.bytes, FreeIndex::kGranuleBytes));
  if (proxy == nullptr) return nullptr;
  const Note& note = NoteOf(proxy);
  const Block& block = *note.block;
  if (block.size < request.bytes || !IsAligned(block, request.alignment)) {
    return nullptr;
  }
  const std::size_t most_waste =
      std::max(FreeIndex::kGranuleBytes, request.bytes / 8);
  // A strategy that rounds what it was given for to this size rounds what lies
  // between to it as well.
  return request.bytes >= note.requested ||
                 block.size - request.bytes <= most_waste
             ? proxy
             : nullptr;
}

Block* ParkedFrees::Take(const Request& request) noexcept {
  if (empty() || request.freed_before != 0 ||
      (request.flags & ~kNoGrowth) != 0 || request.bytes > kMaxParkedBytes) {
    return nullptr;
  }
  Block* block = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    Block* proxy = index_ != nullptr ? FindFit(request) : nullptr;
    if (proxy == nullptr) return nullptr;
    block = NoteOf(proxy).block;
    Unlink(proxy);
    GiveProxy(proxy);
  }
  frees_.TakeBack(*block);
  SetFlags(*block, kBlockLive);
  block->offset_units = 0;
  block->requested = request.bytes;
  return block;
}

std::size_t ParkedFrees::FreeUpTo(Tick tick) noexcept {
  DeferredFrees::Giving giving(frees_);
  std::size_t bytes = 0;
  while (true) {
    Block* block = nullptr;
    {
      const std::lock_guard<SpinLock> guard(lock_);
      Block* const proxy = oldest_;
      if (proxy == nullptr || NoteOf(proxy).tick > tick) return bytes;
      block = NoteOf(proxy).block;
      Unlink(proxy);
      GiveProxy(proxy);
    }
    giving.Gave();
    bytes += block->size;
    frees_.FreeNow(*block, *strategy_);
  }
}

std::size_t ParkedFrees::Drain() noexcept {
  if (empty()) return 0;
  // If it fails, what is open stays parked.
  static_cast<void>(timeline_->Close());
  return FreeUpTo(timeline_->Poll());
}

std::size_t ParkedFrees::Await() noexcept {
  Tick last = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (newest_ == nullptr) return 0;
    last = NoteOf(newest_).tick;
  }
  // The newest may have been noted before another one.
  last = std::max(last, timeline_->noted());
  const bool passed = timeline_->Await(last) == Status::kSuccess;
  return FreeUpTo(passed ? last : timeline_->done());
}

std::size_t ParkedFrees::FreeUnproven() noexcept {
  const std::size_t bytes = FreeUpTo(std::numeric_limits<Tick>::max());
  LOG_IF(ERROR, bytes != 0)
      << "stream_view: " << bytes
      << " bytes go to the system although the stream that used them could "
         "not be waited for";
  return bytes;
}

}  // namespace strata
