#include "strata/strategy/auto_growth/auto_growth_allocator.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "strata/base/list_under_lock.h"
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
      HitPath(policy.biased_lock(), policy.front_cache_max_block(),
              policy.granule_bytes(), policy.front_cache_searches()),
      policy_(policy) {
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

Allocation* AutoGrowthAllocator::Grow(const Request& request, Pool own,
                                      std::size_t size,
                                      Failure& failure) noexcept {
  RecordSupply supply(RecordSlab::Instance());
  ChunkPtr chunk = MakeChunk();
  // One record for the chunk, one for the rest that the request leaves of it.
  if (chunk == nullptr || !supply.Fill(2)) {
    failure = Refusal(Failure::Reason::kHostMemory, request);
    return nullptr;
  }
  if (policy_.free_when_no_cache_hit() && !IsDuringCapture()) GiveBackIdle();

  Block* block = nullptr;
  chunk->memory = BorrowFor(own, size, &block);
  const bool was_borrowed = block != nullptr;
  if (chunk->memory == nullptr && block == nullptr) {
    failure = Failure();
    if (!GrowByPages(own, size, &block, failure)) {
      chunk->memory = TakeFromSystem(own, size, failure);
    }
    if (chunk->memory == nullptr && block == nullptr &&
        failure.IsExhaustion()) {
      // A wait of the stream is better than a refused request.
      chunk->memory =
          Borrow(size, LoanRequest::Effort::kOrder, HolderList::Asked::kAll);
    }
  }
  {
    const Joined joined(*this);
    records_.TakeFrom(supply);
    if (block == nullptr && chunk->memory != nullptr) {
      block = Publish(own, chunk.release(), size);
    } else if (block == nullptr) {
      block = FindAmongAll(own, size);
      failure.largest_free_bytes = LargestFree();
      failure.in_use_bytes = taken_bytes_ - lent_bytes_;
    }
    if (block != nullptr && !was_borrowed) ++untold_takes_;
  }
  if (block == nullptr) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  block->requested = request.bytes;
  return block->allocation();
}

Allocation* AutoGrowthAllocator::TakeFromSystem(Pool own, std::size_t size,
                                                Failure& failure) noexcept {
  bool is_first = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    is_first = !std::exchange(has_grown_[static_cast<std::size_t>(own)], true);
  }
  const AutoGrowthPolicy::Sizes sizes = PlanGrowth(own, size, is_first);
  const bool may_give_back = !IsDuringCapture() && !IsOfGraphs();
  if (policy_.give_back_limit() > 0 && may_give_back) {
    pool().market().GiveBackBeforeGrowth(sizes[0], policy_.give_back_limit());
  }
  Allocation* memory = TakeChunk(sizes, sizes[0], failure);
  if (memory == nullptr && failure.IsExhaustion() && may_give_back &&
      policy_.replaces_idle()) {
    memory = ReplaceIdle(size, sizes, failure);
  }
  if (memory == nullptr && is_first) {
    // The first growth failed: the next one is the first again.
    const std::lock_guard<ChainLock> guard(lock_);
    has_grown_[static_cast<std::size_t>(own)] = false;
  }
  return memory;
}

AutoGrowthPolicy::Sizes AutoGrowthAllocator::PlanGrowth(
    Pool own, std::size_t size, bool is_first) noexcept {
  const std::size_t room = pool().RoomBytes(chain_stream().memory_device());
  std::size_t spare_bytes = 0;
  {
    const Joined joined(*this);
    spare_bytes = AutoGrowthPolicy::SpareOfGrowth(room, unused_bytes());
  }
  return policy_.GrowthSizes({.size = size,
                              .pool = own,
                              .is_first = is_first,
                              .is_limited = pool().limit_bytes() != 0,
                              .spare_bytes = spare_bytes});
}

Allocation* AutoGrowthAllocator::TakeChunk(const AutoGrowthPolicy::Sizes& sizes,
                                           std::size_t most_bytes,
                                           Failure& failure) noexcept {
  for (const std::size_t bytes : sizes) {
    if (bytes == 0 || bytes > most_bytes) continue;
    Allocation* memory = pool().TryAllocateFor(
        Request{bytes, FreeIndex::kGranuleBytes}, chain_stream(), failure);
    if (memory != nullptr || !failure.IsExhaustion()) return memory;
  }
  return nullptr;
}

