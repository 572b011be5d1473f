// A minimal strategy outside the tree: it keeps freed pieces, and reuses one of
// the requested size. Its option sets the unit of sizes.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/record_slab.h"
#include "strata/base/size.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/pooling_strategy.h"

namespace {

using strata::Block;
using strata::Failure;

constexpr std::size_t kUnitBytes = Block::kOffsetUnitBytes;

class SameSizeStrategy final : public strata::PoolingStrategy {
 public:
  SameSizeStrategy(std::shared_ptr<strata::ChunkPool> below,
                   std::shared_ptr<strata::ChainStream> stream,
                   std::size_t unit_bytes)
      : PoolingStrategy(std::move(below), std::move(stream)),
        unit_bytes_(unit_bytes) {
    pool().AddHolder(*this);
  }
  ~SameSizeStrategy() override {
    pool().RemoveHolder(*this);
    SameSizeStrategy::GiveBackAll();
  }

  strata::Allocation* TryAllocate(const strata::Request& request,
                                  Failure& failure) noexcept override {
    failure = Refusal(Failure::Reason::kTooLarge, request);
    if (request.bytes > std::size_t{1} << 47) return nullptr;
    failure.reason = Failure::Reason::kBadRequest;
    if (request.alignment > max_alignment()) return nullptr;
    const std::size_t size = strata::AlignUp(request.bytes, unit_bytes_);
    Block* block = Take(size);
    failure.reason = Failure::Reason::kNoGrowth;
    if (block == nullptr) {
      if ((request.flags & strata::kNoGrowth) != 0) return nullptr;
      strata::Allocation* piece =
          pool().TryAllocate({size, max_alignment()}, failure);
      failure.requested_bytes = request.bytes;
      if (piece == nullptr) return nullptr;
      block = piece->block();
    }
    block->requested = request.unpadded_bytes();
    const std::lock_guard<strata::SpinLock> guard(lock_);
    uses_.Count(*block);
    return block->allocation();
  }
  void DoFree(strata::Allocation* allocation) noexcept override {
    strata::CheckLive(*allocation->block(), name());
    const std::lock_guard<strata::SpinLock> guard(lock_);
    uses_.Uncount(*allocation->block());
    Keep(allocation->block());
  }

  const char* name() const override { return "same_size"; }
  std::size_t max_alignment() const override {
    return std::max(pool().natural_alignment(), kUnitBytes);
  }
  std::size_t natural_alignment() const override { return max_alignment(); }
  strata::HitPath* hit_path() override { return nullptr; }
  strata::Stats stats() const override {
    const std::lock_guard<strata::SpinLock> guard(lock_);
    strata::Stats stats;
    uses_.FillIn(stats);
    return stats;
  }
  void ResetPeak() override {
    PoolingStrategy::ResetPeak();
    const std::lock_guard<strata::SpinLock> guard(lock_);
    uses_.ResetPeak();
  }

 private:
  // Hold lock_.
  void Keep(Block* block) noexcept {
    strata::SetFlags(*block, 0);
    idle_bytes_ += block->size;
    idle_.Push(block);
  }
  Block* Take(std::size_t size) noexcept {
    const std::lock_guard<strata::SpinLock> guard(lock_);
    strata::RecordSlab::List others;
    Block* found = idle_.Pop();
    while (found != nullptr && found->size != size) {
      others.Push(found);
      found = idle_.Pop();
    }
    while (Block* other = others.Pop()) idle_.Push(other);
    if (found == nullptr) return nullptr;
    idle_bytes_ -= found->size;
    strata::SetFlags(*found, strata::kBlockLive);
    return found;
  }

  IdleInfo Idle(std::size_t /*fit_bytes*/) const noexcept override {
    const std::lock_guard<strata::SpinLock> guard(lock_);
    IdleInfo idle;
    idle.bytes = idle.bytes_with_lent = idle_bytes_;
    idle.system_bytes = idle_bytes_ + idle_.size() * strata::kSystemStepBytes;
    return idle;
  }
  std::size_t GiveBackAll() noexcept override {
    strata::RecordSlab::List leaving;
    {
      const std::lock_guard<strata::SpinLock> guard(lock_);
      std::swap(leaving, idle_);
      idle_bytes_ = 0;
    }
    if (leaving.empty()) return 0;
    const bool is_done = WaitForWork();
    std::size_t bytes = 0;
    while (Block* block = leaving.Pop()) {
      strata::SetFlags(*block, strata::kBlockLive);
      bytes += GiveToPool(block->allocation(), is_done);
    }
    return bytes;
  }

  const std::size_t unit_bytes_;
  mutable strata::SpinLock lock_;
  // Guarded by lock_.
  strata::RecordSlab::List idle_;
  std::size_t idle_bytes_ = 0;
  strata::UseCounts uses_;
};

std::shared_ptr<strata::Allocator> MakeSameSize(
    std::shared_ptr<strata::ChunkPool> pool,
    std::shared_ptr<strata::ChainStream> stream,
    const strata::StrategyOptions& options) {
  const auto unit = options.registered.Get<std::uint64_t>("unit");
  if (!strata::IsPowerOfTwo(unit) || unit < kUnitBytes) {
    throw std::invalid_argument("same_size_unit: not a power of two from 256");
  }
  return std::make_shared<SameSizeStrategy>(std::move(pool), std::move(stream),
                                            unit);
}

STRATA_REGISTER_STRATEGY("same_size", 100, &MakeSameSize,
                         {"unit", "Bytes", "256", "Unit of all sizes."});

}  // namespace
