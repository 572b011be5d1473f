#ifndef STRATA_ALLOCATION_STREAMS_DEFERRED_FREES_H_
#define STRATA_ALLOCATION_STREAMS_DEFERRED_FREES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/streams/timeline_table.h"

namespace strata {

class MarkedFrees;

struct Deferral {
  std::size_t blocks = 0;
  std::size_t bytes = 0;
};

// Blocks of one place that were freed while work in streams may still use them.
//
// Model: sources defer the blocks. A request of any stream that finds no memory
//   drains all sources of the place. A drain queries each stream with waiting
//   blocks, records an event only in busy streams, and frees the blocks that
//   need no more wait. Two steps of the Reclaimer do so too: one drains, and a
//   later one waits on the host. After Close(), each free drains, and End()
//   waits for the rest.
// Errors: a block stays deferred until its work is proven complete; the next
//   drain tries again. Only End(), after the last allocation, frees unproven
//   blocks and logs it.
// Threads: any thread; no lock is held while a source works.
// Cost: one load while no block is deferred. For some time after that, at most
//   one check of each source.
// Lifetime: sources are shared. Call Close() if a deferred block might keep
//   this object alive.
// Source: DESIGN §5; paddle.md §5 B3 (only the same stream's next allocation
//   drained, with a query per block).
class DeferredFrees {
 public:
  class Source;  // deferred frees of one kind

  // `reclaimer` belongs to the place; null: none. With `waits_on_device`, a
  // stream that would grow waits on the device instead, for the uses by other
  // streams of memory that it has freed.
  DeferredFrees(std::shared_ptr<TimelineTable> timelines,
                std::shared_ptr<Reclaimer> reclaimer,
                bool waits_on_device = false);
  DeferredFrees(const DeferredFrees&) = delete;
  DeferredFrees& operator=(const DeferredFrees&) = delete;
  ~DeferredFrees();

  TimelineTable& timelines() const { return *timelines_; }
  MarkedFrees& marked() const { return *marked_; }
  bool waits_on_device() const { return waits_on_device_; }

  // Errors: std::bad_alloc.
  void AddSource(std::shared_ptr<Source> source);

  // True if blocks may be deferred.
  bool any() const noexcept { return holds_.load() != 0; }
  // Sums over all sources. Acquires the locks that Drain() avoids.
  Deferral deferred() const noexcept;

  std::size_t Drain() noexcept;
  std::size_t Await() noexcept;
  std::size_t FreeOrdered() noexcept;
  // Waits for all deferred blocks. Each later free drains; blocks that remain
  // wait for the next Close() or for End().
  void Close() noexcept;
  // Close() after all chains are destroyed. Blocks that cannot be waited for go
  // to the system anyway.
  void End() noexcept;

  // Call it after each free. After Close() it drains. Before Close() it drains
  // from time to time, because some programs rarely exhaust their memory.
  void AfterFree() noexcept;
  bool is_closed() const noexcept {
    return closed_.load(std::memory_order_acquire);
  }

  // For sources: held while blocks are neither deferred nor free below, so that
  // a request that finds no memory knows of them.
  class Giving {
   public:
    explicit Giving(const DeferredFrees& frees);
    Giving(const Giving&) = delete;
    Giving& operator=(const Giving&) = delete;
    ~Giving();

    void Gave() noexcept { gave_ = true; }

   private:
    Reclaimer* const reclaimer_;
    bool gave_ = false;
  };

  // For sources: call Hold() before a block is deferred, and LetGo() after it
  // is free in the layer below. So a thread that sees no deferred block finds
  // it below.
  void Hold() noexcept { ++holds_; }
  void LetGo() noexcept { --holds_; }
  // Frees a deferred block to `below`.
  void FreeNow(Block& block, Allocator& below) noexcept;
  // Call it for a deferred block that `below` receives after captures are over.
  void PassOn(const Block& block) const noexcept;

 private:
  std::size_t Ask(std::size_t (Source::*what)() noexcept) noexcept;

  const std::shared_ptr<TimelineTable> timelines_;
  const std::shared_ptr<Reclaimer> reclaimer_;
  const bool waits_on_device_;
  std::atomic<std::size_t> holds_{0};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Source>> sources_;  // guarded by mutex_
  std::shared_ptr<MarkedFrees> marked_;
  Reclaimer::Call drain_step_{
      [this](std::size_t /*bytes*/) { return Drain(); }};
  Reclaimer::Call await_step_{
      [this](std::size_t /*bytes*/) { return Await(); }};
  std::array<Reclaimer::Registration, 2> registrations_;
};

// Deferred frees of one kind. They wait until the work of streams completes.
//
// Threads: any thread may call any function, with no lock held.
class DeferredFrees::Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Queries each stream (StreamTimeline::Refresh) and frees the blocks that
  // need no more wait. Never waits. Returns the bytes freed.
  virtual std::size_t Drain() noexcept = 0;
  // Waits on the host for the blocks deferred before the call, then frees them.
  virtual std::size_t Await() noexcept = 0;
  // Frees the other blocks, though their work is not proven complete.
  virtual std::size_t FreeUnproven() noexcept = 0;
  // Frees the blocks that the device can wait for. The layer below makes their
  // next user wait. Returns the bytes freed.
  virtual std::size_t FreeOrdered() noexcept { return 0; }
  virtual Deferral deferred() const noexcept = 0;
  // True if no block is deferred, now or later.
  virtual bool IsOver() const noexcept = 0;
};

// Returns memory that `below` can allocate for `request` without growth; null
// if there is none or if that is unknown.
Allocation* TryHeld(Allocator& below, const Request& request) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_DEFERRED_FREES_H_
