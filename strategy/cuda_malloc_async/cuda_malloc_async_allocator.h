#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_ALLOCATOR_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/reclaim/call_gate.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/strategy/cuda_malloc_async/async_cache_policy.h"
#include "strata/strategy/cuda_malloc_async/driver_pool.h"
#include "strata/strategy/pooling_strategy.h"

namespace strata {

// The driver's own stream-ordered pool. Requests and frees are driver calls in
// the order of the chain's stream, except for sizes that recur.
// docs/rules/cuda_malloc_async.md has each rule and its reason.
//
// Model: memory is allocated on the chain's stream.
//   Marks: memory that RecordStream marked is freed on a free stream, after the
//   work of all streams that used it. Marks cost no wait on the host.
//   Captures: memory used by a capturing stream is freed after the capture, and
//   no capture begins during a free. Memory of a thread's own stream that
//   another thread frees waits for the owner thread, or for the device.
//   Pressure: a stream waits for the free streams before an allocation if bytes
//   in use and pending exceed a ratio of the device. Release and exhaustion
//   trim the pool. Memory that the driver refuses to free waits for the device.
//   Cache: freed blocks without marks, of sizes that recur, stay claimed in a
//   FrontCache for the same stream. They are freed before a request is refused
//   or waits, before the driver may have to grow, when the place runs short, on
//   Release, when the stream ends, and above the limit of the policy. Memory of
//   a capture never enters the cache, and no request uses the cache while one
//   is announced. kNoGrowth is served from the cache alone.
//   Bins (AsyncCachePolicy): a request gets its bin, or its own size if the
//   memory left does not hold the bin. A request for a large bin first takes a
//   cached one of another stream of the place that has no work left.
// Threads: any thread. No lock is held during a device call.
// Cost: a hit is O(1) under one lock, without heap or device call. Otherwise
//   one driver call per request and per free; a marked free costs an event and
//   two more calls per stream. With bins, a request of kSystemStepBytes or more
//   visits every chain of the place whose lock is free. It asks the streams of
//   chains with a fitting bin for work, until one has none.
// Lifetime: after the chain's stream has ended, remaining memory is freed on
//   the free stream that stands for it.
// Source: paddle.md §3.7 without §5-B2 and B11; cuda_semantics.md §3; the
//   cache: hotpath.md §6.
class CudaMallocAsyncAllocator final : public PoolingStrategy,
                                       private HitPath,
                                       private Reclaimer::Source {
 public:
  // `stream` belongs to the device; `driver` is the pool of the place. No
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
  // Waits for the stream's work, then trims the pool of the place. Releases
  // nothing while the stream is capturing.
  std::size_t Release() noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;

  const char* name() const override { return "cuda_malloc_async"; }
  std::uint32_t unserved_flags() const override {
    return kOneHandle | kLegacyIpc;
  }
  std::size_t max_alignment() const override { return kAlignmentBytes; }
  std::size_t natural_alignment() const override { return kAlignmentBytes; }
  // The reserved bytes are those of the place: see ChunkPool.
  Stats stats() const override;
  void ResetPeak() override;
  HitPath* hit_path() override { return keeps_ ? this : nullptr; }
  // The driver knows the blocks.
  void Accept(AllocatorVisitor& visitor) const override;

  // Bytes of freed blocks in the cache.
  std::size_t kept_bytes() const { return IdleBytes(); }
  // Whether the cache and its counters agree. For tests; O(cached blocks).
  bool IsConsistent() const;

 private:
  // Alignment that drivers guarantee for device memory; pools guarantee at
  // least that (cuda_semantics.md H2).
  static constexpr std::size_t kAlignmentBytes = Block::kOffsetUnitBytes;

  // The other streams that use an allocation.
  struct Mark {
    Block* block = nullptr;
    // A stream that has ended is replaced by its stand-in.
    std::vector<Stream> streams;

    bool IsOf(const Stream& stream) const {
      return std::find(streams.begin(), streams.end(), stream) != streams.end();
    }
  };
  using Marks = std::unordered_map<const Block*, Mark>;

  // Origin of a block: Block::pool.
  enum Origin : std::uint8_t {
    kOwn,
    kMaybeOfGraph,  // allocated while a capture was announced
  };

  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;

  // Reclaimer::Source: offers the cache to other streams of the place.
  std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
    return IdleBytes();
  }
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;

  // ChunkHolder: without chunks; offers the cache, and takes part in giving
  // memory back.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  bool IdleIsDone() noexcept override { return true; }
  // GiveBackDone and GiveBackAll free the cache, so that DriverPool can return
  // its memory; GiveBackAll returns the bytes that were cached.
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;
  void StreamEnds(Stream stream) noexcept override;
  Allocation* Lend(const LoanRequest& request) noexcept override;

  void GiveUpIdle() noexcept;
  std::size_t IdleBytes() const noexcept;

