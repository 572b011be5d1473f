#include "strata/strategy/pool/pool_allocator.h"

#include <bit>
#include <functional>
#include <mutex>
#include <utility>

#include "strata/allocation/streams/host_order.h"
#include "strata/base/list_under_lock.h"
#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/platform/calls/call_record.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

// Alignment that the layers above rely on (Block::kOffsetUnitBytes). Two pieces
// also never share a cache line.
constexpr std::size_t kAlignmentBytes = 256;
constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 47;

// The rule of auto-resizing (tf_bfc.md §2).
constexpr std::uint64_t kCheckInterval = 1000;  // evictions
constexpr double kTolerableRate = 0.002;
constexpr double kGrowthFactor = 1.1;
constexpr std::size_t kLeastLimit = 100;

bool IsPow2(const std::string& rounder) {
  return ChoiceOf("pool_rounder", "rounder", rounder, {"none", "pow2"}) == 1;
}

double Rate(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

std::size_t SystemBytes(const Block& block) {
  return AlignUp(block.size, kSystemStepBytes);
}

}  // namespace

void CheckPoolAllocator(const StrategyOptions& options,
                        std::uint64_t /*limit_mb*/) {
  static_cast<void>(IsPow2(options.Get<PoolOptions>().pool_rounder));
}

PoolAllocator::PoolAllocator(std::shared_ptr<ChunkPool> pool,
                             std::shared_ptr<ChainStream> stream,
                             const PoolOptions& options)
    : PoolingStrategy(std::move(pool), std::move(stream)),
      to_power_of_two_(IsPow2(options.pool_rounder)),
      auto_resize_(options.pool_auto_resize),
      cached_limit_bytes_(options.pool_cached_limit_bytes),
      alignment_(std::max(this->pool().natural_alignment(), kAlignmentBytes)),
      granule_bytes_(this->pool().system_size(1)),
      size_limit_(options.pool_size_limit) {
  this->pool().AddHolder(*this);
}

PoolAllocator::~PoolAllocator() {
  pool().RemoveHolder(*this);
  GiveBackAll();
  STRATA_LOG_IF(Error, !live_.empty())
      << "pool: destroyed with live blocks; " << uses_.in_use_bytes()
      << " bytes on " << ToString(place()) << " are lost";
}

std::optional<std::size_t> PoolAllocator::RoundedSize(std::size_t bytes) const {
  if (bytes > kMaxPieceBytes) return std::nullopt;
  // As large as the piece will be, so that a free piece is found again.
  return AlignUp(to_power_of_two_ ? std::bit_ceil(bytes) : bytes,
                 granule_bytes_);
}

Allocation* PoolAllocator::Refuse(Failure::Reason reason,
                                  const Request& request,
                                  Failure& failure) noexcept {
  failure = Refusal(reason, request);
  const std::lock_guard<SpinLock> guard(lock_);
  ++stats_.failures;
  return nullptr;
}

void PoolAllocator::Start(Block* block, std::size_t requested) {
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  block->requested = requested;
  live_.PushBack(block);
  uses_.Count(*block);
}

void PoolAllocator::Stop(Block* block) {
  live_.Remove(block);
  uses_.Uncount(*block);
}

Block* PoolAllocator::TakeKept(std::size_t size, std::size_t requested) {
  Block* block = cached_.Take(size);
  if (block == nullptr) return nullptr;
  cached_system_bytes_ -= SystemBytes(*block);
  ++stats_.cache_hits;
  Start(block, requested);
  return block;
}

void PoolAllocator::Keep(Block* block) {
  ++puts_;
  block->flags = 0;
  block->offset_units = waits_.now();
  block->is_free = true;
  cached_.Insert(block);
  cached_system_bytes_ += SystemBytes(*block);
}

Block* PoolAllocator::TakeOldest() {
  Block* oldest = cached_.TakeOldest();
  if (oldest != nullptr) cached_system_bytes_ -= SystemBytes(*oldest);
  return oldest;
}

Block* PoolAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::optional<std::size_t> size = RoundedSize(bytes);
  if (!size) return nullptr;
  const std::lock_guard<SpinLock> guard(lock_);
  return TakeKept(*size, bytes);
}

bool PoolAllocator::GiveCached(Block* block) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  if (!HasRoom(block->size) && !MayExceed(*block)) return false;
  Stop(block);
  Keep(block);
  return true;
}

// Other frees may have filled the cache meanwhile.
void PoolAllocator::PutBack(Block* block) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  Stop(block);
  Keep(block);
  if (!IsWithinLimits()) NoteExcess();
}

Allocation* PoolAllocator::TryAllocate(const Request& request,
                                       Failure& failure) noexcept {
  const std::optional<std::size_t> size = RoundedSize(request.bytes);
  if (!size) return Refuse(Failure::Reason::kTooLarge, request, failure);
  if (request.alignment > max_alignment()) {
    Refuse(Failure::Reason::kBadRequest, request, failure);
    failure.detail = "alignment above 256 needs the aligned layer";
    return nullptr;
  }
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (Block* block = TakeKept(*size, request.unpadded_bytes())) {
      return block->allocation();
    }
  }
  if ((request.flags & kNoGrowth) != 0) {
    return Refuse(Failure::Reason::kNoGrowth, request, failure);
  }
  return Grow(request, *size, failure);
}

