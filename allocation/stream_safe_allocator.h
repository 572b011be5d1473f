#ifndef STRATA_ALLOCATION_STREAM_SAFE_ALLOCATOR_H_
#define STRATA_ALLOCATION_STREAM_SAFE_ALLOCATOR_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/streams/marked_frees.h"

namespace strata {

// Keeps memory from being reused while another stream may still use it.
//
// Model: freed on its own stream, a block is reusable at once. RecordStream
// only
//   marks an allocation; freeing a marked one notes the moment on every stream
//   that marked it, and defers it until all of them have passed that moment
//   (MarkedFrees). RecordUse names an earlier moment: an event of the caller.
//   A stream may be destroyed, announced, before the allocations it marked.
//   Whoever misses at the place drains what is deferred there, of all chains.
//   A strategy that keeps marks itself is asked first; this layer has those it
//   declines.
// Errors: an event that cannot be recorded keeps the block deferred; it is
// tried
//   again. A mark for which the host has no memory is a wait instead.
// Threads: any thread.
// Cost: nothing for an allocation without marks; a heap node per mark; the free
//   of a marked block may record an event. While something is deferred, a miss
//   asks each stream that it waits for. See MarkedFrees.
// Lifetime: what is deferred keeps the layers below alive, not this one.
// Source: cuda_semantics.md §5.2 M4, M7; paddle.md §3.6, without its faults §5
//   A2, A3, B3, B4; pytorch.md §2.7.
class StreamSafeAllocator final : public Decorator {
 public:
  // `frees` are those of the place. `own` is the stream of the chain. With
  // `ends_timelines`, that of a stream ends when this is told of its end; else
  // somebody else sees to that, once all chains know.
  StreamSafeAllocator(std::shared_ptr<Allocator> underlying,
                      std::shared_ptr<DeferredFrees> frees,
                      std::shared_ptr<ChainStream> own,
                      bool ends_timelines = true);
  // Every allocation has been freed.
  ~StreamSafeAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // Waits for what is deferred at the place first.
  std::size_t Release() noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;
  const char* name() const override { return "stream_safe"; }

 private:
  using Marks = std::unordered_map<const Block*, std::unique_ptr<MarkedBlock>>;

  // Whether a use in `stream` needs no mark.
  bool NeedsNone(const Block& block, Stream stream) const noexcept;
  bool HasMark(const Block& block, Stream stream) noexcept;
  // `tick` 0: what is submitted up to the free.
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

#endif  // STRATA_ALLOCATION_STREAM_SAFE_ALLOCATOR_H_
