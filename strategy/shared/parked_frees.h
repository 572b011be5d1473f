#ifndef STRATA_STRATEGY_SHARED_PARKED_FREES_H_
#define STRATA_STRATEGY_SHARED_PARKED_FREES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "strata/allocation/allocator.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/lent_lock.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/strategy/blocks/free_index.h"

namespace strata {

// Blocks that one stream has freed of a strategy that several streams share.
// The stream itself may reuse them at once; other streams, when its work is
// done.
//
// Model: for the strategy, a parked block is still in use. A request of the
//   stream takes the smallest parked block that fits. A fit is refused if it
//   wastes more than an eighth of the request, and the strategy allocated the
//   block for a larger request. TakeAny() accepts such a fit; it is for
//   requests that would fail otherwise. If the block of that size class that
//   was parked last has exactly the size, the request takes that block: it is
//   still in a processor cache, and older blocks become free for all streams
//   sooner. The lock of the stream guards the parked blocks, so a hit, which
//   holds that lock, acquires no second one.
// Threads: any thread. No device call and no call of the strategy with the lock
//   held.
// Cost: O(1) under the stream's lock. Each free takes a tick, so there is at
//   most one event per 64 frees. Hits make no device call. A miss asks an idle
//   stream without an event. 67 KiB of index once something may be parked, and
//   128 bytes for every block that may be parked.
// Source: DESIGN §4 (a strategy shared by place).
class ParkedFrees final : public FreeSource {
 public:
  // `frees`, of the place, has this object as a source, and outlives it. `view`
  // counts the blocks that may be parked; `lock` is the lock of the view's
  // hits.
  ParkedFrees(DeferredFrees& frees, std::shared_ptr<Allocator> strategy,
              std::shared_ptr<StreamTimeline> timeline, const Allocator& view,
              ChainLock& lock);
  ~ParkedFrees() override;

  // Makes room for at least `count` more blocks. False if the host is out of
  // memory.
  bool Reserve(std::size_t count) noexcept;
  // False, and nothing has changed, if there is no room.
  bool Park(Block* block) noexcept;
  // Park for a hit, which holds the lock: makes no device call. False also if
  // an event is due.
  bool ParkHeld(Block* block) noexcept;
  // Number of blocks that could still be parked when it was last updated.
  std::size_t room() const noexcept {
    return room_size_.load(std::memory_order_relaxed);
  }
  // A live block for a request of the stream, with `requested` set; null if no
  // block fits.
  Block* Take(const Request& request) noexcept;
  // Take without the limit on waste.
  Block* TakeAny(const Request& request) noexcept;
  // Take for a hit, which holds the lock.
  Block* TakeHeld(const Request& request) noexcept;
  bool empty() const noexcept {
    return count_.load(std::memory_order_acquire) == 0;
  }
  // The stream's view and its lock are about to end: nothing will be parked any
  // more.
  void Leave() noexcept;

  std::size_t Drain() noexcept override;
  std::size_t Await() noexcept override;
  std::size_t FreeUnproven() noexcept override;
  void MakeRoom() noexcept override;
  Deferral deferred() const noexcept override;
  bool IsOver() const noexcept override { return is_left_ && empty(); }

 private:
  using Tick = StreamTimeline::Tick;
  // Stored after the record that stands for a parked block in the index.
  struct Note;
  // A block that TakeAny took for a request too small for it.
  struct Misfit {
    const Block* block = nullptr;
    std::size_t given_for = 0;
  };

  static Note& NoteOf(Block* proxy);
  // The parked block.
  static Block* BlockOf(const Block* proxy) { return proxy->previous; }
  // Hold lock_, here and below.
  Block* TakeProxy() noexcept;  // Null: no room.
  void GiveProxy(Block* proxy) noexcept;
  void Link(Block* proxy, Block* block, Tick tick) noexcept;
  // Returns the block and recycles `proxy`.
  Block* Unlink(Block* proxy) noexcept;
  Block* FindFit(const Request& request, bool may_waste) noexcept;
  Block* TakeFit(const Request& request, bool may_waste) noexcept;
  void NoteMisfit(const Block& block, std::size_t given_for) noexcept;
  // Bytes of the request that the strategy allocated the block for.
  std::size_t ForgetMisfit(const Block& block) noexcept;
  void LetGo() noexcept;  // Releases frees_: nothing is parked.
  // Call these without lock_.
  std::size_t FreeUpTo(Tick tick) noexcept;
  void LetGoIfEmpty() noexcept;

  DeferredFrees& frees_;
  const std::shared_ptr<Allocator> strategy_;
  const std::shared_ptr<StreamTimeline> timeline_;
  // Written with lock_ held.
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> room_size_{0};
  // Whether frees_ is held. Still true for a while after the last block has
  // left, so that a stream that reuses its only block does not touch frees_.
  std::atomic<bool> holds_{false};
  std::atomic<bool> is_left_{false};  // Written with view_mutex_ held.
  // Held during calls to the view, and while the view is destroyed.
  std::mutex view_mutex_;
  const Allocator* view_;  // Null after the view's end; guarded by view_mutex_.

  ChainLock own_lock_;
  // Lent to the stream for the stream's lifetime.
  mutable LentLock lock_{own_lock_};
  // All below guarded by lock_.
  std::size_t bytes_ = 0;
  // Free blocks by size. The strategy uses the address links of a parked block,
  // so a separate record stands for the block here.
  std::unique_ptr<FreeIndex> index_;  // Null until there is room.
  RecordList room_;                   // Records, each for one more block.
  // The latest misfits. Park() restores given_for of a misfit.
  std::array<Misfit, 16> misfits_{};
  std::size_t next_misfit_ = 0;
  std::size_t misfit_count_ = 0;
  Block* oldest_ = nullptr;
  Block* newest_ = nullptr;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_SHARED_PARKED_FREES_H_
