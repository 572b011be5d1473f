#include "strata/strategy/buddy/buddy_pool.h"

#include <algorithm>
#include <memory>
#include <new>

#include "strata/allocation/block_flags.h"
#include "strata/base/list_under_lock.h"

namespace strata {
namespace {

// Blocks taken from the list per acquisition of the lock.
constexpr int kTakeInBatch = 32;

}  // namespace

BuddyPool::BuddyPool(BuddySource& source)
    : source_(source),
      cache_(source.sizes().front_cache().max_block_bytes(),
             source.sizes().min_block_bytes(),
             source.sizes().front_cache().searches()) {}

Block* BuddyPool::TakeHit(std::size_t bytes, std::size_t size) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  if (waiting_.load(std::memory_order_relaxed) != nullptr) return nullptr;
  Block* const block = TakeOrFind(size);
  if (block != nullptr) block->requested = bytes;
  return block;
}

Allocation* BuddyPool::TryCached(const Request& request,
                                 std::size_t size) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  Block* block = Find(size);
  if (block == nullptr) return nullptr;
  block->requested = request.bytes;
  return block->allocation();
}

Allocation* BuddyPool::TryAllocate(const Request& request, std::size_t size,
                                   Failure& failure) noexcept {
  TakeIn();
  const bool may_grow = (request.flags & kNoGrowth) == 0;
  bool out_of_records = false;
  do {
    const std::lock_guard<SpinLock> guard(lock_);
    if (Block* block = TakeOrFind(size)) {
      block->requested = request.bytes;
      return block->allocation();
    }
    out_of_records = records_.empty();
    // Not a miss: a probe that may not grow precedes the request itself.
    if (!out_of_records && may_grow) ++stats_.cache_misses;
  } while (out_of_records && records_.Restock(lock_));
  if (out_of_records || !may_grow) {
    failure = source_.Refusal(out_of_records ? Failure::Reason::kHostMemory
                                             : Failure::Reason::kNoGrowth,
                              request);
    return nullptr;
  }
  return Grow(request, size, failure);
}

Allocation* BuddyPool::Grow(const Request& request, std::size_t size,
                            Failure& failure) noexcept {
  RecordStock supply(RecordSlab::Instance());
  std::unique_ptr<BuddyChunk> chunk(new (std::nothrow) BuddyChunk());
  if (chunk == nullptr || !supply.Fill()) {
    failure = source_.Refusal(Failure::Reason::kHostMemory, request);
    return nullptr;
  }
  bool is_first = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    is_first = blocks_.chunk_count() == 0;
  }
  const BuddySource::Taken taken = source_.TakeChunk(size, is_first, failure);
  Block* block = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    records_.TakeFrom(supply);
    if (taken.memory != nullptr) {
      chunk->memory = taken.memory;
      chunk->home = this;
      chunk->lane = lane;
      Publish(chunk.release(),
              taken.is_fallback ? Preference::kFallback : Preference::kWanted);
    }
    // Another thread may have freed memory meanwhile.
    block = Find(size);
  }
  if (block == nullptr) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  block->requested = request.bytes;
  return block->allocation();
}

void BuddyPool::Publish(BuddyChunk* chunk, Preference preference) noexcept {
  Block* block = records_.Pop();
  blocks_.AddChunk(chunk, block);
  block->pool = static_cast<std::uint8_t>(preference);
  block->is_free = true;
  OrderOf(block).Insert(block);
  idle_.Add(chunk);
  LimitCache();
}

void BuddyPool::LimitCache() noexcept {
  const FrontCachePolicy& policy = source_.sizes().front_cache();
  cache_.set_limit_bytes(policy.LimitBytes(blocks_.chunk_bytes()));
}

Block* BuddyPool::TakeOrFind(std::size_t size) noexcept {
  if (Block* kept = cache_.Take(size)) return kept;
  Block* block = Find(size);
  if (block != nullptr) ++stats_.cache_hits;
  return block;
}

Block* BuddyPool::Find(std::size_t size) noexcept {
  if (cache_.is_sweep_due()) Join(cache_.TakeStale());
  Block* block = FindAndCarve(size);
  // If the record for the rest is missing, more free blocks do not help.
  if (block == nullptr && !cache_.empty() && records_.Has(1)) {
    JoinAll();
    block = FindAndCarve(size);
  }
  if (block != nullptr) cache_.NoteSearch(size);
  return block;
}

void BuddyPool::Join(Block* cached) noexcept {
  while (cached != nullptr) {
    Block* const rest = cached->free_next;
    Insert(cached);
    cached = rest;
  }
}

