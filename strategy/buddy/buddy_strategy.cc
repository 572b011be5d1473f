#include "strata/strategy/buddy/buddy_strategy.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/base/list_under_lock.h"
#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/strategy/blocks/block_list.h"

namespace strata {

namespace {

// A multiple of every smallest block size.
constexpr std::size_t kMaxBuddyBytes = std::size_t{1} << 47;

}  // namespace

BuddyStrategy::BuddyStrategy(const char* name, std::shared_ptr<ChunkPool> pool,
                             std::shared_ptr<ChainStream> stream,
                             const StrategyOptions& options)
    : PoolingStrategy(pool, stream),
      source_(name, std::move(pool), std::move(stream),
              BuddySizes(options, this->pool().place().kind)) {
  this->pool().AddHolder(*this);
}

BuddyStrategy::~BuddyStrategy() {
  pool().RemoveHolder(*this);
  GiveBackAll();
  STRATA_LOG_IF(Error, left_huge_.count != 0)
      << name() << ": giving " << left_huge_.bytes
      << " bytes back although their streams could not be waited for";
  GiveToSystem(left_huge_);
  const Stats left = stats();
  STRATA_LOG_IF(Error, left.chunks != 0)
      << name() << ": destroyed with live blocks; " << left.reserved_bytes
      << " bytes on " << ToString(place()) << " are lost";
  BuddyPool* pool = first_pool();
  while (pool != nullptr) {
    BuddyPool* next = pool->next;
    delete pool;
    pool = next;
  }
}

BuddyPool* BuddyStrategy::AddPool() noexcept {
  BuddyPool* pool = nullptr;
  try {
    pool = new BuddyPool(source_);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  pool->lane = static_cast<std::uint8_t>(pool_count());
  pool->next = pools_.load();
  while (!pools_.compare_exchange_weak(pool->next, pool)) {
  }
  return pool;
}

Allocation* BuddyStrategy::TryAllocate(const Request& request,
                                       Failure& failure) noexcept {
  if (request.bytes > kMaxBuddyBytes || request.alignment > max_alignment()) {
    failure =
        Refusal(request.bytes > kMaxBuddyBytes ? Failure::Reason::kTooLarge
                                               : Failure::Reason::kBadRequest,
                request);
    if (request.bytes <= kMaxBuddyBytes) {
      failure.detail = "alignment above 256 needs the aligned layer";
    }
    return nullptr;
  }
  const std::size_t size =
      AlignUp(request.bytes, source_.sizes().min_block_bytes());
  const bool may_grow = (request.flags & kNoGrowth) == 0;
  if (may_grow) GiveLeftHuge(/*may_wait=*/false);
  if (may_grow && !source_.Measure(failure)) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  Allocation* result = nullptr;
  if (may_grow && size > source_.max_block_bytes()) {
    result = TakeHuge(request, size, failure);
  } else if (BuddyPool* pool = PoolForRequest()) {
    result = pool->TryAllocate(request, size, failure);
  } else {
    failure = Refusal(Failure::Reason::kHostMemory, request);
  }
  if (result == nullptr && (failure.IsExhaustion() ||
                            failure.reason == Failure::Reason::kNoGrowth)) {
    result = TakeAnywhere(request, size);
  }
  if (result == nullptr) {
    const Stats known = stats();
    failure.requested_bytes = request.bytes;
    failure.in_use_bytes = known.in_use_bytes;
    failure.largest_free_bytes = known.largest_free_bytes;
  }
  return result;
}

Allocation* BuddyStrategy::TakeAnywhere(const Request& request,
                                        std::size_t size) noexcept {
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    pool->TakeIn();
    if (Allocation* found = pool->TryCached(request, size)) return found;
  }
  return nullptr;
}

void BuddyStrategy::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  if (BuddyPool* const home = HomeOf(*block)) {
    GiveToPool(*home, block);
  } else {
    GiveHuge(block);
  }
}

