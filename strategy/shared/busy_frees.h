#ifndef STRATA_STRATEGY_SHARED_BUSY_FREES_H_
#define STRATA_STRATEGY_SHARED_BUSY_FREES_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>

#include "strata/allocation/allocator.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/shared/shared_order.h"

namespace strata {

// Blocks of a shared strategy that one stream has freed and may still use. They
// are a part of the place's deferred frees.
//
// Model: for the strategy, such a block is still in use. The stream itself may
//   take it back at once, because it runs its work in order. The strategy gets
//   the block when the work before the free is done. Blocks are linked through
//   their records, by size class, so a free needs no memory.
//   A request takes the smallest block that fits; of equal blocks the one freed
//   last, so that older ones become free for all streams sooner. A fit is
//   refused if it wastes more than an eighth of the request, and the block was
//   last used for a larger request. `may_waste` accepts such a fit.
// Threads: any thread. No device call and no call of the strategy with the lock
//   held.
// Cost: a free is O(1), a request O(blocks of one size class), under one lock.
//   Each free notes a tick. 3 KiB.
// Source: DESIGN §4 (a strategy shared by place).
class BusyFrees final : public DeferredFrees::Source {
 public:
  // `frees`, of the place, has this object as a source, and outlives it. The
  // stream of `share` frees the blocks.
  BusyFrees(DeferredFrees& frees, std::shared_ptr<Allocator> strategy,
            std::shared_ptr<SharedOrder> order,
            std::shared_ptr<SharedOrder::Share> share);
  ~BusyFrees() override;

  // Defers a live block. False, and nothing has changed, if its size is out of
  // range.
  bool Add(Block* block) noexcept;
  // True if the next free should be followed by an event.
  bool IsEventDue() const noexcept { return timeline_->IsNextToClose(); }
  // A live block for a request of the stream, with `requested` set; null if
  // none fits. With `may_waste`, without the limit on waste.
  Block* Take(const Request& request, bool may_waste = false) noexcept {
    return empty() ? nullptr : TakeFit(request, may_waste);
  }
  bool empty() const noexcept {
    return count_.load(std::memory_order_acquire) == 0;
  }
  void Leave() noexcept { is_left_ = true; }

  std::size_t Drain() noexcept override;
  std::size_t Await() noexcept override;
  std::size_t FreeOrdered() noexcept override;
  std::size_t FreeUnproven() noexcept override;
  Deferral deferred() const noexcept override {
    return {count_.load(), bytes_.load()};
  }
  bool IsOver() const noexcept override { return is_left_ && empty(); }

 private:
  using Tick = StreamTimeline::Tick;

  // Blocks of similar size, the newest first: linked by Block::free_next, with
  // the tick of the free in Block::tick. `offset_units` has the last request in
  // parts of the size, because the link replaces it.
  struct Class {
    Block* newest = nullptr;
    Block* oldest = nullptr;  // undefined if there is none
  };
  struct Fit {
    Class* of = nullptr;  // null: no block
    Block* newer = nullptr;
    Block* block = nullptr;
  };

  // Four classes per power of two.
  static constexpr std::size_t kClasses = 192;
  static std::size_t ClassOf(std::size_t bytes) noexcept {
    const std::size_t size = bytes | 4;
    const auto shift = static_cast<unsigned>(std::bit_width(size)) - 3;
    return (std::size_t{shift} * 4) + ((size >> shift) & 3);
  }

  Block* TakeFit(const Request& request, bool may_waste) noexcept;
  // Hold lock_, here and below. The smallest block that serves; no waste rule.
  Fit FindFit(const Request& request) noexcept;
  static Fit FindIn(Class& of, const Request& request) noexcept;
  void Remove(const Fit& fit) noexcept;
  // Moves the blocks of `of` up to `tick` before `first`.
  Block* Cut(Class& of, Tick tick, Block* first) noexcept;
  void Count(std::ptrdiff_t blocks, std::size_t bytes) noexcept;
  // Call these without lock_.
  std::size_t FreeUpTo(Tick tick) noexcept;
  void LetGoIfEmpty() noexcept;

  DeferredFrees& frees_;
  const std::shared_ptr<Allocator> strategy_;
  const std::shared_ptr<SharedOrder> order_;
  const std::shared_ptr<SharedOrder::Share> share_;
  StreamTimeline* const timeline_;  // of the stream of share_
  // Written with lock_ held.
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> bytes_{0};
  // Whether frees_ is held. Still true for a while after the last block has
  // left, so that a stream that reuses its only block does not touch frees_.
  std::atomic<bool> holds_{false};
  std::atomic<bool> is_left_{false};
  SpinLock lock_;
  std::array<Class, kClasses> classes_;  // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_SHARED_BUSY_FREES_H_
