#include "strata/strategy/auto_growth/auto_growth_allocator.h"

#include <mutex>
#include <optional>

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
      HitPath(chain_stream().state()),
      LentBlocks(chain_stream().state(), this->pool().budget(), policy) {
  if (is_complete) this->pool().AddHolder(*this);
}

AutoGrowthAllocator::~AutoGrowthAllocator() {
  pool().RemoveHolder(*this);
  ReturnLoans(LoanRecall::kWait);
  GiveUpIdle();
  STRATA_LOG_IF(Error, blocks_.chunk_count() != 0)
      << "auto_growth: destroyed with live blocks, or blocks that cannot be "
         "unmapped; "
      << blocks_.chunk_bytes() << " bytes on " << ToString(place())
      << " are lost";
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
      block = Find(*size);
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

Block* AutoGrowthAllocator::TakeCached(std::size_t bytes) noexcept {
  const std::size_t size = AlignUp(bytes, policy_.granule_bytes());
  // 0 if the size wraps around. Other sizes that are too large are in no class.
  return size != 0 ? Find(size) : nullptr;
}

bool AutoGrowthAllocator::GiveCached(Block* block) noexcept {
  Insert(block, epochs_.current());
  records_.Shed();
  return true;
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
  const auto joined = LockJoined();
  return StatsLocked();
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
  const auto joined = LockJoined();
  return AreConsistent();
}

std::shared_ptr<Allocator> MakeAutoGrowthAllocator(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const StrategyOptions& options) {
  return AutoGrowthAllocator::MakeLender(std::move(pool), std::move(stream),
                                         AutoGrowthPolicy(options));
}

}  // namespace strata
