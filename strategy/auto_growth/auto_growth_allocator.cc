#include "strata/strategy/auto_growth/auto_growth_allocator.h"

#include <mutex>
#include <optional>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

// A multiple of every granule.
constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 47;

std::optional<std::size_t> RoundedSize(std::size_t bytes, std::size_t granule) {
  if (bytes > kMaxBlockBytes) return std::nullopt;
  return AlignUp(bytes, granule);
}

}  // namespace

AutoGrowthAllocator::AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                                         std::shared_ptr<ChainStream> stream,
                                         const AutoGrowthPolicy& policy,
                                         bool is_complete)
    : PoolingStrategy(std::move(pool), std::move(stream)),
      HitPath(chain_stream().state()),
      policy_(policy) {
  cache_.Configure(policy.front_cache().max_block_bytes(),
                   policy.granule_bytes(), policy.front_cache().searches());
  if (is_complete) this->pool().AddHolder(*this);
}

AutoGrowthAllocator::~AutoGrowthAllocator() {
  pool().RemoveHolder(*this);
  ReturnLoans(LoanRecall::kWait);
  GiveUpIdle();
  STRATA_LOG_IF(Error, blocks_.chunk_count() != 0)
      << "auto_growth: destroyed with live blocks; " << blocks_.chunk_bytes()
      << " bytes on " << ToString(place()) << " are lost";
}

Allocation* AutoGrowthAllocator::TryAllocate(const Request& request,
                                             Failure& failure) noexcept {
  const std::optional<std::size_t> size =
      RoundedSize(request.bytes, policy_.granule_bytes());
  if (!size || request.alignment > max_alignment()) {
    failure = Refusal(
        size ? Failure::Reason::kBadRequest : Failure::Reason::kTooLarge,
        request);
    if (size) failure.detail = "alignment above 256 needs the aligned layer";
    return nullptr;
  }
  const bool may_grow = (request.flags & kNoGrowth) == 0;
  const Pool own = PoolOf(request, *size);
  bool out_of_records = false;
  do {
    const std::lock_guard<ChainLock> guard(lock_);
    Block* block = nullptr;
    if (own != Pool::kLongLived) {
      block = cache_.Take(*size);
      if (block != nullptr) {
        block->requested = request.bytes;
        return block->allocation();
      }
      block = has_ranges_ ? FindInRanges(*size) : FindIn<false>(*size);
    } else {
      JoinAll();
      block = FindAndCarve(own, *size);
    }
    if (block == nullptr && !may_grow) block = FindAmongAll(own, *size);
    if (block != nullptr) {
      block->requested = request.bytes;
      return block->allocation();
    }
    out_of_records = records_.empty();
    // Not a miss: a probe that may not grow precedes the request itself.
    if (!out_of_records && may_grow) ++misses_;
  } while (out_of_records && records_.Restock(lock_));
  if (!may_grow || out_of_records) {
    failure = Refusal(out_of_records ? Failure::Reason::kHostMemory
                                     : Failure::Reason::kNoGrowth,
                      request);
    return nullptr;
  }
  return Grow(request, own, *size, failure);
}

Block* AutoGrowthAllocator::Publish(Pool pool, Chunk* chunk,
                                    std::size_t size) noexcept {
  Block* block = records_.Pop();
  chunk->owner = this;
  blocks_.AddChunk(chunk, block);
  block->pool = static_cast<std::uint8_t>(pool);
  LimitCache();
  block->is_free = true;
  // Other streams may still use borrowed memory, until work that this stream
  // submits later.
  block->offset_units = epochs_.current();
  chunk->recalls_before_use = recalls_;
  size = BytesToTake(*block, size);
  return has_ranges_ ? Cut<true>(index(pool), block, size)
                     : Cut<false>(index(pool), block, size);
}

bool AutoGrowthAllocator::MayCut(std::size_t chunk_bytes,
                                 std::size_t size) const {
  return policy_.MayCut(chunk_bytes, size, pool().budget().last_room_bytes(),
                        unused_bytes());
}

[[gnu::always_inline]] inline Block* AutoGrowthAllocator::MakeLive(
    Block* block) noexcept {
  ++takes_;
  taken_bytes_ += block->size;
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  return block;
}

template <bool kInRanges>
[[gnu::always_inline]] inline Block* AutoGrowthAllocator::Cut(
    FreeIndex& blocks, Block* block, std::size_t size) noexcept {
  if (block->size - size >= kMinRemainderBytes) {
    Block* const rest = block;
    if (kInRanges) {
      block = blocks_.SplitLow(rest, size, records_.Pop());
      block->pool = rest->pool;
    } else {
      block = blocks_.Split(rest, rest->size - size, records_.Pop());
    }
    blocks.Insert(rest);
  }
  return MakeLive(block);
}

Block* AutoGrowthAllocator::Carve(Block* block, std::size_t size) noexcept {
  size = BytesToTake(*block, size);
  const bool split = block->size - size >= kMinRemainderBytes;
  if (split && !records_.Has(1)) return nullptr;
  Chunk* chunk = block->chunk;
  if (IsInOpenBlocks(*block)) return CutOpen(block, size);
  FreeIndex& blocks = index(*block);
  blocks.Remove(block);
  if (BlockList::IsWholeChunk(block)) UseIdle(chunk);
  return has_ranges_ ? Cut<true>(blocks, block, size)
                     : Cut<false>(blocks, block, size);
}

