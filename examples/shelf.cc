// A strategy from outside the library: it keeps freed pieces of memory, and
// reuses one of nearly the requested size. The program registers it, and
// selects it by its name. docs/guide/write_a_strategy.md explains each part.
//
// usage: shelf [any flag of `strata info`]

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/record_slab.h"
#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/factory_registry.h"
#include "strata/strategy/pooling_strategy.h"

namespace {

constexpr std::size_t kUnitBytes = strata::Block::kOffsetUnitBytes;
constexpr std::size_t kMostBytes = std::size_t{1} << 47;

class ShelfStrategy final : public strata::PoolingStrategy {
 public:
  ShelfStrategy(std::shared_ptr<strata::ChunkPool> below,
                std::shared_ptr<strata::ChainStream> stream)
      : PoolingStrategy(std::move(below), std::move(stream)) {
    pool().AddHolder(*this);
  }
  ~ShelfStrategy() override {
    pool().RemoveHolder(*this);
    ShelfStrategy::GiveBackAll();
  }

  strata::Allocation* TryAllocate(const strata::Request& request,
                                  strata::Failure& failure) noexcept override {
    using Reason = strata::Failure::Reason;
    // First: the next step would wrap around.
    if (request.bytes > kMostBytes) {
      return Refuse(Reason::kTooLarge, request, failure);
    }
    if (request.alignment > max_alignment()) {
      return Refuse(Reason::kBadRequest, request, failure);
    }
    const std::size_t size = strata::AlignUp(request.bytes, kUnitBytes);
    strata::Block* block = Take(size);
    if (block == nullptr) {
      if ((request.flags & strata::kNoGrowth) != 0) {
        return Refuse(Reason::kNoGrowth, request, failure);
      }
      // No lock is held: the pool may call the device.
      strata::Allocation* piece =
          pool().TryAllocate({size, max_alignment()}, failure);
      if (piece == nullptr) {
        failure.requested_bytes = request.bytes;
        ++failures_;
        return nullptr;
      }
      block = piece->block();
    }
    block->requested = request.unpadded_bytes();
    const std::lock_guard<strata::SpinLock> guard(lock_);
    uses_.Count(*block);
    return block->allocation();
  }

  void DoFree(strata::Allocation* allocation) noexcept override {
    strata::Block* block = allocation->block();
    strata::CheckLive(*block, name());
    const std::lock_guard<strata::SpinLock> guard(lock_);
    uses_.Uncount(*block);
    strata::SetFlags(*block, 0);
    idle_bytes_ += block->size;
    shelf_.Push(block);
  }

  const char* name() const override { return "shelf"; }
  // Pieces of the host are aligned to less than the layers above rely on.
  std::size_t max_alignment() const override {
    return std::max(pool().natural_alignment(), kUnitBytes);
  }
  std::size_t natural_alignment() const override { return max_alignment(); }
  strata::HitPath* hit_path() override { return nullptr; }

  strata::Stats stats() const override {
    const std::lock_guard<strata::SpinLock> guard(lock_);
    strata::Stats stats;
    uses_.FillIn(stats);
    stats.failures = failures_;
    stats.idle_bytes = idle_bytes_;
    stats.reserved_bytes = stats.in_use_bytes + idle_bytes_;
    stats.free_blocks = shelf_.size();
    stats.chunks = stats.live_allocations() + stats.free_blocks;
    return stats;
  }
  void ResetPeak() override {
    PoolingStrategy::ResetPeak();
    const std::lock_guard<strata::SpinLock> guard(lock_);
    uses_.ResetPeak();
  }

 private:
  strata::Allocation* Refuse(strata::Failure::Reason reason,
                             const strata::Request& request,
                             strata::Failure& failure) noexcept {
    failure = Refusal(reason, request);
    ++failures_;
    return nullptr;
  }
  // Returns a piece of `size` bytes to twice that; null if there is none.
  strata::Block* Take(std::size_t size) noexcept {
    const std::lock_guard<strata::SpinLock> guard(lock_);
    strata::RecordSlab::List others;
    strata::Block* found = nullptr;
    while (strata::Block* block = shelf_.Pop()) {
      const bool fits = block->size >= size && block->size / 2 <= size;
      if (found == nullptr && fits) {
        found = block;
      } else {
        others.Push(block);
      }
    }
    std::swap(shelf_, others);
    if (found == nullptr) return nullptr;
    idle_bytes_ -= found->size;
    strata::SetFlags(*found, strata::kBlockLive);
    return found;
  }

  // ChunkHolder: the place reaches the idle pieces here.
  IdleInfo Idle(std::size_t /*fit_bytes*/) const noexcept override {
    const std::lock_guard<strata::SpinLock> guard(lock_);
    IdleInfo idle;
    idle.bytes = idle.bytes_with_lent = idle_bytes_;
    idle.system_bytes = idle_bytes_ + shelf_.size() * strata::kSystemStepBytes;
    return idle;
  }
  std::size_t GiveBackAll() noexcept override {
    strata::RecordSlab::List leaving;
    {
      const std::lock_guard<strata::SpinLock> guard(lock_);
      std::swap(leaving, shelf_);
      idle_bytes_ = 0;
    }
    if (leaving.empty()) return 0;
    // The stream may still use the pieces.
    const bool is_done = WaitForWork();
    std::size_t bytes = 0;
    while (strata::Block* block = leaving.Pop()) {
      strata::SetFlags(*block, strata::kBlockLive);
      bytes += GiveToPool(block->allocation(), is_done);
    }
    return bytes;
  }

  std::atomic<std::uint64_t> failures_{0};
  mutable strata::SpinLock lock_;
  // Guarded by lock_.
  strata::RecordSlab::List shelf_;  // freed pieces
  std::size_t idle_bytes_ = 0;      // in shelf_
  strata::UseCounts uses_;          // of live blocks
};

std::shared_ptr<strata::Allocator> MakeShelf(
    std::shared_ptr<strata::ChunkPool> pool,
    std::shared_ptr<strata::ChainStream> stream,
    const strata::StrategyOptions& /*options*/) {
  return std::make_shared<ShelfStrategy>(std::move(pool), std::move(stream));
}

STRATA_REGISTER_STRATEGY("shelf", 100, &MakeShelf);

int Run(strata::Options options) {
  options.allocator_strategy = "shelf";
  strata::AllocatorFacade facade(options);
  const strata::Place gpu = strata::DevicePlace(0);
  for (std::size_t i = 0; i < 100; ++i) facade.Alloc(gpu, 1000 + i).reset();
  const std::size_t reserved = facade.GetStats(gpu).reserved_bytes;
  const std::size_t released = facade.Release(gpu);
  std::printf("100 requests: %zu bytes reserved, %zu released\n", reserved,
              released);
  return reserved != 0 && released == reserved ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (!strata::ParseCommandLine({argv + 1, argv + argc}).empty()) {
      std::fprintf(stderr, "usage: shelf [FLAGS]\n");
      return 2;
    }
    return Run(strata::OptionsFromFlags());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shelf: %s\n", error.what());
    return 1;
  }
}