Block* BuddyPool::FindAndCarve(std::size_t size) noexcept {
  for (const OrderedIndex& order : orders_) {
    Block* block = order.Find(size);
    if (block != nullptr) return Carve(block, size);
  }
  return nullptr;
}

Block* BuddyPool::Carve(Block* block, std::size_t size) noexcept {
  const bool split =
      block->size - size >= source_.sizes().min_remainder_bytes();
  if (split && !records_.Has(1)) return nullptr;
  OrderedIndex& order = OrderOf(block);
  order.Remove(block);
  if (BlockList::IsWholeChunk(block)) idle_.Remove(block->chunk);
  if (split) {
    Block* rest = blocks_.Split(block, size, records_.Pop());
    rest->is_free = true;
    order.Insert(rest);
  }
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  return block;
}

void BuddyPool::Insert(Block* block) noexcept {
  // With many blocks they are not in a near cache.
  __builtin_prefetch(block->next);
  __builtin_prefetch(block->previous);
  OrderedIndex& order = OrderOf(block);
  block->flags = 0;
  if (Block* high = block->next; BlockList::IsFree(high)) {
    order.Remove(high);
    blocks_.Coalesce(block, high, records_);
  }
  if (Block* low = block->previous; BlockList::IsFree(low)) {
    order.Remove(low);
    blocks_.Coalesce(low, block, records_);
    block = low;
  }
  block->is_free = true;
  order.Insert(block);
  if (BlockList::IsWholeChunk(block)) idle_.Add(block->chunk);
  records_.Shed();
}

void BuddyPool::Give(Block* block) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  if (!cache_.Give(block)) Insert(block);
}

void BuddyPool::GiveLater(Block* block) noexcept {
  SetFlags(*block, 0);
  Block* head = waiting_.load(std::memory_order_relaxed);
  do {
    block->free_previous = head;
  } while (!waiting_.compare_exchange_weak(
      head, block, std::memory_order_release, std::memory_order_relaxed));
}

void BuddyPool::TakeIn() noexcept {
  if (waiting_.load(std::memory_order_relaxed) == nullptr) return;
  Block* block = waiting_.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    const std::lock_guard<SpinLock> guard(lock_);
    for (int i = 0; i < kTakeInBatch && block != nullptr; ++i) {
      Block* rest = block->free_previous;
      Insert(block);
      block = rest;
    }
  }
}

ChunkHolder::IdleInfo BuddyPool::Idle(std::size_t fit_bytes) const noexcept {
  const auto joined = LockJoined();
  ChunkHolder::IdleInfo idle;
  idle.bytes = idle.bytes_with_lent = idle_.bytes();
  idle.system_bytes = idle_.system_bytes();
  idle_.FillInSizes(fit_bytes, idle);
  return idle;
}

Allocation* BuddyPool::DetachIdle(std::size_t bytes) noexcept {
  std::unique_ptr<BuddyChunk> chunk;  // destroyed without the lock
  const auto joined = LockJoined();
  chunk.reset(static_cast<BuddyChunk*>(idle_.Smallest(bytes)));
  if (chunk == nullptr) return nullptr;
  idle_.Remove(chunk.get());
  OrderOf(chunk->first).Remove(chunk->first);
  blocks_.RemoveChunk(chunk.get(), records_);
  LimitCache();
  return chunk->memory;
}

Stats BuddyPool::stats() const {
  const auto joined = LockJoined();
  Stats stats = stats_;
  stats.cache_hits += cache_.hits();
  stats.splits = blocks_.splits();
  stats.coalesces = blocks_.coalesces();
  stats.reserved_bytes = blocks_.chunk_bytes();
  stats.in_use_bytes = stats.reserved_bytes;
  for (const OrderedIndex& order : orders_) {
    stats.in_use_bytes -= order.total_bytes();
    stats.free_blocks += order.count();
    stats.largest_free_bytes =
        std::max<std::uint64_t>(stats.largest_free_bytes, order.LargestBytes());
  }
  stats.chunks = blocks_.chunk_count();
  stats.idle_bytes = idle_.bytes();
  return stats;
}

void BuddyPool::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_, [this] { return blocks_.block_count(); },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        const_cast<BuddyPool*>(this)->JoinAll();
        blocks_.Describe(blocks);
      });
}

bool BuddyPool::IsConsistent() const {
  const auto joined = LockJoined();
  return cache_.IsConsistent() && idle_.IsConsistent() &&
         blocks_.IsConsistent() && orders_[0].IsConsistent() &&
         orders_[1].IsConsistent();
}

}  // namespace strata
