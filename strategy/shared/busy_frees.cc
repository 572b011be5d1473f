#include "strata/strategy/shared/busy_frees.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/base/log.h"

namespace strata {
namespace {

// Larger blocks are out of the range of the classes; no real request has them.
constexpr std::size_t kMaxBytes = std::size_t{1} << 47;
// A waste of that many bytes is never refused.
constexpr std::size_t kSmallBytes = 256;
// Block::offset_units of a block that was requested as a whole.
constexpr std::size_t kParts = std::numeric_limits<std::uint16_t>::max();

bool IsAligned(const Block& block, std::size_t alignment) {
  return alignment == 0 ||
         reinterpret_cast<std::uintptr_t>(block.data) % alignment == 0;
}

std::uint16_t PartsOf(const Block& block) {
  const std::size_t bytes = std::min(block.requested, block.size);
  return static_cast<std::uint16_t>(bytes * kParts / block.size);
}

// The bytes last requested, at most 1/65535 of the size too few.
std::size_t RequestedOf(const Block& block) {
  return block.offset_units * block.size / kParts;
}

// Whether the block is a waste on a request for `bytes`. If the strategy rounds
// a larger request to this size, it rounds all requests in between to the same
// size. No strategy rounds up by more than the request itself.
bool IsWasted(const Block& block, std::size_t bytes) {
  const std::size_t waste = block.size - bytes;
  return waste > std::max(kSmallBytes, bytes / 8) &&
         (waste > bytes || bytes < RequestedOf(block));
}

// Restores the fields that a deferred block uses in another way.
Block* Restored(Block* block, std::size_t requested) {
  block->requested = requested;
  block->owner = nullptr;
  block->offset_units = 0;
  return block;
}

}  // namespace

BusyFrees::BusyFrees(DeferredFrees& frees, std::shared_ptr<Allocator> strategy,
                     std::shared_ptr<SharedOrder> order,
                     std::shared_ptr<SharedOrder::Share> share)
    : frees_(frees),
      strategy_(std::move(strategy)),
      order_(std::move(order)),
      share_(std::move(share)),
      timeline_(share_->stream().timeline()) {}

BusyFrees::~BusyFrees() {
  STRATA_LOG_IF(Error, !empty()) << "stream_view: destroyed with " << count_
                                 << " blocks that its stream may still use";
  if (holds_) frees_.LetGo();
}

void BusyFrees::Count(std::ptrdiff_t blocks, std::size_t bytes) noexcept {
  // Not atomic additions: lock_ excludes other writers.
  bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes,
               std::memory_order_relaxed);
  count_.store(
      count_.load(std::memory_order_relaxed) + static_cast<std::size_t>(blocks),
      std::memory_order_release);
}

bool BusyFrees::Add(Block* block) noexcept {
  if (block->size > kMaxBytes) return false;
  const std::lock_guard<SpinLock> guard(lock_);
  if (!holds_.load(std::memory_order_relaxed)) {
    frees_.Hold();
    holds_.store(true, std::memory_order_relaxed);
  }
  SetLive(*block, false);
  block->offset_units = PartsOf(*block);
  // Under the lock, so that the ticks of a class are in order.
  block->tick = timeline_->NoteOnly();
  Class& of = classes_[ClassOf(block->size)];
  if (of.newest == nullptr) of.oldest = block;
  block->free_next = std::exchange(of.newest, block);
  Count(1, block->size);
  return true;
}

BusyFrees::Fit BusyFrees::FindIn(Class& of, const Request& request) noexcept {
  Fit fit;
  Block* newer = nullptr;
  for (Block* block = of.newest; block != nullptr; block = block->free_next) {
    if (block->size >= request.bytes && IsAligned(*block, request.alignment) &&
        (fit.of == nullptr || block->size < fit.block->size)) {
      fit = {&of, newer, block};
      if (block->size - request.bytes < kSmallBytes) break;
    }
    newer = block;
  }
  return fit;
}

