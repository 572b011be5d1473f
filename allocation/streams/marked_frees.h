#ifndef STRATA_ALLOCATION_STREAMS_MARKED_FREES_H_
#define STRATA_ALLOCATION_STREAMS_MARKED_FREES_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// The marked blocks of a place that were freed.
//
// Model: the free notes a tick on the timeline of every stream that marked the
//   block. The block waits in the queue of each stream. When all of these ticks
//   are done, it is freed to its chain. All memory for the wait was allocated
//   with the marks, so a free allocates nothing.
// Threads: any thread. No device call, and no call of a layer below, with the
//   lock held.
// Cost: a free is O(streams of the block). It makes no device call except to
//   record an event per stream, for a block of 1 MiB or more, and once per 64
//   smaller blocks or 1 MiB of them. A drain queries once each stream with
//   deferred blocks. If no event covers the newest free, it queries the stream,
//   and records an event only if the stream is busy. Otherwise it queries the
//   oldest event. Each event that has completed adds one query. O(1) per block
//   that is ready.
// Source: cuda_semantics.md §5.2 M4; paddle.md §5 A2, A3, B3.
class MarkedFrees final : public DeferredFrees::Source {
 public:
  struct MarkedBlock;  // an allocation with the marks of other streams
  struct Mark;         // the use of a marked block by one stream
  struct Queue;        // the deferred blocks that wait for one stream

  // `frees` holds this object as a source, and must outlive it.
  explicit MarkedFrees(DeferredFrees& frees);
  ~MarkedFrees() override;

  // Errors: std::bad_alloc.
  std::shared_ptr<Queue> QueueOf(
      const std::shared_ptr<StreamTimeline>& timeline);

  // Frees or defers a block. `marked` must have marks and `below`.
  void Free(std::unique_ptr<MarkedBlock> marked) noexcept;
  // Makes `stream` wait on the device for the work that deferred blocks of
  // `below` wait for. `stream` uses the memory of `below`. Frees the blocks
  // that then need no more wait, and returns their bytes. Changes nothing if a
  // capture or the device does not permit it.
  std::size_t FreeBehind(const Allocator& below, Device& device,
                         const Stream& stream) noexcept;

  std::size_t Drain() noexcept override;
  std::size_t Await() noexcept override;
  std::size_t FreeUnproven() noexcept override;
  Deferral deferred() const noexcept override {
    return {blocks_.load(), bytes_.load()};
  }
  bool IsOver() const noexcept override { return false; }
  // True if it is time to Drain(), because some programs never exhaust their
  // memory. Call it after each Free().
  bool IsDrainDue() noexcept {
    // As often as a stream records an event by itself, so that no additional
    // event is needed.
    return ++all_frees_ % kFreesPerDrain == 0 &&
           blocks_.load() >= kFreesPerDrain;
  }

 private:
  static constexpr std::size_t kFreesPerDrain = StreamTimeline::kBatch;

  using Tick = StreamTimeline::Tick;

  Tick LastTick(const Queue& queue, const Allocator* below) const noexcept;
  // Removes the marks up to `tick` from `queue`; with `below`, only those of
  // its blocks. Frees the blocks without another mark; returns their bytes.
  std::size_t Pass(Queue& queue, Tick tick, const Allocator* below) noexcept;
  std::size_t FreeAll(MarkedBlock* ready) noexcept;
  static void Link(Mark& mark) noexcept;
  static void Unlink(Mark& mark) noexcept;

  DeferredFrees& frees_;
  std::atomic<std::size_t> blocks_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> all_frees_{0};  // number of IsDrainDue calls
  std::mutex queues_mutex_;
  // One per stream. Queues of streams that ended are removed later. Guarded by
  // queues_mutex_.
  std::vector<std::shared_ptr<Queue>> queues_;
  mutable SpinLock lock_;  // guards the contents of the queues
};

// The deferred blocks that wait for one stream, in the order of their ticks.
struct MarkedFrees::Queue {
  explicit Queue(std::shared_ptr<StreamTimeline> of)
      : timeline(std::move(of)) {}

  const std::shared_ptr<StreamTimeline> timeline;
  Mark* first = nullptr;  // guarded by the lock of MarkedFrees
  Mark* last = nullptr;   // guarded by the lock of MarkedFrees
};

// The use of a marked block by one stream. While the block is deferred, it is a
// link of the stream's queue.
struct MarkedFrees::Mark {
  Stream stream;  // uses the block
  std::shared_ptr<Queue> queue;
  // Tick of `stream` after which the stream no longer uses the block; 0: the
  // tick of the free, which is not yet noted.
  StreamTimeline::Tick tick = 0;
  std::unique_ptr<Mark> next;  // next mark of the same block

  // Valid while the block is deferred, as are `previous` and `following`.
  MarkedBlock* marked = nullptr;
  Mark* previous = nullptr;  // in the queue
  Mark* following = nullptr;
};

// An allocation with the marks of other streams. When no mark is in a queue,
// the block is freed to `below`; a capture may postpone the free.
struct MarkedFrees::MarkedBlock final : CaptureGate::Postponable {
  Block* block = nullptr;
  std::unique_ptr<Mark> marks;
  std::shared_ptr<Allocator> below;  // receives the block; set when deferred
  std::size_t waits = 0;             // marks still in a queue
  MarkedBlock* next = nullptr;       // in the list of blocks ready to free

  // Returns the mark of `stream`; null if there is none.
  Mark* Find(const Stream& stream) const noexcept;
  std::unique_ptr<Mark> Remove(const Stream& stream) noexcept;

 private:
  void End() noexcept override;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_MARKED_FREES_H_
