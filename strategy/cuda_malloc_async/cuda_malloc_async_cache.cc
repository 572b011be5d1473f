// The cache of cuda_malloc_async: cached blocks, and how they are freed.

#include <algorithm>
#include <mutex>

#include "strata/allocation/block_flags.h"
#include "strata/strategy/cuda_malloc_async/cuda_malloc_async_allocator.h"

namespace strata {
namespace {

// Free memory is fragmented, so the driver may grow although it has enough. The
// cache is flushed unless the idle bytes are at least this multiple of the
// request. With 2, mode `memory` reserves no more than without a cache, on
// every trace of docs/rules/cuda_malloc_async.md; with 4, it does on two.
constexpr std::size_t kPiecesFactor = 2;

}  // namespace

Block* CudaMallocAsyncAllocator::TakeCached(std::size_t bytes) noexcept {
  return TakeKept(bytes, bytes);
}

Block* CudaMallocAsyncAllocator::TakeKept(std::size_t bytes,
                                          std::size_t requested) noexcept {
  if (IsAnnounced()) return nullptr;
  Block* const block = cache_.Take(policy_.SizeFor(bytes));
  if (block != nullptr) Start(block, requested);
  return block;
}

bool CudaMallocAsyncAllocator::GiveCached(Block* block) noexcept {
  if (block->pool != kOwn) return false;
  // cache_.Give overwrites `requested`.
  const std::size_t requested = block->requested;
  if (!cache_.Give(block)) return false;
  uses_.Uncount(*block, requested);
  return true;
}

bool CudaMallocAsyncAllocator::IsLikelyGrowth(std::size_t size) const noexcept {
  if (!keeps_ || policy_.has_bins() || size < kSystemStepBytes) return false;
  const std::lock_guard<ChainLock> guard(lock_);
  const std::size_t kept = cache_.bytes();
  if (kept == 0) return false;
  const std::size_t idle = most_held_bytes_ - HeldBytes();
  // Cached blocks separate the free pieces, so their bytes do not count.
  return idle < kept || size > (idle - kept) / kPiecesFactor;
}

bool CudaMallocAsyncAllocator::LimitCache() noexcept {
  if (!keeps_ || is_closed_) return false;
  const std::size_t held = HeldBytes();
  most_held_bytes_ = std::max(most_held_bytes_, held);
  const std::size_t limit = policy_.LimitBytes(held);
  // Not below the present bytes, so that the cache accepts a block that it just
  // handed out.
  cache_.set_limit_bytes(std::max(limit, cache_.bytes()));
  return cache_.bytes() > limit || cache_.is_sweep_due();
}

void CudaMallocAsyncAllocator::Trim() noexcept {
  const CaptureGate::Calm calm(*gate_);
  if (!calm) return;
  Block* cached = nullptr;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (!LimitCache()) return;
    cached = cache_.is_sweep_due() ? cache_.TakeStale() : cache_.TakeAll();
    LimitCache();
  }
  FreeCached(cached);
}

Block* CudaMallocAsyncAllocator::TakeAll() noexcept {
  const std::lock_guard<ChainLock> guard(lock_);
  Block* const cached = cache_.TakeAll();
  LimitCache();
  return cached;
}

std::size_t CudaMallocAsyncAllocator::FreeCached(Block* cached) noexcept {
  std::size_t bytes = 0;
  while (cached != nullptr) {
    Block* const next = cached->free_next;
    bytes += cached->size;
    FreeOrWait(cached, {});
    cached = next;
  }
  return bytes;
}

std::size_t CudaMallocAsyncAllocator::FlushCache(bool for_request) noexcept {
  if (IdleBytes() == 0) return 0;
  const CaptureGate::Calm calm(*gate_);
  const bool may_free = calm || (for_request && !IsCapturing());
  return may_free ? FreeCached(TakeAll()) : 0;
}

Allocation* CudaMallocAsyncAllocator::FetchKept(const Request& request,
                                                std::size_t size) noexcept {
  if (!keeps_ || !policy_.IsLargeBin(size) || !policy_.MayComeAgain(size) ||
      driver_->is_deterministic()) {
    return nullptr;
  }
  Allocation* const kept =
      pool().loans().FetchKept({size, chain_stream()}, *this);
  if (kept == nullptr) return nullptr;
  Block* const block = kept->block();
  SetFlags(*block, kBlockLive);
  bool has_excess = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    Start(block, request.unpadded_bytes());
    cache_.NoteSearch(size);
    has_excess = LimitCache();
  }
  if (has_excess) Trim();
  return kept;
}

Allocation* CudaMallocAsyncAllocator::Lend(
    const LoanRequest& request) noexcept {
  const std::size_t bytes = request.bytes;
  if (!policy_.IsLargeBin(bytes) || !CanNameStream()) return nullptr;
  Block* kept = nullptr;
  {
    // Do not wait for a chain that is using its cache.
    const std::unique_lock<ChainLock> guard(lock_, std::try_to_lock);
    if (!guard) return nullptr;
    kept = cache_.TakeOut(bytes);
    if (kept == nullptr) return nullptr;
  }
  // Query the stream only now, to cover all work before the free of the block.
  // IsDone queries no stream while captures are announced.
  const bool is_done = chain_stream().IsDone();
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (!is_done && cache_.Give(kept)) return nullptr;
    LimitCache();
  }
  if (is_done) return kept->allocation();
  FreeCached(kept);
  return nullptr;
}

void CudaMallocAsyncAllocator::CloseCache() noexcept {
  {
    const std::lock_guard<ChainLock> guard(lock_);
    is_closed_ = true;
    cache_.set_limit_bytes(0);
  }
  FreeCached(TakeAll());
}

std::size_t CudaMallocAsyncAllocator::IdleBytes() const noexcept {
  if (!keeps_) return 0;
  const std::lock_guard<ChainLock> guard(lock_);
  return cache_.bytes();
}

std::size_t CudaMallocAsyncAllocator::Reclaim(Stream /*stream*/,
                                              std::size_t bytes) noexcept {
  // If the free would have to wait, the cache stays until the device is waited
  // for.
  return driver_->CanHold(bytes) && CanNameStream() ? FlushCache() : 0;
}

bool CudaMallocAsyncAllocator::IsConsistent() const {
  const std::lock_guard<ChainLock> guard(lock_);
  return cache_.IsConsistent() && (keeps_ || cache_.empty());
}

}  // namespace strata