BusyFrees::Fit BusyFrees::FindFit(const Request& request) noexcept {
  Fit fit;
  for (std::size_t i = ClassOf(request.bytes);
       i < kClasses && fit.of == nullptr; ++i) {
    if (classes_[i].newest != nullptr) fit = FindIn(classes_[i], request);
  }
  return fit;
}

void BusyFrees::Remove(const Fit& fit) noexcept {
  Block* const older = fit.block->free_next;
  (fit.newer != nullptr ? fit.newer->free_next : fit.of->newest) = older;
  if (older == nullptr) fit.of->oldest = fit.newer;
  Count(-1, -fit.block->size);
}

Block* BusyFrees::TakeFit(const Request& request, bool may_waste) noexcept {
  // These flags affect the effort, not the choice of the block.
  constexpr std::uint32_t kAnywhere = kNoGrowth | kNoRetry | kWillBeLogged;
  const std::uint32_t served = kAnywhere | (may_waste ? kLongLived : 0U);
  if (request.freed_before != 0 || (request.flags & ~served) != 0 ||
      request.bytes > kMaxBytes) {
    return nullptr;
  }
  const std::lock_guard<SpinLock> guard(lock_);
  const Fit fit = FindFit(request);
  if (fit.of == nullptr) return nullptr;
  if (!may_waste && IsWasted(*fit.block, request.bytes)) return nullptr;
  Remove(fit);
  SetFlags(*fit.block, kBlockLive);
  return Restored(fit.block, request.bytes);
}

Block* BusyFrees::Cut(Class& of, Tick tick, Block* first) noexcept {
  if (of.newest == nullptr || of.oldest->tick > tick) return first;
  Block* newer = nullptr;
  Block* block = of.newest;
  for (; block->tick > tick; block = block->free_next) newer = block;
  of.oldest->free_next = first;
  of.oldest = newer;
  (newer != nullptr ? newer->free_next : of.newest) = nullptr;
  return block;
}

std::size_t BusyFrees::FreeUpTo(Tick tick) noexcept {
  DeferredFrees::Giving giving(frees_);
  frees_.Hold();  // Covers blocks that are neither deferred nor freed yet.
  Block* ready = nullptr;
  std::size_t bytes = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    for (Class& of : classes_) ready = Cut(of, tick, ready);
    for (const Block* block = ready; block != nullptr;
         block = block->free_next) {
      bytes += block->size;
      Count(-1, -block->size);
    }
  }
  if (ready != nullptr) giving.Gave();
  while (ready != nullptr) {
    Block* const block = std::exchange(ready, ready->free_next);
    frees_.FreeNow(*Restored(block, RequestedOf(*block)), *strategy_);
  }
  frees_.LetGo();
  LetGoIfEmpty();
  return bytes;
}

// Acquires no lock where there is nothing to do.
void BusyFrees::LetGoIfEmpty() noexcept {
  if (!holds_) return;
  const std::lock_guard<SpinLock> guard(lock_);
  if (empty() && holds_.exchange(false)) frees_.LetGo();
}

std::size_t BusyFrees::Drain() noexcept {
  if (!empty()) return FreeUpTo(timeline_->Refresh());
  LetGoIfEmpty();
  return 0;
}

std::size_t BusyFrees::Await() noexcept {
  if (empty()) {
    LetGoIfEmpty();
    return 0;
  }
  const Tick last = timeline_->noted();
  const bool passed = timeline_->Await(last) == Status::kSuccess;
  return FreeUpTo(passed ? last : timeline_->done());
}

std::size_t BusyFrees::FreeOrdered() noexcept {
  if (empty() || !order_->MayWaitFor(*share_)) return 0;
  // Blocks freed from here on are not covered by the order.
  const Tick last = timeline_->noted();
  order_->NoteFrees(*share_);
  return FreeUpTo(last);
}

std::size_t BusyFrees::FreeUnproven() noexcept {
  const std::size_t bytes = FreeUpTo(std::numeric_limits<Tick>::max());
  STRATA_LOG_IF(Error, bytes != 0)
      << "stream_view: " << bytes
      << " bytes go to the system although the stream that used them could "
         "not be waited for";
  return bytes;
}

}  // namespace strata
