#include "strata/strategy/auto_growth_allocator.h"

#include <glog/logging.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "strata/allocation/size.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

// Records kept ready, so that a hit need not ask the slab, and the most that
// are kept when blocks coalesce.
constexpr std::size_t kRecordBatch = 64;
constexpr std::size_t kMaxSpareRecords = 1024;

// A multiple of every granule.
constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 47;

std::optional<std::size_t> RoundedSize(std::size_t bytes, std::size_t granule) {
  if (bytes > kMaxBlockBytes) return std::nullopt;
  return AlignUp(bytes, granule);
}

}  // namespace

AutoGrowthAllocator::AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                                         std::shared_ptr<ChainStream> stream,
                                         const AutoGrowthPolicy& policy)
    : pool_(std::move(pool)), stream_(std::move(stream)), policy_(policy) {
  pool_->AddHolder(*this);
}

AutoGrowthAllocator::~AutoGrowthAllocator() {
  pool_->RemoveHolder(*this);
  ReturnLoans(/*wait=*/true);
  GiveBackIdle();
  LOG_IF(ERROR, blocks_.chunk_count() != 0)
      << "auto_growth: destroyed with live blocks; " << blocks_.chunk_bytes()
      << " bytes on " << ToString(place()) << " are lost";
  RecordSlab::Instance().Drain(records_);
}

Failure AutoGrowthAllocator::Refusal(Failure::Reason reason,
                                     const Request& request) const {
  Failure failure;
  failure.reason = reason;
  failure.layer = name();
  failure.place = place();
  failure.requested_bytes = request.bytes;
  return failure;
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
  bool out_of_records = false;
  do {
    const std::lock_guard<SpinLock> guard(lock_);
    Block* block = FindAndCarve(policy_.PoolOf(*size), *size,
                                (request.flags & kLongLived) != 0);
    if (block == nullptr && !may_grow) block = FindAnywhere(*size);
    if (block != nullptr) {
      block->requested = request.bytes;
      return block->allocation();
    }
    out_of_records = records_.empty();
    if (!out_of_records) ++stats_.cache_misses;
  } while (out_of_records && Restock());
  if (!may_grow || out_of_records) {
    failure = Refusal(out_of_records ? Failure::Reason::kHostMemory
                                     : Failure::Reason::kNoGrowth,
                      request);
    return nullptr;
  }
  return Grow(request, *size, failure);
}

bool AutoGrowthAllocator::Restock() noexcept {
  RecordList fresh;
  const bool filled = RecordSlab::Instance().Fill(fresh, kRecordBatch);
  const std::lock_guard<SpinLock> guard(lock_);
  while (!fresh.empty()) records_.Push(fresh.Pop());
  return filled;
}

Allocation* AutoGrowthAllocator::Grow(const Request& request, std::size_t size,
                                      Failure& failure) noexcept {
  RecordList records;
  std::unique_ptr<Chunk> chunk(new (std::nothrow) Chunk());
  if (chunk == nullptr || !RecordSlab::Instance().Fill(records, kRecordBatch)) {
    RecordSlab::Instance().Drain(records);
    failure = Refusal(Failure::Reason::kHostMemory, request);
    return nullptr;
  }
  const Pool pool = policy_.PoolOf(size);
  bool is_first = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    is_first = !std::exchange(has_grown_[static_cast<std::size_t>(pool)], true);
  }
  if (policy_.free_when_no_cache_hit()) GiveBackIdle();

  Block* block = nullptr;
  chunk->memory = BorrowFor(size, &block);
  const auto sizes = policy_.GrowthSizes(size, is_first);
  if (chunk->memory == nullptr && block == nullptr &&
      policy_.give_back_limit() > 0) {
    pool_->GiveBackBeforeGrowth(sizes[0], policy_.give_back_limit());
  }
  for (const std::size_t bytes : sizes) {
    if (bytes == 0 || chunk->memory != nullptr || block != nullptr) break;
    chunk->memory = pool_->TryAllocateFor(
        Request{bytes, FreeIndex::kGranuleBytes}, *stream_, failure);
    if (chunk->memory == nullptr && !failure.IsExhaustion()) break;
  }
  if (chunk->memory == nullptr && block == nullptr && failure.IsExhaustion()) {
    // A stream that waits is better than a request that is refused.
    chunk->memory = Borrow(size, LoanRequest::Effort::kOrder);
  }
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (block == nullptr && chunk->memory != nullptr) {
      chunk->pool = static_cast<std::uint32_t>(pool);
      // What other streams left may still be in use there, before what this one
      // does next.
      block = Publish(chunk.release(), size, epochs_.current(), records);
    } else if (block == nullptr) {
      // The pool has not grown, so its first growth is still to come.
      if (is_first) has_grown_[static_cast<std::size_t>(pool)] = false;
      while (records_.size() < kRecordBatch && !records.empty()) {
        records_.Push(records.Pop());
      }
      block = FindAnywhere(size);
      failure.largest_free_bytes =
          std::max(index_[0].LargestBytes(), index_[1].LargestBytes());
      failure.in_use_bytes = blocks_.chunk_bytes() - lent_bytes_ -
                             index_[0].total_bytes() - index_[1].total_bytes();
    }
  }
  RecordSlab::Instance().Drain(records);
  if (block == nullptr) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  block->requested = request.bytes;
  return block->allocation();
}