Block* AutoGrowthAllocator::FindAndCarve(Pool pool, std::size_t size) noexcept {
  const FreeIndex& blocks = index(pool);
  Block* block = blocks.FindBestFit(size);
  if (block != nullptr && !MayServe(*block, size)) {
    block = blocks.FindBest(
        size, [&](const Block& other) { return MayServe(other, size); });
  }
  if (block == nullptr) {
    block = open_[static_cast<std::size_t>(pool)].Find(size);
  }
  return block != nullptr ? Carve(block, size) : nullptr;
}

Block* AutoGrowthAllocator::FindAmongAll(Pool own, std::size_t size) noexcept {
  Block* block = FindAndCarve(own, size);
  for (std::size_t i = 0; i < AutoGrowthPolicy::kPoolCount; ++i) {
    if (block != nullptr) return block;
    block = FindAndCarve(Pool{static_cast<std::uint32_t>(i)}, size);
  }
  for (const FreeIndex& blocks : index_) {
    if (block != nullptr) return block;
    block = blocks.FindBest(size, [](const Block&) { return true; });
    if (block != nullptr) block = Carve(block, size);
  }
  return block;
}

Block* AutoGrowthAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::size_t size = AlignUp(bytes, policy_.granule_bytes());
  // 0 if the size wraps around. Other sizes that are too large are in no class.
  if (size == 0) return nullptr;
  return has_ranges_ ? FindInRanges(size) : FindIn<false>(size);
}

[[gnu::always_inline]] inline Block* AutoGrowthAllocator::TakeBestFit(
    Pool pool, std::size_t size) noexcept {
  FreeIndex& blocks = index(pool);
  Block* block = blocks.TakeBestFit(size);
  if (block == nullptr) return nullptr;
  if (BlockList::IsWholeChunk(block)) {
    if (!MayCut(block->size, size)) {
      blocks.Insert(block);
      return nullptr;
    }
    UseIdle(block->chunk);
    size = BytesToTake(*block, size);
  }
  return Cut</*kInRanges=*/false>(blocks, block, size);
}

[[gnu::always_inline]] inline Block* AutoGrowthAllocator::TakeInRanges(
    Pool pool, std::size_t size) noexcept {
  FreeIndex& blocks = index(pool);
  Block* block = blocks.TakeBestFit(size);
  if (block == nullptr) {
    Block* const open = open_[static_cast<std::size_t>(pool)].Find(size);
    return open != nullptr ? CutOpen(open, size) : nullptr;
  }
  if (BlockList::IsWholeChunk(block)) {
    blocks.Insert(block);
    return nullptr;
  }
  return Cut</*kInRanges=*/true>(blocks, block, size);
}

template <bool kInRanges>
[[gnu::always_inline]] inline Block* AutoGrowthAllocator::FindIn(
    std::size_t size) noexcept {
  const Pool pool = policy_.PoolOf(size);
  Block* block = nullptr;
  if (!cache_.is_sweep_due() && !records_.empty()) [[likely]] {
    block = kInRanges ? TakeInRanges(pool, size) : TakeBestFit(pool, size);
  }
  if (block == nullptr) [[unlikely]] {
    return FindSlowly(size);
  }
  cache_.NoteSearch(size);
  return block;
}

[[gnu::noinline]] Block* AutoGrowthAllocator::FindInRanges(
    std::size_t size) noexcept {
  return FindIn<true>(size);
}

[[gnu::noinline]] Block* AutoGrowthAllocator::FindSlowly(
    std::size_t size) noexcept {
  if (cache_.is_sweep_due()) Join(cache_.TakeStale());
  const Pool pool = policy_.PoolOf(size);
  Block* block = FindAndCarve(pool, size);
  // If the record for the rest is missing, more free blocks do not help.
  if (block == nullptr && !cache_.empty() && records_.Has(1)) {
    JoinAll();
    block = FindAndCarve(pool, size);
  }
  if (block != nullptr) cache_.NoteSearch(size);
  return block;
}

Block* AutoGrowthAllocator::CutOpen(Block* block, std::size_t size) noexcept {
  if (block->size - size < kMinRemainderBytes) {
    RemoveFree(block);
    return MakeLive(block);
  }
  Block* const rest = block;
  block = OpenBlocks::CutsLow(*rest)
              ? blocks_.SplitLow(rest, size, records_.Pop())
              : blocks_.Split(rest, rest->size - size, records_.Pop());
  block->pool = static_cast<std::uint8_t>(rest->pool - kPools);
  return MakeLive(block);
}

HitPath* AutoGrowthAllocator::hit_path() {
  // With free_idle_chunk, every free may call the system.
  return policy_.free_idle_chunk() ? nullptr : this;
}

std::shared_ptr<Allocator> MakeAutoGrowthAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return AutoGrowthAllocator::MakeLender(std::move(pool), std::move(stream),
                                         AutoGrowthPolicy(options));
}

}  // namespace strata
