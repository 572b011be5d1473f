#include "strata/strategy/buddy/buddy_pool.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace strata {
namespace {

// Records kept ready, so that a hit need not ask the slab, and the most that
// are kept when blocks coalesce.
constexpr std::size_t kRecordBatch = 64;
constexpr std::size_t kMaxSpareRecords = 1024;

// Blocks taken in while the lock is held once.
constexpr int kTakeInBatch = 32;

void Drain(RecordList& records) {
  RecordList blank;
  while (Block* record = records.Pop()) {
    // Records keep the address of the block they were, until here.
    *record = Block();
    blank.Push(record);
  }
  RecordSlab::Instance().Drain(blank);
}

}  // namespace

BuddyPool::~BuddyPool() { Drain(records_); }

Allocation* BuddyPool::TryCached(const Request& request,
                                 std::size_t size) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  Block* block = FindAndCarve(size);
  if (block == nullptr) return nullptr;
  block->requested = request.bytes;
  return block->allocation();
}

Allocation* BuddyPool::TryAllocate(const Request& request, std::size_t size,
                                   Failure& failure) noexcept {
  TakeIn();
  bool out_of_records = false;
  do {
    const std::lock_guard<SpinLock> guard(lock_);
    if (Block* block = FindAndCarve(size)) {
      ++stats_.cache_hits;
      block->requested = request.bytes;
      return block->allocation();
    }
    out_of_records = records_.empty();
    if (!out_of_records) ++stats_.cache_misses;
  } while (out_of_records && Restock());
  if (out_of_records || (request.flags & kNoGrowth) != 0) {
    failure = source_.Refusal(out_of_records ? Failure::Reason::kHostMemory
                                             : Failure::Reason::kNoGrowth,
                              request);
    return nullptr;
  }
  return Grow(request, size, failure);
}

bool BuddyPool::Restock() noexcept {
  RecordList fresh;
  const bool filled = RecordSlab::Instance().Fill(fresh, kRecordBatch);
  const std::lock_guard<SpinLock> guard(lock_);
  while (!fresh.empty()) records_.Push(fresh.Pop());
  return filled;
}

Allocation* BuddyPool::Grow(const Request& request, std::size_t size,
                            Failure& failure) noexcept {
  RecordList records;
  std::unique_ptr<BuddyChunk> chunk(new (std::nothrow) BuddyChunk());
  if (chunk == nullptr || !RecordSlab::Instance().Fill(records, kRecordBatch)) {
    RecordSlab::Instance().Drain(records);
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
    while (!records.empty() && records_.size() < kRecordBatch) {
      records_.Push(records.Pop());
    }
    if (taken.memory != nullptr) {
      chunk->memory = taken.memory;
      chunk->home = this;
      chunk->pool = static_cast<std::uint32_t>(
          taken.is_fallback ? Preference::kFallback : Preference::kWanted);
      Publish(chunk.release());
    }
    // Another thread may have freed something meanwhile.
    block = FindAndCarve(size);
  }
  RecordSlab::Instance().Drain(records);
  if (block == nullptr) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  block->requested = request.bytes;
  return block->allocation();
}

void BuddyPool::Publish(BuddyChunk* chunk) noexcept {
  Block* block = records_.Pop();
  blocks_.AddChunk(chunk, block);
  block->is_free = true;
  OrderOf(block).Insert(block);
  LinkIdle(chunk);
}

Block* BuddyPool::FindAndCarve(std::size_t size) noexcept {
  for (const SmallOrderedIndex& order : orders_) {
    Block* block = order.Find(size);
    if (block != nullptr) return Carve(block, size);
  }
  return nullptr;
}

Block* BuddyPool::Carve(Block* block, std::size_t size) noexcept {
  const bool split =
      block->size - size >= source_.sizes().min_remainder_bytes();
  if (split && records_.empty()) {
    RecordSlab::Instance().FillFromStock(records_, kRecordBatch);
    if (records_.empty()) return nullptr;
  }
  SmallOrderedIndex& order = OrderOf(block);
  order.Remove(block);
  if (BlockList::IsWholeChunk(block)) UnlinkIdle(block->chunk);
  if (split) {
    Block* rest = blocks_.Split(block, size, records_.Pop());
    rest->is_free = true;
    order.Insert(rest);
    ++stats_.splits;
  }
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  return block;
}

Block* BuddyPool::JoinNext(Block* block) noexcept {
  void* const data = block->next->data;
  const std::size_t size = block->next->size;
  block = blocks_.CoalesceWithNext(block, records_);
  // The record left over keeps the address, so that freeing it once more is
  // reported with it.
  Block* record = records_.Pop();
  record->data = static_cast<std::byte*>(data);
  record->size = size;
  record->place = block->place;
  records_.Push(record);
  ++stats_.coalesces;
  return block;
}

void BuddyPool::Insert(Block* block) noexcept {
  SmallOrderedIndex& order = OrderOf(block);
  block->flags = 0;
  if (BlockList::IsFree(block->next)) {
    order.Remove(block->next);
    block = JoinNext(block);
  }
  if (BlockList::IsFree(block->previous)) {
    order.Remove(block->previous);
    block = JoinNext(block->previous);
  }
  block->is_free = true;
  order.Insert(block);
  if (BlockList::IsWholeChunk(block)) LinkIdle(block->chunk);
  if (records_.size() > kMaxSpareRecords) DropSurplusRecords();
}

void BuddyPool::DropSurplusRecords() noexcept {
  RecordList surplus;
  while (records_.size() > kMaxSpareRecords / 2) surplus.Push(records_.Pop());
  Drain(surplus);
}

void BuddyPool::Give(Block* block) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  Insert(block);
}

void BuddyPool::GiveLater(Block* block) noexcept {
  block->flags = 0;
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

Stats BuddyPool::stats() const {
  const std::lock_guard<SpinLock> guard(lock_);
  Stats stats = stats_;
  stats.reserved_bytes = blocks_.chunk_bytes();
  stats.in_use_bytes = stats.reserved_bytes;
  for (const SmallOrderedIndex& order : orders_) {
    stats.in_use_bytes -= order.total_bytes();
    stats.free_blocks += order.count();
    stats.largest_free_bytes =
        std::max<std::uint64_t>(stats.largest_free_bytes, order.LargestBytes());
  }
  stats.chunks = blocks_.chunk_count();
  stats.idle_bytes = idle_bytes_;
  return stats;
}

void BuddyPool::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  std::size_t room = before;
  // The list is made without allocating under the lock.
  do {
    room = room * 2 + 1024;
    blocks.resize(before);
    blocks.reserve(room);
    const std::lock_guard<SpinLock> guard(lock_);
    if (blocks_.block_count() <= room - before) {
      blocks_.Describe(blocks);
      return;
    }
  } while (true);
}

bool BuddyPool::IsConsistent() const {
  const std::lock_guard<SpinLock> guard(lock_);
  std::size_t idle = 0;
  for (const Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    if (!BlockList::IsWholeChunk(chunk->first) ||
        !BlockList::IsFree(chunk->first)) {
      return false;
    }
    idle += chunk->memory->size();
  }
  return idle == idle_bytes_ && blocks_.IsConsistent() &&
         orders_[0].IsConsistent() && orders_[1].IsConsistent();
}

}  // namespace strata