Block* AutoGrowthAllocator::Publish(Chunk* chunk, std::size_t size,
                                    FreeEpochs::Epoch epoch,
                                    RecordList& records) noexcept {
  while (!records.empty()) records_.Push(records.Pop());
  Block* block = records_.Pop();
  chunk->owner = this;
  blocks_.AddChunk(chunk, block);
  block->is_free = true;
  block->offset_units = epoch;
  index(static_cast<Pool>(chunk->pool)).Insert(block);
  LinkIdle(chunk);
  return Carve(block, size);
}

Block* AutoGrowthAllocator::Carve(Block* block, std::size_t size) noexcept {
  const bool split = block->size - size >= kMinRemainderBytes;
  if (split && records_.empty()) {
    RecordSlab::Instance().FillFromStock(records_, kRecordBatch);
    if (records_.empty()) return nullptr;
  }
  FreeIndex& blocks = index(static_cast<Pool>(block->chunk->pool));
  blocks.Remove(block);
  if (BlockList::IsWholeChunk(block)) UnlinkIdle(block->chunk);
  if (split) {
    Block* high = blocks_.Split(block, block->size - size, records_.Pop());
    blocks.Insert(block);
    block = high;
    ++stats_.splits;
  }
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  return block;
}

Block* AutoGrowthAllocator::FindAndCarve(Pool pool, std::size_t size,
                                         bool exact) noexcept {
  const FreeIndex& blocks = index(pool);
  Block* block = exact ? blocks.FindExact(size) : blocks.FindBestFit(size);
  if (block != nullptr) block = Carve(block, size);
  if (block != nullptr) ++stats_.cache_hits;
  return block;
}

Block* AutoGrowthAllocator::FindAnywhere(std::size_t size) noexcept {
  const Pool own = policy_.PoolOf(size);
  Block* block = FindAndCarve(own, size, /*exact=*/false);
  if (block != nullptr) return block;
  const Pool other = own == Pool::kSmall ? Pool::kLarge : Pool::kSmall;
  return FindAndCarve(other, size, /*exact=*/false);
}

Block* AutoGrowthAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::optional<std::size_t> size =
      RoundedSize(bytes, policy_.granule_bytes());
  if (!size) return nullptr;
  return FindAndCarve(policy_.PoolOf(*size), *size, /*exact=*/false);
}

void AutoGrowthAllocator::GiveCached(Block* block) noexcept {
  ++frees_;
  Insert(block, epochs_.current());
}

