#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ALLOCATOR_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/allocation/call_gate.h"
#include "strata/allocation/chain_lock.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/front_cache.h"
#include "strata/allocation/hit_path.h"
#include "strata/allocation/reclaimer.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/usage.h"
#include "strata/strategy/async_cache_policy.h"
#include "strata/strategy/driver_pool.h"
#include "strata/strategy/kept_bins.h"

namespace strata {

// The driver's own stream-ordered pool: requests and frees are calls of it, in
// the order of the chain's stream, but for sizes that come again.
//
// Model: memory is allocated on the chain's stream. RecordStream marks it with
//   another stream; without marks it is freed on the chain's stream, with marks
//   on a free stream that the place has for that set of streams, behind all of
//   them. Marks cost no wait on the host; those of other devices' streams
//   are left to the layer above. What a stream used that captures waits until
//   it does not, and no capture begins while memory is freed; what others free
//   on a thread's own stream waits for that thread, or for the device. Before
//   an allocation, a stream waits for the free streams once what is in use and
//   what is freed but pending exceed a ratio of the device. The limit bounds
//   what is in use before the driver is asked, and, by the driver, what an own
//   pool reserves. Release and exhaustion trim the pool. Memory that the driver
//   refuses to free is kept and freed later, after a wait for the device. Freed
//   blocks without marks, of sizes that come again, are kept in a FrontCache
//   for the same stream, as the driver would keep them. They stay claimed, and
//   are freed in the stream before a request is refused, or waits for what is
//   pending; when the place runs short, and on Release; when the stream goes;
//   and when they are more than the policy allows of what this chain has of the
//   driver, as what that reserves cannot be seen without a call. Nor can its
//   growth, so they are freed before a request of a step of the system or more
//   that the chain's own idle memory may not serve: the most that it had since
//   memory was last given back, without what it has now. While a capture is
//   announced nobody gets them, and another stream's shortage does not reach
//   them; what is freed then, or was allocated, never joins them: it may belong
//   to a graph. Without a timeline, which knows of captures, nothing is kept.
//   kNoGrowth is served from what is kept alone: a driver's pool does not say
//   what it holds ready. With bins (AsyncCachePolicy) a request gets its bin,
//   or what it asks for where that is all there is. What is kept then
//   stays while the driver grows. Before that is asked for a bin of a step of
//   the system or more, one that another stream of the place keeps changes
//   streams, if that stream has no work left.
// Threads: any thread. No lock is held during a device call.
// Cost: a hit is O(1) under one lock, without heap or device call. Otherwise a
//   driver call per request and per free; for a marked one, an event and two
//   calls per stream more. With bins, a request of a step of the system or more
//   looks at every chain of the place, without its lock, and asks the streams
//   of those that have what it needs for work, until one has none.
// Lifetime: once the chain's stream is gone, what is left is freed on the free
//   stream that stands for it.
// Source: paddle.md §3.7 without §5-B2 and B11; cuda_semantics.md §3; the cache
//   is that of hotpath.md §6.
class CudaMallocAsyncAllocator final : public Allocator,
                                       private ChunkHolder,
                                       private HitPath,
                                       private ReclaimSource {
 public:
  // `stream` is one of the device, and `driver` the pool of the place. No
  // device call.
  //
  // Errors: std::invalid_argument as AsyncCachePolicy.
  CudaMallocAsyncAllocator(std::shared_ptr<ChunkPool> pool,
                           std::shared_ptr<ChainStream> stream,
                           std::shared_ptr<DriverPool> driver,
                           const StrategyOptions& options);
  ~CudaMallocAsyncAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // Waits for the stream's work, then trims the pool of the place. Gives
  // nothing while the stream is capturing.
  std::size_t Release() noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;

  Allocator* underlying() const override { return pool_.get(); }
  const char* name() const override { return "cuda_malloc_async"; }
  std::uint32_t unserved_flags() const override {
    return kOneHandle | kLegacyIpc;
  }
  Place place() const override { return pool_->place(); }
  Stream stream() const override { return stream_->stream(); }
  std::size_t max_alignment() const override { return kAlignmentBytes; }
  std::size_t natural_alignment() const override { return kAlignmentBytes; }
  // What is reserved is the place's: see ChunkPool.
  Stats stats() const override;
  void ResetPeak() override;
  void Accept(AllocatorVisitor& visitor) const override;
  Reclaimer* reclaimer() const override { return pool_->reclaimer(); }
  HitPath* hit_path() override { return keeps_ ? this : nullptr; }

  // Bytes of freed blocks that are kept.
  std::size_t kept_bytes() const { return IdleBytes(); }
  // Whether the cache and its counters agree. For tests; O(blocks kept).
  bool IsConsistent() const;

 private:
  // What drivers promise of device memory; pools give no less
  // (cuda_semantics.md H2).
  static constexpr std::size_t kAlignmentBytes = Block::kOffsetUnitBytes;

  // The other streams that use an allocation.
  struct Mark {
    Block* block = nullptr;
    // One that is gone has a stand-in here.
    std::vector<Stream> streams;

    bool IsOf(const Stream& stream) const {
      return std::find(streams.begin(), streams.end(), stream) != streams.end();
    }
  };
  using Marks = std::unordered_map<const Block*, Mark>;

  // Whose a block is: Block::pool.
  enum Origin : std::uint8_t {
    kOwn,
    kMaybeOfGraph,  // allocated while a capture was announced
  };

  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;

  // ReclaimSource: what is kept, for whoever at the place runs short.
  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return IdleBytes();
  }
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;