Allocation* PoolAllocator::Grow(const Request& request, std::size_t size,
                                Failure& failure) noexcept {
  ExactIndex::Sizes spare = ExactIndex::MakeSpare();
  if (spare.empty()) {
    return Refuse(Failure::Reason::kHostMemory, request, failure);
  }
  Allocation* piece = pool().TryAllocate(Request{size, alignment_}, failure);
  const std::lock_guard<SpinLock> guard(lock_);
  if (piece == nullptr) {
    ++stats_.failures;
    failure.requested_bytes = request.bytes;
    failure.in_use_bytes = uses_.in_use_bytes();
    return nullptr;
  }
  Block* block = piece->block();
  if (Keeps(0)) ++stats_.cache_misses;
  cached_.Open(block->size, spare);
  Start(block, request.unpadded_bytes());
  return piece;
}

bool PoolAllocator::Keeps(std::size_t bytes) const {
  return size_limit_ != 0 &&
         (cached_limit_bytes_ == 0 || bytes <= cached_limit_bytes_);
}

bool PoolAllocator::HasRoom(std::size_t bytes) const {
  return Keeps(bytes) && cached_.count() < size_limit_ &&
         (cached_limit_bytes_ == 0 ||
          cached_.total_bytes() <= cached_limit_bytes_ - bytes);
}

bool PoolAllocator::MayExceed(const Block& block) const {
  return &block == live_.back() && cached_.count() < excess_.pieces &&
         cached_.total_bytes() + block.size <= excess_.bytes;
}

bool PoolAllocator::IsWithinLimits() const {
  return cached_.count() <= size_limit_ &&
         (cached_limit_bytes_ == 0 ||
          cached_.total_bytes() <= cached_limit_bytes_);
}

void PoolAllocator::NoteExcess() {
  excess_ = {cached_.count(), cached_.total_bytes()};
}

void PoolAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  bool is_kept = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    Stop(block);
    is_kept = Keeps(block->size);
    if (is_kept) {
      Keep(block);
      if (IsWithinLimits()) return;
      NoteExcess();
    } else {
      block->flags = 0;
    }
  }
  if (!is_kept && !GiveOrKeep(block)) return;
  ShrinkToLimits();
}

bool PoolAllocator::GiveOrKeep(Block* block) noexcept {
  if (Wait()) {
    RecordSlab::List leaving;
    leaving.Push(block);
    GiveToSystem(leaving, /*is_done=*/true);
    return true;
  }
  const std::lock_guard<SpinLock> guard(lock_);
  Keep(block);
  NoteExcess();
  return false;
}

// A capturing stream cannot be waited for. Until it can be, memory that its
// work may use is not freed to the driver.
void PoolAllocator::ShrinkToLimits() noexcept {
  bool is_all = false;
  do {
    RecordSlab::List leaving;
    {
      const std::lock_guard<SpinLock> guard(lock_);
      is_all = TakeExcess(leaving);
    }
    if (!leaving.empty()) {
      NoteWait();
      GiveToSystem(leaving, /*is_done=*/true);
    }
  } while (!is_all && Wait());
}

bool PoolAllocator::TakeExcess(RecordSlab::List& leaving) {
  while (!IsWithinLimits() &&
         waits_.Covers(cached_.queue().front()->offset_units)) {
    const bool is_one_too_many = cached_.count() > size_limit_;
    leaving.Push(TakeOldest());
    ++evictions_;
    if (!is_one_too_many) continue;
    ++evicted_;
    if (auto_resize_ && evicted_ % kCheckInterval == 0) Resize();
  }
  NoteExcess();
  return IsWithinLimits();
}

void PoolAllocator::Resize() {
  Stats now = stats_;
  uses_.FillIn(now);
  const std::uint64_t hits = now.cache_hits - at_resize_.cache_hits;
  const std::uint64_t misses = now.cache_misses - at_resize_.cache_misses;
  if (Rate(evicted_, puts_) <= kTolerableRate ||
      Rate(misses, misses + hits) <= kTolerableRate) {
    return;
  }
  size_limit_ = size_limit_ < kLeastLimit
                    ? kLeastLimit
                    : static_cast<std::size_t>(
                          kGrowthFactor * static_cast<double>(size_limit_));
  at_resize_ = now;
  puts_ = 0;
  evicted_ = 0;
}

bool PoolAllocator::Wait() noexcept {
  std::uint64_t number = 0;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    number = waits_.Begin();
  }
  if (chain_stream().Synchronize() != Status::kSuccess) return false;
  const std::lock_guard<SpinLock> guard(lock_);
  waits_.End(number);
  return true;
}

