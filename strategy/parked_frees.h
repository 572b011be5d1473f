#ifndef STRATA_STRATEGY_PARKED_FREES_H_
#define STRATA_STRATEGY_PARKED_FREES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chain_lock.h"
#include "strata/allocation/lent_lock.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/strategy/free_index.h"

namespace strata {

// What one stream has freed of a strategy that several streams share: its own
// to use again at once, the others' when its work is done.
//
// Model: a parked block is still in use as far as the strategy knows. A request
//   of the stream takes the smallest parked block that fits, unless that wastes
//   more than the strategy's rounding would: more than an eighth, of a block
//   that was given for less. That does not count where it would fail else. If
//   the last one parked of its class of sizes is of just its size, it takes
//   that one: others are free for all sooner, and it is still in a cache (5
//   ns). The stream's own lock guards what is parked, so that a hit, which has
//   that lock, takes no second one.
// Threads: any thread. No device call and no call of the strategy with the lock
//   held.
// Cost: O(1) under the stream's lock; a tick per free, so an event per 64 frees
//   at most: a free of any size is a hit, and hits make no device call. A miss
//   asks an idle stream without an event. 67 KiB of index once something may be
//   parked, and 128 bytes for every block that can be.
// Source: DESIGN §4 (a strategy shared by place).
class ParkedFrees final : public FreeSource {
 public:
  // `frees`, of the place, has this as a source, and outlives it. `view` counts
  // the blocks that may be parked; `lock` is that of its hits.
  ParkedFrees(DeferredFrees& frees, std::shared_ptr<Allocator> strategy,
              std::shared_ptr<StreamTimeline> timeline, const Allocator& view,
              ChainLock& lock);
  ~ParkedFrees() override;

  // Makes room for at least `count` blocks more. False if the host is out of
  // memory.
  bool Reserve(std::size_t count) noexcept;
  // False, and nothing is done, if there is no room.
  bool Park(Block* block) noexcept;
  // The same without a device call, for a hit, which has its lock: false also
  // if it is time for an event.
  bool ParkHeld(Block* block) noexcept;
  // How many blocks more could be parked, at the last look.
  std::size_t room() const noexcept {
    return room_size_.load(std::memory_order_relaxed);
  }
  // A live block for a request of the stream, with `requested` set; null if
  // none fits.
  Block* Take(const Request& request) noexcept;
  // The same, whatever it wastes.
  Block* TakeAny(const Request& request) noexcept;
  // Take for a hit, which has its lock.
  Block* TakeHeld(const Request& request) noexcept;
  bool empty() const noexcept {
    return count_.load(std::memory_order_acquire) == 0;
  }
  // The stream's view goes, and its lock: nothing will be parked any more.
  void Leave() noexcept;

  std::size_t Drain() noexcept override;
  std::size_t Await() noexcept override;
  std::size_t FreeUnproven() noexcept override;
  void MakeRoom() noexcept override;
  Deferral deferred() const noexcept override;
  bool IsOver() const noexcept override { return is_left_ && empty(); }

 private:
  using Tick = StreamTimeline::Tick;
  // Behind the record that stands for a parked block in the index.
  struct Note;
  // A block that was taken for less than it may be.
  struct Misfit {
    const Block* block = nullptr;
    std::size_t given_for = 0;
  };

  static Note& NoteOf(Block* proxy);
  // The parked block.
  static Block* BlockOf(const Block* proxy) { return proxy->previous; }
  // Hold lock_, here and below.
  Block* TakeProxy() noexcept;  // null: there is no room
  void GiveProxy(Block* proxy) noexcept;
  void Link(Block* proxy, Block* block, Tick tick) noexcept;
  Block* Unlink(Block* proxy) noexcept;  // the block; gives the proxy
  Block* FindFit(const Request& request, bool may_waste) noexcept;
  Block* TakeFit(const Request& request, bool may_waste) noexcept;
  void NoteMisfit(const Block& block, std::size_t given_for) noexcept;
  // What the strategy gave the block for.
  std::size_t ForgetMisfit(const Block& block) noexcept;
  void LetGo() noexcept;  // of frees_: nothing is parked
  // Without it.
  std::size_t FreeUpTo(Tick tick) noexcept;
  void LetGoIfEmpty() noexcept;

  DeferredFrees& frees_;
  const std::shared_ptr<Allocator> strategy_;
  const std::shared_ptr<StreamTimeline> timeline_;
  // Written with lock_ held.
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> room_size_{0};
  // Whether frees_ is held: also for a while after the last block is gone, so
  // that a stream which has its only block again and again does not touch it.
  std::atomic<bool> holds_{false};
  std::atomic<bool> is_left_{false};  // written with view_mutex_ held
  std::mutex view_mutex_;  // held while the view is asked, and while it goes
  const Allocator* view_;  // null: gone; guarded by view_mutex_

  ChainLock own_lock_;
  mutable LentLock lock_{own_lock_};  // lent to the stream, as long as it is
  // All below guarded by lock_.
  std::size_t bytes_ = 0;
  // A parked block's neighbours in address order
  // are the strategy's, so a record of its own stands for it here.
  std::unique_ptr<FreeIndex> index_;  // null until there is room
  RecordList room_;                   // records, each for one block more
  // The last ones: parked again, they are what they were.
  std::array<Misfit, 16> misfits_{};
  std::size_t next_misfit_ = 0;
  std::size_t misfit_count_ = 0;
  Block* oldest_ = nullptr;
  Block* newest_ = nullptr;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_PARKED_FREES_H_