Allocation* AutoGrowthAllocator::ReplaceIdle(
    std::size_t size, const AutoGrowthPolicy::Sizes& sizes,
    Failure& failure) noexcept {
  const std::size_t given = GiveBack({GiveBackRequest::Kind::kBestFit, size});
  return given != 0 ? TakeChunk(sizes, given, failure) : nullptr;
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

void AutoGrowthAllocator::Join(Block* cached) noexcept {
  while (cached != nullptr) {
    Block* const next = cached->free_next;
    // The current epoch is right: JoinAll runs before an epoch ends.
    Insert(cached, epochs_.current());
    cached = next;
  }
  records_.Shed();
}

bool AutoGrowthAllocator::GiveCached(Block* block) noexcept {
  Insert(block, epochs_.current());
  records_.Shed();
  return true;
}

// With kInRanges, neighbours may be open blocks or holes.
template <bool kInRanges>
[[gnu::always_inline]] inline void AutoGrowthAllocator::Place(
    Block* block, FreeEpochs::Epoch epoch) noexcept {
  taken_bytes_ -= block->size;
  block->flags = 0;
  const auto take_out = [this](Block* neighbour) {
    if (kInRanges && IsInOpenBlocks(*neighbour)) [[unlikely]] {
      RemoveFree(neighbour);
    } else {
      index(*neighbour).Remove(neighbour);
    }
  };
  if (Block* previous = block->previous; BlockList::IsFree(previous)) {
    take_out(previous);
    epoch = std::max(epoch, previous->offset_units);
    blocks_.Coalesce(previous, block, records_);
    block = previous;
  }
  if (Block* next = block->next; BlockList::IsFree(next)) {
    if (kInRanges && IsInOpenBlocks(*next)) {
      // It stays in its list, and gets larger.
      next->offset_units = std::max(epoch, next->offset_units);
      blocks_.CoalesceLow(block, next, records_);
      return;
    }
    take_out(next);
    epoch = std::max(epoch, next->offset_units);
    blocks_.Coalesce(block, next, records_);
  }
  block->is_free = true;
  block->offset_units = epoch;
  if (kInRanges && OpenBlocks::IsOpen(*block)) [[unlikely]] {
    return AddFree(block);
  }
  index(*block).Insert(block);
  if (BlockList::IsWholeChunk(block)) {
    IdleListOf(block->chunk).Add(block->chunk);
  }
}

void AutoGrowthAllocator::InsertFree(Block* block,
                                     FreeEpochs::Epoch epoch) noexcept {
  Place</*kInRanges=*/true>(block, epoch);
}

void AutoGrowthAllocator::Insert(Block* block,
                                 FreeEpochs::Epoch epoch) noexcept {
  ++gives_;
  if (has_ranges_) return InsertFree(block, epoch);
  Place</*kInRanges=*/false>(block, epoch);
}

void AutoGrowthAllocator::AddFree(Block* block) noexcept {
  if (!OpenBlocks::IsOpen(*block)) return index(*block).Insert(block);
  open_[block->pool].Insert(block);
  block->pool = static_cast<std::uint8_t>(block->pool + kPools);
}

void AutoGrowthAllocator::RemoveFree(Block* block) noexcept {
  if (!IsInOpenBlocks(*block)) return index(*block).Remove(block);
  block->pool = static_cast<std::uint8_t>(block->pool - kPools);
  open_[block->pool].Remove(block);
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

std::size_t AutoGrowthAllocator::LargestFree() const noexcept {
  std::size_t largest = 0;
  for (const FreeIndex& blocks : index_) {
    largest = std::max(largest, blocks.LargestBytes());
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach(
        [&](const Block& block) { largest = std::max(largest, block.size); });
  }
  return largest;
}

void AutoGrowthAllocator::DoFree(Allocation* allocation) noexcept {
  Chunk* idle = nullptr;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    Block* block = allocation->block();
    Give(block);
    if (policy_.free_idle_chunk()) idle = Detach(idle_.first());
  }
  ReturnToSystem(idle);
}

HitPath* AutoGrowthAllocator::hit_path() {
  // With free_idle_chunk, every free may call the system.
  return policy_.free_idle_chunk() ? nullptr : this;
}

Stats AutoGrowthAllocator::stats() const {
  const Joined joined(*this);
  return StatsLocked();
}

Stats AutoGrowthAllocator::StatsLocked() const {
  Stats stats;
  stats.cache_hits = takes_ - untold_takes_ + cache_.hits();
  stats.cache_misses = misses_;
  stats.splits = blocks_.splits();
  stats.coalesces = blocks_.coalesces();
  // The borrower counts the bytes that are lent.
  stats.reserved_bytes = blocks_.chunk_bytes() - lent_bytes_;
  stats.in_use_bytes = taken_bytes_ - lent_bytes_;
  stats.free_blocks = free_blocks();
  stats.largest_free_bytes = LargestFree();
  stats.chunks = blocks_.chunk_count();
  stats.idle_bytes = idle_.bytes();
  return stats;
}

void AutoGrowthAllocator::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_,
      [this] {
        JoinAll();
        return blocks_.block_count();
      },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        JoinAll();
        blocks_.Describe(blocks);
      });
}

bool AutoGrowthAllocator::IsConsistent() const {
  const Joined joined(*this);
  FreeIndex::Totals free;
  for (const FreeIndex& blocks : index_) {
    const FreeIndex::Totals totals = blocks.Count();
    free.blocks += totals.blocks;
    free.bytes += totals.bytes;
    if (!blocks.IsConsistent()) return false;
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach([&](const Block& block) {
      ++free.blocks;
      free.bytes += block.size;
    });
  }
  return free.blocks == free_blocks() &&
         free.bytes + taken_bytes_ == blocks_.chunk_bytes() &&
         cache_.IsConsistent() && idle_.IsConsistent() &&
         idle_loans_.IsConsistent() && blocks_.IsConsistent();
}

std::shared_ptr<Allocator> MakeAutoGrowthAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return AutoGrowthAllocator::MakeLender(std::move(pool), std::move(stream),
                                         AutoGrowthPolicy(options));
}

}  // namespace strata