std::size_t BuddyStrategy::SizeInPool(std::size_t bytes) const noexcept {
  if (bytes > source_.max_block_bytes()) return 0;
  const std::size_t size = AlignUp(bytes, source_.sizes().min_block_bytes());
  return size <= source_.max_block_bytes() ? size : 0;
}

Allocation* BuddyStrategy::TakeHuge(const Request& request, std::size_t size,
                                    Failure& failure) noexcept {
  Allocation* result = source_.Take(size, failure);
  if (result == nullptr) return nullptr;
  Block* block = result->block();
  block->requested = request.bytes;
  const std::lock_guard<SpinLock> guard(huge_lock_);
  huge_.Add(block);
  return result;
}

void BuddyStrategy::GiveHuge(Block* block) noexcept {
  HugeBlocks leaving;
  {
    const std::lock_guard<SpinLock> guard(huge_lock_);
    huge_.Remove(block);
    SetLive(*block, false);
    leaving = TakeLeftHuge();
    leaving.Add(block);
  }
  GiveOrLeave(leaving, chain_stream().Synchronize() == Status::kSuccess);
}

std::size_t BuddyStrategy::GiveLeftHuge(bool may_wait) noexcept {
  if (!has_left_huge_.load(std::memory_order_relaxed)) return 0;
  HugeBlocks leaving;
  {
    const std::lock_guard<SpinLock> guard(huge_lock_);
    leaving = TakeLeftHuge();
  }
  return GiveOrLeave(leaving,
                     may_wait ? chain_stream().Synchronize() == Status::kSuccess
                              : chain_stream().IsDone());
}

BuddyStrategy::HugeBlocks BuddyStrategy::TakeLeftHuge() noexcept {
  has_left_huge_ = false;
  return std::exchange(left_huge_, HugeBlocks());
}

// A capturing stream cannot be waited for. Until it can be, memory that its
// work may use is not freed to the driver.
std::size_t BuddyStrategy::GiveOrLeave(HugeBlocks& leaving,
                                       bool is_done) noexcept {
  if (is_done) return GiveToSystem(leaving);
  const std::lock_guard<SpinLock> guard(huge_lock_);
  while (Block* block = leaving.blocks.front()) {
    leaving.Remove(block);
    left_huge_.Add(block);
  }
  has_left_huge_ = left_huge_.count != 0;
  return 0;
}

std::size_t BuddyStrategy::GiveToSystem(HugeBlocks& leaving) noexcept {
  std::size_t bytes = 0;
  while (Block* block = leaving.blocks.front()) {
    leaving.Remove(block);
    SetLive(*block, true);
    bytes += source_.Give(block->allocation());
  }
  return bytes;
}

void BuddyStrategy::HugeBlocks::Add(Block* block) {
  blocks.PushBack(block);
  ++count;
  bytes += block->size;
}

void BuddyStrategy::HugeBlocks::Remove(Block* block) {
  blocks.Remove(block);
  --count;
  bytes -= block->size;
}

void BuddyStrategy::TakeInAll() const noexcept {
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    pool->TakeIn();
  }
}

Stats BuddyStrategy::stats() const {
  TakeInAll();
  Stats sum;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    Accumulate(sum, pool->stats());
  }
  const std::lock_guard<SpinLock> guard(huge_lock_);
  sum.reserved_bytes += huge_.bytes + left_huge_.bytes;
  sum.in_use_bytes += huge_.bytes + left_huge_.bytes;
  sum.chunks += huge_.count + left_huge_.count;
  return sum;
}

std::size_t BuddyStrategy::huge_count() const {
  const std::lock_guard<SpinLock> guard(huge_lock_);
  return huge_.count;
}

std::size_t BuddyStrategy::pool_count() const {
  std::size_t count = 0;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    ++count;
  }
  return count;
}

