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
#include "strata/platform/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

struct MarkedBlock;

// The deferred blocks that wait for one stream, in the order of their ticks.
struct StreamMarkQueue {
  explicit StreamMarkQueue(std::shared_ptr<StreamTimeline> of)
      : timeline(std::move(of)) {}

  const std::shared_ptr<StreamTimeline> timeline;
  struct StreamMark* first = nullptr;  // guarded by the lock of MarkedFrees
  struct StreamMark* last = nullptr;   // likewise
};

// One stream's use of a marked block. While the block is deferred it is a link
// of the stream's queue.
struct StreamMark {
  Stream stream;  // that uses the block
  std::shared_ptr<StreamMarkQueue> queue;
  // The tick that has to be done; 0: that of the free, which is still to come.
  StreamTimeline::Tick tick = 0;
  std::unique_ptr<StreamMark> next;  // of the same block

  MarkedBlock* marked = nullptr;   // while deferred, as the rest
  StreamMark* previous = nullptr;  // in the queue
  StreamMark* following = nullptr;
};

// An allocation that other streams use, with their marks. Once no mark is in a
// queue, the block is freed to `below`; a capture may postpone the free.
struct MarkedBlock final : Postponable {
  Block* block = nullptr;
  std::unique_ptr<StreamMark> marks;
  std::shared_ptr<Allocator> below;  // gets the block; set when deferred
  std::size_t waits = 0;             // marks still in a queue
  MarkedBlock* next = nullptr;       // among those that are ready

  // Null if there is none.
  StreamMark* Find(const Stream& stream) const noexcept;
  std::unique_ptr<StreamMark> Remove(const Stream& stream) noexcept;

 private:
  void End() noexcept override;
};

// The marked blocks of a place that were freed.
//
// Model: at the free, the moment is noted on the timeline of every stream that
//   marked the block. The block waits in the queue of each, and is freed to the
//   chain it came from once all of them have passed. What it needs was made
//   when it was marked, so that a free allocates nothing.
// Threads: any thread. No device call, and no call of a layer below, with the
//   lock held.
// Cost: a free is O(streams of the block), without a device call but for one
//   event per stream: for a block of 1 MiB or more, and for 64 smaller ones or
//   1 MiB of them. Draining asks each stream that has something deferred once:
//   the stream itself if no event covers the newest free, and records an event
//   only if the stream is busy; else the oldest event. Each event that has
//   passed is one more question. O(1) per block that is ready.
// Source: cuda_semantics.md §5.2 M4; paddle.md §5 A2, A3, B3.
class MarkedFrees final : public FreeSource {
 public:
  using Queue = StreamMarkQueue;

  // `frees` has this as a source, and outlives it.
  explicit MarkedFrees(DeferredFrees& frees);
  ~MarkedFrees() override;

  // The queue of the stream of `timeline`. No device call.
  //
  // Errors: std::bad_alloc.
  std::shared_ptr<Queue> QueueOf(
      const std::shared_ptr<StreamTimeline>& timeline);

  // `marked` has marks and `below`.
  void Free(std::unique_ptr<MarkedBlock> marked) noexcept;
  // For the blocks that go to `below`, whose memory `stream` uses: has `stream`
  // wait on the device for the work that the blocks wait for. Frees the blocks
  // that then wait for nothing more; returns their bytes. Nothing changes where
  // a capture or the device does not allow it.
  std::size_t FreeBehind(const Allocator& below, Device& device,
                         const Stream& stream) noexcept;

  std::size_t Drain() noexcept override;
  std::size_t Await() noexcept override;
  std::size_t FreeUnproven() noexcept override;
  Deferral deferred() const noexcept override {
    return {blocks_.load(), bytes_.load()};
  }
  bool IsOver() const noexcept override { return false; }
  // Whether it is time to Drain; to be called after each Free. Misses drain,
  // but some programs never miss.
  bool IsDrainDue() noexcept {
    // As often as a stream records an event by itself, so that it needs no
    // more.
    return ++all_frees_ % kFreesPerDrain == 0 &&
           blocks_.load() >= kFreesPerDrain;
  }

 private:
  static constexpr std::size_t kFreesPerDrain = StreamTimeline::kBatch;

  using Tick = StreamTimeline::Tick;

  Tick LastTick(const Queue& queue, const Allocator* below) const noexcept;
  // Takes the marks with ticks up to `tick` off `queue`; if `below` is not
  // null, only marks of blocks that go there. Frees the blocks without a mark
  // in a queue; returns their bytes.
  std::size_t Pass(Queue& queue, Tick tick, const Allocator* below) noexcept;
  std::size_t FreeAll(MarkedBlock* ready) noexcept;
  static void Link(StreamMark& mark) noexcept;
  static void Unlink(StreamMark& mark) noexcept;

  DeferredFrees& frees_;
  std::atomic<std::size_t> blocks_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> all_frees_{0};  // number of IsDrainDue calls
  std::mutex queues_mutex_;
  // One per stream. Queues of streams that ended leave later. Guarded by
  // queues_mutex_.
  std::vector<std::shared_ptr<Queue>> queues_;
  mutable SpinLock lock_;  // guards what is in the queues
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_MARKED_FREES_H_
