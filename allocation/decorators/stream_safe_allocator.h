#ifndef STRATA_ALLOCATION_DECORATORS_STREAM_SAFE_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_STREAM_SAFE_ALLOCATOR_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "strata/allocation/decorator.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/marked_frees.h"

namespace strata {

// Prevents the reuse of memory while another stream may still use it.
//
// Model: a block freed on its own stream is reusable at once. RecordStream()
//   only marks an allocation. The free of a marked block records the current
//   tick of every stream that marked it. It defers the block until all of them
//   have passed that tick (MarkedFrees). RecordUse() names an earlier moment:
//   an event of the caller. A stream may be announced and destroyed before the
//   allocations it marked. A request that finds no memory drains the deferred
//   frees of all chains of the place. A strategy that stores marks itself is
//   asked first; this layer stores the marks that it declines.
// Errors: if an event cannot be recorded, the block stays deferred, and the
//   next attempt tries again. If the host has no memory for a mark, the layer
//   waits for the use instead.
// Threads: any thread.
// Cost: none for an allocation without marks; a heap node per mark. The free of
//   a marked block may record an event. While blocks are deferred, a miss
//   queries each stream that they wait for. See MarkedFrees.
// Lifetime: deferred blocks keep the layers below alive, but not this layer.
// Source: cuda_semantics.md §5.2 M4, M7; paddle.md §3.6, without its faults §5
//   A2, A3, B3, B4; pytorch.md §2.7.
class StreamSafeAllocator final : public Decorator {
 public:
  // `frees` belongs to the place. `own` is the stream of the chain. If
  // `ends_timelines`, StreamDestroyed() also ends the timeline of the stream.
  // Otherwise the caller must end it after all chains are notified.
  StreamSafeAllocator(std::shared_ptr<Allocator> underlying,
                      std::shared_ptr<DeferredFrees> frees,
                      std::shared_ptr<ChainStream> own,
                      bool ends_timelines = true);
  // All allocations must have been freed.
  ~StreamSafeAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // First waits for the deferred frees of the place.
  std::size_t Release() noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;
  const char* name() const override { return "stream_safe"; }

 private:
  using Marks = std::unordered_map<const Block*,
                                   std::unique_ptr<MarkedFrees::MarkedBlock>>;

  // True if a use in `stream` needs no mark.
  bool NeedsNone(const Block& block, Stream stream) const noexcept;
  bool HasMark(const Block& block, Stream stream) noexcept;
  // Adds a mark. `tick` 0: the uses submitted before the free.
  //
  // Errors: std::bad_alloc.
  void Mark(Block& block, Stream stream,
            const std::shared_ptr<StreamTimeline>& timeline,
            StreamTimeline::Tick tick);

  const std::shared_ptr<DeferredFrees> frees_;
  const std::shared_ptr<ChainStream> own_;
  const bool ends_timelines_;
  std::mutex mutex_;
  Marks marks_;  // of live allocations; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_STREAM_SAFE_ALLOCATOR_H_