void BuddyStrategy::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  TakeInAll();
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    pool->AppendBlocks(blocks);
  }
  const std::size_t before = blocks.size();
  const auto add = [&blocks](const BlockQueue& queue) {
    for (const Block* one = queue.front(); one != nullptr; one = one->next) {
      blocks.push_back({one->data, one->size, one->data, StateOf(*one)});
    }
  };
  ListUnderLock(
      huge_lock_, [this] { return huge_.count + left_huge_.count; },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        add(huge_.blocks);
        add(left_huge_.blocks);
      });
}

bool BuddyStrategy::IsConsistent() const {
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    if (!pool->IsConsistent()) return false;
  }
  return true;
}

// ChunkHolder: the idle chunks of all pools.

ChunkHolder::IdleInfo BuddyStrategy::Idle(
    std::size_t fit_bytes) const noexcept {
  TakeInAll();
  IdleInfo idle;
  {
    // Blocks that a release waits for.
    const std::lock_guard<SpinLock> guard(huge_lock_);
    idle.bytes_with_lent = left_huge_.bytes;
    idle.system_bytes = left_huge_.bytes + left_huge_.count * kSystemStepBytes;
  }
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    const IdleInfo of_pool = pool->Idle(fit_bytes);
    idle.bytes += of_pool.bytes;
    idle.bytes_with_lent += of_pool.bytes;
    idle.system_bytes += of_pool.system_bytes;
    idle.largest = std::max(idle.largest, of_pool.largest);
    const std::size_t fit = of_pool.best_fit;
    if (fit != 0 && (idle.best_fit == 0 || fit < idle.best_fit)) {
      idle.best_fit = fit;
    }
  }
  return idle;
}

Allocation* BuddyStrategy::DetachIdle(std::size_t bytes) noexcept {
  // At least 1: chunks have at least one byte, and 0 would skip the sizes.
  const std::size_t fit_bytes = std::max<std::size_t>(bytes, 1);
  const std::size_t best = Idle(fit_bytes).best_fit;
  if (best == 0) return nullptr;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    if (pool->Idle(fit_bytes).best_fit != best) continue;
    if (Allocation* memory = pool->DetachIdle(bytes)) return memory;
  }
  return nullptr;
}

std::size_t BuddyStrategy::GiveBackBestFit(std::size_t bytes) noexcept {
  Allocation* memory = DetachIdle(bytes);
  if (memory == nullptr) return 0;
  return source_.Give(memory, WaitForWork());
}

std::size_t BuddyStrategy::OfferIdle(std::size_t bytes) noexcept {
  Allocation* memory = DetachIdle(bytes);
  if (memory == nullptr) return 0;
  const std::size_t offered = memory->size();
  source_.Offer(memory);
  return offered;
}

std::size_t BuddyStrategy::GiveBackAll() noexcept {
  TakeInAll();
  // Linked by Block::next, because the records of chunks are in no list.
  Block* detached = nullptr;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    while (Allocation* memory = pool->DetachIdle(/*bytes=*/0)) {
      memory->block()->next = detached;
      detached = memory->block();
    }
  }
  std::size_t bytes = GiveLeftHuge(/*may_wait=*/true);
  if (detached == nullptr) return bytes;
  const bool is_done = WaitForWork();
  while (detached != nullptr) {
    Block* next = detached->next;
    bytes += source_.Give(detached->allocation(), is_done);
    detached = next;
  }
  return bytes;
}

std::size_t BuddyStrategy::GiveBackDone(std::size_t bytes,
                                        std::size_t least_bytes) noexcept {
  if (!IdleIsDone()) return 0;
  std::size_t given = 0;
  while (given < bytes) {
    const std::size_t largest = Idle(/*fit_bytes=*/1).largest;
    if (largest < least_bytes) break;
    Allocation* const memory = DetachIdle(largest);
    if (memory == nullptr) break;
    // A stream may have reused and freed it before it was detached.
    const std::size_t got = source_.Give(memory, IdleIsDone());
    if (got == 0) break;
    given += got;
  }
  return given;
}

}  // namespace strata