void PoolAllocator::NoteWait() noexcept {
  Device* device = chain_stream().memory_device();
  if (device != nullptr) AcquireHostOrder(*device);
}

std::size_t PoolAllocator::GiveToSystem(RecordSlab::List& leaving,
                                        bool is_done) noexcept {
  ExactIndex::Sizes emptied;
  RecordSlab::List closed;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    while (Block* block = leaving.Pop()) {
      cached_.Close(block->size, emptied);
      closed.Push(block);
    }
  }
  std::size_t bytes = 0;
  while (Block* block = closed.Pop()) {
    block->is_free = false;
    block->offset_units = 0;
    block->flags = kBlockLive;
    bytes += GiveToPool(block->allocation(), is_done);
  }
  return bytes;
}

std::size_t PoolAllocator::GiveBackAll() noexcept {
  RecordSlab::List leaving;
  bool is_covered = true;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    while (Block* block = TakeOldest()) {
      is_covered = is_covered && waits_.Covers(block->offset_units);
      leaving.Push(block);
    }
    NoteExcess();
  }
  if (leaving.empty()) return 0;
  if (is_covered) NoteWait();
  return GiveToSystem(leaving, is_covered || Wait());
}

std::size_t PoolAllocator::GiveBackDone(std::size_t bytes,
                                        std::size_t /*least_bytes*/) noexcept {
  if (!PoolingStrategy::IdleIsDone()) return 0;
  RecordSlab::List leaving;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    for (std::size_t taken = 0; taken < bytes;) {
      Block* const block = TakeOldest();
      if (block == nullptr) break;
      taken += block->size;
      leaving.Push(block);
    }
    NoteExcess();
  }
  if (leaving.empty()) return 0;
  // A stream may have reused and freed one of them before it was removed.
  return GiveToSystem(leaving, PoolingStrategy::IdleIsDone());
}

ChunkHolder::IdleInfo PoolAllocator::Idle(
    std::size_t /*fit_bytes*/) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  IdleInfo idle;
  idle.bytes = idle.bytes_with_lent = cached_.total_bytes();
  idle.system_bytes = cached_system_bytes_;
  return idle;
}

std::size_t PoolAllocator::size_limit() const {
  const std::lock_guard<SpinLock> guard(lock_);
  return size_limit_;
}

std::uint64_t PoolAllocator::evictions() const {
  const std::lock_guard<SpinLock> guard(lock_);
  return evictions_;
}

Stats PoolAllocator::stats() const {
  const std::lock_guard<SpinLock> guard(lock_);
  Stats stats = stats_;
  uses_.FillIn(stats);
  stats.idle_bytes = cached_.total_bytes();
  stats.free_blocks = cached_.count();
  stats.reserved_bytes = stats.in_use_bytes + stats.idle_bytes;
  stats.chunks = stats.live_allocations() + stats.free_blocks;
  for (const Block* block = cached_.queue().front(); block != nullptr;
       block = block->next) {
    stats.largest_free_bytes =
        std::max<std::uint64_t>(stats.largest_free_bytes, block->size);
  }
  return stats;
}

void PoolAllocator::ResetPeak() {
  pool().ResetPeak();
  const std::lock_guard<SpinLock> guard(lock_);
  uses_.ResetPeak();
}

void PoolAllocator::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  const auto add = [&blocks](const BlockQueue& queue) {
    for (const Block* block = queue.front(); block != nullptr;
         block = block->next) {
      blocks.push_back(
          {block->data, block->size, block->data, StateOf(*block)});
    }
  };
  ListUnderLock(
      lock_, [this] { return cached_.count() + uses_.live_allocations(); },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        add(cached_.queue());
        add(live_);
      });
  std::sort(blocks.begin() + static_cast<std::ptrdiff_t>(before), blocks.end(),
            [](const BlockInfo& a, const BlockInfo& b) {
              return std::less<>()(a.data, b.data);
            });
}

bool PoolAllocator::IsConsistent() const {
  const std::lock_guard<SpinLock> guard(lock_);
  std::size_t live = 0;
  std::size_t bytes = 0;
  for (const Block* block = live_.front(); block != nullptr;
       block = block->next) {
    if ((block->flags & kBlockLive) == 0 || block->is_free) return false;
    ++live;
    bytes += block->size;
  }
  std::size_t system_bytes = 0;
  for (const Block* block = cached_.queue().front(); block != nullptr;
       block = block->next) {
    if (block->flags != 0 || !block->is_free) return false;
    system_bytes += SystemBytes(*block);
  }
  return cached_.IsConsistent() && live == uses_.live_allocations() &&
         bytes == uses_.in_use_bytes() &&
         system_bytes == cached_system_bytes_ &&
         (IsWithinLimits() || (cached_.count() <= excess_.pieces &&
                               cached_.total_bytes() <= excess_.bytes));
}

std::shared_ptr<Allocator> MakePoolAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return std::make_shared<PoolAllocator>(std::move(pool), std::move(stream),
                                         options.Get<PoolOptions>());
}

}  // namespace strata