void AutoGrowthAllocator::Insert(Block* block,
                                 FreeEpochs::Epoch epoch) noexcept {
  FreeIndex& blocks = index(static_cast<Pool>(block->chunk->pool));
  block->flags = 0;
  if (BlockList::IsFree(block->previous)) {
    blocks.Remove(block->previous);
    epoch = std::max(epoch, block->previous->offset_units);
    block = blocks_.CoalesceWithPrevious(block, records_);
    ++stats_.coalesces;
  }
  if (BlockList::IsFree(block->next)) {
    blocks.Remove(block->next);
    epoch = std::max(epoch, block->next->offset_units);
    block = blocks_.CoalesceWithNext(block, records_);
    ++stats_.coalesces;
  }
  block->is_free = true;
  block->offset_units = epoch;
  blocks.Insert(block);
  if (BlockList::IsWholeChunk(block)) LinkIdle(block->chunk);
  if (records_.size() > kMaxSpareRecords) {
    RecordList surplus;
    while (records_.size() > kMaxSpareRecords / 2) surplus.Push(records_.Pop());
    RecordSlab::Instance().Drain(surplus);
  }
}

void AutoGrowthAllocator::DoFree(Allocation* allocation) noexcept {
  Chunk* idle = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    GiveCached(allocation->block());
    if (policy_.free_idle_chunk()) idle = DetachIdle(1);
  }
  if (idle == nullptr) return;
  stream_->Synchronize();
  ReturnToSystem(idle);
}

HitPath* AutoGrowthAllocator::hit_path() {
  // Every free may have to call the system.
  return policy_.free_idle_chunk() ? nullptr : this;
}

bool AutoGrowthAllocator::RecordStream(Allocation* /*allocation*/,
                                       Stream /*stream*/) noexcept {
  return false;
}
void AutoGrowthAllocator::EraseStream(Allocation* /*allocation*/,
                                      Stream /*stream*/) noexcept {}
void AutoGrowthAllocator::StreamDestroyed(Stream /*stream*/) noexcept {}

Stats AutoGrowthAllocator::stats() const {
  const std::lock_guard<SpinLock> guard(lock_);
  Stats stats = stats_;
  // What is lent is counted by the borrower.
  stats.reserved_bytes = blocks_.chunk_bytes() - lent_bytes_;
  stats.in_use_bytes = stats.reserved_bytes;
  for (const FreeIndex& blocks : index_) {
    stats.in_use_bytes -= blocks.total_bytes();
    stats.free_blocks += blocks.count();
    stats.largest_free_bytes = std::max<std::uint64_t>(stats.largest_free_bytes,
                                                       blocks.LargestBytes());
  }
  stats.chunks = blocks_.chunk_count();
  stats.idle_bytes = idle_bytes_;
  return stats;
}

void AutoGrowthAllocator::ResetPeak() { pool_->ResetPeak(); }

void AutoGrowthAllocator::Accept(AllocatorVisitor& visitor) const {
  visitor.VisitLayer(*this);
  std::vector<BlockInfo> blocks;
  std::size_t room = 0;
  // The list is made without allocating under the lock.
  do {
    room = room * 2 + 1024;
    blocks.clear();
    blocks.reserve(room);
    const std::lock_guard<SpinLock> guard(lock_);
    if (blocks_.block_count() <= room) {
      blocks_.Describe(blocks);
      break;
    }
  } while (true);
  visitor.VisitBlocks(*this, blocks);
  pool_->Accept(visitor);
}

bool AutoGrowthAllocator::IsConsistent() const {
  const std::lock_guard<SpinLock> guard(lock_);
  const auto is_idle = [](const Chunk& chunk) {
    return BlockList::IsWholeChunk(chunk.first) &&
           BlockList::IsFree(chunk.first);
  };
  std::size_t idle = 0;
  for (const Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    if (!is_idle(*chunk) || chunk->is_loan()) return false;
    idle += chunk->memory->size();
  }
  for (const Chunk* chunk = idle_loans_; chunk != nullptr;
       chunk = chunk->idle_next) {
    if (!is_idle(*chunk) || !chunk->is_loan()) return false;
  }
  return idle == idle_bytes_ && blocks_.IsConsistent() &&
         index_[0].IsConsistent() && index_[1].IsConsistent();
}

std::shared_ptr<Allocator> MakeAutoGrowthAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return AutoGrowthAllocator::MakeLender(std::move(pool), std::move(stream),
                                         AutoGrowthPolicy(options));
}

}  // namespace strata