  // ChunkHolder: no chunks, but what is kept, and a part in giving memory back.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  bool IdleIsDone() noexcept override { return true; }
  std::size_t GiveBack(const GiveBackRequest& request) noexcept override;
  void StreamEnds(Stream stream) noexcept override;
  Allocation* Lend(const LoanRequest& request) noexcept override;

  // GiveBackRequest::Kind. Makes freed memory ready to be trimmed; returns the
  // bytes that were kept.
  std::size_t GiveBackAll() noexcept;
  // Frees the cached blocks, so that DriverPool can give them back.
  std::size_t GiveBackDone() noexcept;
  void GiveUpIdle() noexcept;
  // Bytes in the cache.
  std::size_t IdleBytes() const noexcept;

  Failure Refusal(Failure::Reason reason, const Request& request,
                  const char* detail) noexcept;
  Allocation* Refuse(const Failure& why, Failure& failure) noexcept;
  // On the chain's stream, which is there.
  Allocation* AllocateOn(const Request& request, std::size_t size,
                         Failure& failure) noexcept;
  // What another stream keeps; null without it.
  Allocation* FetchKept(const Request& request, std::size_t size) noexcept;
  // Aligned; none if there is no such size.
  std::optional<std::size_t> SizeFor(std::size_t requested) const noexcept;
  // Claims and allocates; 0, and nothing is claimed, if that is refused.
  DevicePtr AskDriver(std::size_t size, Failure& why) noexcept;
  void Throttle() noexcept;
  bool IsCapturing() noexcept;
  // Not for another thread's own stream: then memory of it waits for that
  // thread, or is freed after the device.
  bool CanNameStream() const noexcept {
    return stream_->retired() || stream_->device()->CanName(stream());
  }
  bool FreeWith(const Block& block, const Mark* mark) noexcept;
  // Whether the chain's stream was destroyed and its end not announced.
  bool IsLost() const noexcept;
  // Waits for the device, if nobody has since. False beside a capture.
  bool AwaitLost() noexcept;
  // Whether captures forbid to touch a stream of the block. While one is
  // announced.
  bool IsForbidden(const Mark* mark, bool has_stream) const noexcept;
  // Gives it to the driver, or keeps it if that refuses. False, and nothing has
  // changed, if it has to wait for captures, or for the stream's own thread.
  // With `may_wait` not for its thread, but perhaps, on the host, for the
  // device.
  bool TryFree(Block* block, const Mark* mark, bool may_wait = false) noexcept;
  // `marked`: its entry of marks_; empty: there was none.
  void FreeOrWait(Block* block, Marks::node_type marked) noexcept;
  void EndMarkedFree() noexcept;
  void Wait(Block* block, Marks::node_type marked) noexcept;
  // Marks of `stream`, which is about to go, become marks of a stand-in. With
  // `is_user` there is one even without such marks.
  void Replace(const Stream& stream, bool is_user) noexcept;
  // The driver did not take it, and its marks are dropped.
  void Keep(Block* block) noexcept;
  // Those that waited, where that is over. `may_wait` as for TryFree.
  void FreeWaiting(bool may_wait = false) noexcept;
  // Has the end of the stream told. Errors: std::bad_alloc.
  void HeedEnd(const Stream& stream);
  static bool IsNamed(const Marks& marks, const Stream& stream);
  // Whether a mark names it, or a free that may know it is in flight.
  bool IsKnown(const Stream& stream) noexcept;
  // Gives the record of freed memory back.
  void Finish(Block* block) noexcept;
  void FreeKept() noexcept;

