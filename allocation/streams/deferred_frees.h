#ifndef STRATA_ALLOCATION_STREAMS_DEFERRED_FREES_H_
#define STRATA_ALLOCATION_STREAMS_DEFERRED_FREES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/reclaimer.h"
#include "strata/allocation/streams/timeline_table.h"

namespace strata {

class DeferredFrees;
class MarkedFrees;

// How much is deferred. Bytes.
struct Deferral {
  std::size_t blocks = 0;
  std::size_t bytes = 0;
};

// Frees of one kind, kept until the streams that they wait for are done.
//
// Threads: every function from any thread, with no lock held.
class FreeSource {
 public:
  FreeSource() = default;
  FreeSource(const FreeSource&) = delete;
  FreeSource& operator=(const FreeSource&) = delete;
  virtual ~FreeSource() = default;

  // Frees what is done, after asking each stream (StreamTimeline::Refresh).
  // Never waits. Returns the bytes freed.
  virtual std::size_t Drain() noexcept = 0;
  // Waits on the host for what was deferred before the call, then frees it.
  virtual std::size_t Await() noexcept = 0;
  // Frees the rest, though nobody knows whether it is done.
  virtual std::size_t FreeUnproven() noexcept = 0;
  // Makes room for frees that might have to be deferred: a capture was
  // announced.
  virtual void MakeRoom() noexcept {}
  virtual Deferral deferred() const noexcept = 0;
  // Nothing is deferred, nor ever will be.
  virtual bool IsOver() const noexcept = 0;
};

// What was freed at one place but may still be used by work in streams.
//
// Model: sources defer; whoever misses at the place has them all drained, on
//   whatever stream: that asks each stream that something waits for, records
//   an event only in those that are busy, and frees what is done. Two rungs of
//   the place's ladder do the same: one drains, a later one waits on the host.
//   Once the facade has let go, each free drains, and the end waits for the
//   rest.
// Errors: what cannot be proven done stays deferred and is tried again; only at
//   the End, when nobody can be given the memory any more, it goes all the same
//   and is logged.
// Threads: any thread; no lock is held while a source works.
// Cost: one load while nothing is deferred, and for a while after that at most
//   a look at each source.
// Lifetime: sources are shared. Call Close where what is deferred might keep
//   this object alive.
// Source: DESIGN §5; paddle.md §5 B3 (only the same stream's next allocation
//   drained, with a query per block).
class DeferredFrees {
 public:
  // `reclaimer` is the ladder of the place; null: there is none. With
  // `waits_on_device`, a stream that would have to grow is made to wait, on the
  // device, for what other streams still do with the memory it has freed.
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
  void AddSource(std::shared_ptr<FreeSource> source);

  // Whether anything may be deferred.
  bool any() const noexcept { return holds_.load() != 0; }
  // Of all sources. Takes the locks that Drain leaves alone.
  Deferral deferred() const noexcept;

  // As those of FreeSource, of all sources.
  std::size_t Drain() noexcept;
  std::size_t Await() noexcept;
  void MakeRoom() noexcept;
  // Nobody allocates here any more: waits for all that is deferred. What is
  // deferred later drains with each free; what then is left waits for the next
  // Close, or the end.
  void Close() noexcept;
  // All chains are gone, so nobody can be given what is freed here: the same,
  // and what cannot be waited for goes to the system all the same.
  void End() noexcept;

  // Call after a free: once closed, that is who drains; before, where nobody
  // misses for long, now and then.
  void AfterFree() noexcept;
  bool is_closed() const noexcept {
    return closed_.load(std::memory_order_acquire);
  }

  // For sources: held while blocks are neither deferred nor free below, so that
  // a request that finds nothing knows of them.
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

  // For sources: something is deferred from here until LetGo, which comes as
  // often: so that who finds nothing deferred finds it below.
  void Hold() noexcept { ++holds_; }
  void LetGo() noexcept { --holds_; }
  // `below` gets a block that was deferred.
  void FreeNow(Block& block, Allocator& below) noexcept;
  // The same, but it gets the block when captures are over.
  void PassOn(const Block& block) const noexcept { TellObserver(block); }

 private:
  class Step;

  void TellObserver(const Block& block) const noexcept;
  std::size_t Ask(std::size_t (FreeSource::*what)() noexcept) noexcept;

  const std::shared_ptr<TimelineTable> timelines_;
  const std::shared_ptr<Reclaimer> reclaimer_;
  const bool waits_on_device_;
  std::atomic<std::size_t> holds_{0};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<FreeSource>> sources_;  // guarded by mutex_
  std::shared_ptr<MarkedFrees> marked_;
  std::unique_ptr<ReclaimSource> drain_step_;
  std::unique_ptr<ReclaimSource> await_step_;
  std::array<Reclaimer::Registration, 2> registrations_;
};

// What `below` holds ready for `request`, without growing; null: nothing, or it
// cannot say.
Allocation* TryHeld(Allocator& below, const Request& request) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_DEFERRED_FREES_H_