  Allocation* Refuse(const Failure& why, Failure& failure) noexcept;
  // Allocates on the chain's stream, which has not ended.
  Allocation* AllocateOn(const Request& request, std::size_t size,
                         Failure& failure) noexcept;
  // A cached block of another stream; null if there is none.
  Allocation* FetchKept(const Request& request, std::size_t size) noexcept;
  // The aligned size to allocate; nullopt if there is no such size.
  std::optional<std::size_t> SizeFor(std::size_t requested) const noexcept;
  // Claims and allocates. 0 if that is refused; then nothing is claimed.
  DevicePtr AskDriver(std::size_t size, Failure& why) noexcept;
  void Throttle() noexcept;
  bool IsCapturing() noexcept;
  // Whether this thread may use the chain's stream. False for a stream of
  // another thread: its memory waits for that thread, or is freed after the
  // device.
  bool CanNameStream() const noexcept {
    return chain_stream().retired() ||
           chain_stream().device()->CanName(stream());
  }
  bool FreeWith(const Block& block, const Mark* mark) noexcept;
  // The chain's stream was destroyed without an announcement.
  bool IsLost() const noexcept;
  // Waits for the device, unless another thread did so since. False during a
  // capture.
  bool AwaitLost() noexcept;
  // Whether captures forbid to use a stream of the block. Call while a capture
  // is announced.
  bool IsForbidden(const Mark* mark, bool has_stream) const noexcept;
  // Frees the block to the driver, or records it in kept_ if the driver
  // refuses. False, and nothing has changed, if the free has to wait for
  // captures or for the stream's own thread. With `may_wait` it does not wait
  // for that thread, but perhaps for the device, on the host.
  bool TryFree(Block* block, const Mark* mark, bool may_wait = false) noexcept;
  // `marked`: the entry of the block from marks_; empty if there was none.
  void FreeOrWait(Block* block, Marks::node_type marked) noexcept;
  void EndMarkedFree() noexcept;
  void Wait(Block* block, Marks::node_type marked) noexcept;
  // Marks of `stream`, which is about to end, become marks of a stand-in. With
  // `is_user`, the stand-in is made even without such marks.
  void Replace(const Stream& stream, bool is_user) noexcept;
  // For a block that the driver did not free. Drops its marks.
  void Keep(Block* block) noexcept;
  // Frees the waiting blocks that may be freed now. `may_wait` as for TryFree.
  void FreeWaiting(bool may_wait = false) noexcept;
  // Requests a notification of the stream's end. Errors: std::bad_alloc.
  void HeedEnd(const Stream& stream);
  static bool IsNamed(const Marks& marks, const Stream& stream);
  // Whether a mark names `stream`, or a free that may use it is in flight.
  bool IsKnown(const Stream& stream) noexcept;
  void Finish(Block* block) noexcept;
  void FreeKept() noexcept;

  // The cache: cuda_malloc_async_cache.cc.
  bool IsAnnounced() const noexcept { return gate_ != nullptr && gate_->any(); }
  // Bytes of the pool, in use or in the cache. Hold lock_.
  std::size_t HeldBytes() const noexcept {
    return uses_.in_use_bytes() - graph_bytes_ + cache_.bytes();
  }
  // Whether the driver may have to grow for `size` although blocks are cached.
  bool IsLikelyGrowth(std::size_t size) const noexcept;
  // Adapts the limit of the cache to the bytes in use. True if Trim has work to
  // do. Hold lock_.
  bool LimitCache() noexcept;
  // Frees cached blocks above the limit, or of no further use.
  void Trim() noexcept;
  Block* TakeAll() noexcept;  // The whole cache, linked by free_next.
  // Takes a cached block that serves `bytes`, of which `requested` were asked
  // for; null if there is none. Hold lock_.
  Block* TakeKept(std::size_t bytes, std::size_t requested) noexcept;
  void Start(Block* block, std::size_t requested) noexcept {
    block->requested = requested;
    uses_.Count(*block);
  }
  // Frees blocks that left the cache, in the stream; returns their bytes.
  std::size_t FreeCached(Block* cached) noexcept;
  // Frees the whole cache; returns its bytes. Does nothing while a capture is
  // announced, because this stream may begin one. `for_request`, for a request
  // on the stream: does nothing only while that stream is capturing.
  std::size_t FlushCache(bool for_request = false) noexcept;
  // FlushCache, and closes the cache for ever. Memory that would become part of
  // a capture waits.
  void CloseCache() noexcept;

  const std::shared_ptr<DriverPool> driver_;
  const std::shared_ptr<const CaptureGate> gate_;  // Null: no gate is known.
  const AsyncCachePolicy policy_;
  const bool keeps_;  // Whether freed blocks are cached.
  // Counts calls that use the chain's stream; closed when the stream is about
  // to end.
  CallGate stream_gate_;
  // Bytes freed aside that are done, or that this stream has waited for.
  std::atomic<std::uint64_t> waited_bytes_{0};

  std::mutex marks_mutex_;
  // Marks of live allocations; entries, with or without a mark, of freed blocks
  // that wait. Guarded by marks_mutex_.
  Marks marks_;
  Marks waiting_marks_;
  // Stands for the chain's stream after its end; without uid if the host waited
  // for the stream. Guarded by marks_mutex_.
  Stream stand_in_;
  std::atomic<std::size_t> waiting_{0};        // Blocks that wait.
  std::atomic<std::size_t> waiting_bytes_{0};  // Bytes of the blocks that wait.
  // The uid of the stream that was heeded last; 0: none.
  std::atomic<std::uint64_t> heeded_{0};
  // Frees of marked blocks in flight. Incremented under marks_mutex_.
  std::atomic<int> marked_frees_{0};

  ChainLock& lock_{*hit_lock()};
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
  RecordSlab::List kept_;  // Freed, but not yet by the driver.
  std::atomic<std::size_t> unfreed_bytes_{0};  // of kept_
  FrontCache cache_;
  bool is_closed_ = false;       // Whether the cache is closed, for ever.
  std::size_t graph_bytes_ = 0;  // Bytes in use that may belong to graphs.
  // Peak of HeldBytes since memory was last released.
  std::size_t most_held_bytes_ = 0;

  Reclaimer::Registration registration_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