  // The cache: cuda_malloc_async_cache.cc.
  bool IsAnnounced() const noexcept { return gate_ != nullptr && gate_->any(); }
  // Of the pool, in use or in the cache. Hold lock_.
  std::size_t HeldBytes() const noexcept {
    return uses_.in_use_bytes() - graph_bytes_ + cache_.bytes();
  }
  // Whether the driver may have to grow for it though something is kept.
  bool IsLikelyGrowth(std::size_t size) const noexcept;
  // As what is in use has changed. Whether Trim has something to do. Hold
  // lock_.
  bool LimitCache() noexcept;
  // Frees what is more than may be kept, or of no use any more.
  void Trim() noexcept;
  // Of those that were taken out; linked by free_next. Hold lock_.
  void CountOut(const Block* taken) noexcept;
  // Takes everything out; linked by free_next.
  Block* TakeAll() noexcept;
  // Takes one that serves `bytes`, of which `requested` were asked for; null
  // without one. Hold lock_.
  Block* TakeKept(std::size_t bytes, std::size_t requested) noexcept;
  // The same where there are bins; out of line, for those who have none.
  [[gnu::noinline]] Block* TakeBin(std::size_t bytes,
                                   std::size_t requested) noexcept;
  [[gnu::noinline]] void NoteKept(std::size_t bytes) noexcept;
  // A block is in use. Hold lock_.
  void Start(Block* block, std::size_t requested) noexcept {
    block->requested = requested;
    uses_.Count(*block);
  }
  // Frees blocks that were taken out, in the stream; returns their bytes.
  std::size_t FreeCached(Block* cached) noexcept;
  // Frees all that is kept; returns the bytes. Nothing while a capture is
  // announced: the stream may be next.
  std::size_t FlushCache() noexcept;
  // The same for a request on the stream: nothing while that is capturing.
  std::size_t FlushForRequest() noexcept;
  // The same for ever: what the stream would capture waits.
  void CloseCache() noexcept;

  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
  const std::shared_ptr<DriverPool> driver_;
  const std::shared_ptr<const CaptureGate> gate_;  // null: none is known
  const AsyncCachePolicy policy_;
  const bool keeps_;  // blocks in the cache
  // Calls that use the chain's stream; closed when it is about to go.
  CallGate stream_gate_;
  // Of what was freed aside, as much as is done, or this stream has waited for.
  std::atomic<std::uint64_t> waited_bytes_{0};

  std::mutex marks_mutex_;
  // Guarded by marks_mutex_: of live allocations, and of freed ones that wait,
  // with a mark or without.
  Marks marks_;
  Marks waiting_marks_;
  // Of the chain's stream, once that is gone; without uid if it was waited for.
  // Guarded by marks_mutex_.
  Stream stand_in_;
  std::atomic<std::size_t> waiting_{0};        // of those that wait
  std::atomic<std::size_t> waiting_bytes_{0};  // of them
  // The uid of the stream that was heeded last; 0: none.
  std::atomic<std::uint64_t> heeded_{0};
  // Of marked blocks, in flight; begin under marks_mutex_.
  std::atomic<int> marked_frees_{0};

  ChainLock& lock_{hit_state()->lock};
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
  RecordList kept_;  // freed, but not yet by the driver
  FrontCache cache_;
  KeptBins kept_bins_;
  bool is_closed_ = false;       // the cache, for ever
  std::size_t graph_bytes_ = 0;  // in use, but perhaps of graphs
  // Most of HeldBytes since memory was last given back.
  std::size_t most_held_bytes_ = 0;

  Reclaimer::Registration registration_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
