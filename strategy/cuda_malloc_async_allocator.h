#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/call_gate.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/usage.h"
#include "strata/platform/spin_lock.h"
#include "strata/strategy/driver_pool.h"

namespace strata {

// The driver's own stream-ordered pool: every request and every free is a call
// of it, in the order of the chain's stream.
//
// Model: memory is allocated on the chain's stream. RecordStream marks it with
//   another stream; without marks it is freed on the chain's stream, with marks
//   on a free stream that the place has beside all others, behind everybody who
//   uses it. Marks cost no wait on the host; those of other devices' streams
//   are left to the layer above. Before an allocation, a stream waits for the
//   free stream once what is in use and what is freed but pending exceed a
//   ratio of the device. The limit bounds what is in use before the driver is
//   asked, and, by the driver, what an own pool reserves. Release and
//   exhaustion trim the pool. Memory that the driver refuses to free is kept
//   and freed later, after a wait for the device. kNoGrowth is never served: a
//   driver's pool does not say what it holds ready.
// Threads: any thread. No lock is held during a device call.
// Cost: a driver call per request and per free; for a marked one, an event and
//   two calls per stream more.
// Lifetime: once the chain's stream is gone, what is left is freed on the free
//   stream.
// Source: paddle.md §3.7 without §5-B2 and B11; cuda_semantics.md §3.
class CudaMallocAsyncAllocator final : public Allocator, private ChunkHolder {
 public:
  // `stream` is one of the device, and `driver` the pool of the place. No
  // device call.
  CudaMallocAsyncAllocator(std::shared_ptr<ChunkPool> pool,
                           std::shared_ptr<ChainStream> stream,
                           std::shared_ptr<DriverPool> driver);
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
  Place place() const override { return pool_->place(); }
  Stream stream() const override { return stream_->stream(); }
  std::size_t max_alignment() const override { return kAlignmentBytes; }
  std::size_t natural_alignment() const override { return kAlignmentBytes; }
  // What is reserved is the place's: see ChunkPool.
  Stats stats() const override;
  void ResetPeak() override;
  void Accept(AllocatorVisitor& visitor) const override;
  Reclaimer* reclaimer() const override { return pool_->reclaimer(); }
  HitPath* hit_path() override { return nullptr; }

 private:
  // What drivers promise of device memory; pools give no less
  // (cuda_semantics.md H2).
  static constexpr std::size_t kAlignmentBytes = Block::kOffsetUnitBytes;

  // The other streams that use an allocation.
  struct Mark {
    Block* block = nullptr;
    std::vector<Stream> streams;
    // The free stream is behind one that is gone, so free there.
    bool is_aside = false;
    // Freed, while a stream of the mark captured.
    bool is_waiting = false;
  };
  using Marks = std::unordered_map<const Block*, Mark>;

  // ChunkHolder: no chunks, but a part in giving memory back.
  Stream holder_stream() const noexcept override { return stream(); }
  std::size_t IdleBytes() const noexcept override { return 0; }
  std::size_t IdleSystemBytes() const noexcept override { return 0; }
  std::size_t SmallestIdle(std::size_t /*bytes*/) const noexcept override {
    return 0;
  }
  std::size_t LargestIdle() const noexcept override { return 0; }
  bool IdleIsDone() noexcept override { return true; }
  std::size_t GiveBack(std::size_t /*bytes*/) noexcept override { return 0; }
  std::size_t OfferIdle(std::size_t /*bytes*/) noexcept override { return 0; }
  // Makes what is freed ready to be trimmed.
  std::size_t GiveBackAll() noexcept override;

  Failure Refusal(Failure::Reason reason, const Request& request,
                  const char* detail) noexcept;
  Allocation* Refuse(const Failure& why, Failure& failure) noexcept;
  // On the chain's stream, which is there.
  Allocation* AllocateOn(const Request& request, std::size_t size,
                         Failure& failure) noexcept;
  void Throttle() noexcept;
  bool IsCapturing() noexcept;
  bool FreeWith(const Block& block, const Mark* mark) noexcept;
  // Whether a capture forbids to order anything behind a stream of the mark.
  bool IsForbidden(const Mark& mark) noexcept;
  void FreeMarked(Block* block, Marks::node_type marked) noexcept;
  void FreeOrKeep(Block* block, const Mark* mark) noexcept;
  // The driver did not take it, and its marks are dropped.
  void Keep(Block* block) noexcept;
  // Those that waited for captures, where these are over.
  void FreeWaiting() noexcept;
  // Gives the record of freed memory back.
  void Finish(Block* block) noexcept;
  void FreeKept() noexcept;

  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
  const std::shared_ptr<DriverPool> driver_;
  // Calls that use the chain's stream; closed when it is about to go.
  CallGate stream_gate_;
  // What was freed aside when this stream last waited for it.
  std::atomic<std::uint64_t> waited_bytes_{0};

  std::mutex marks_mutex_;
  // Of live allocations, and of freed ones that wait for captures; guarded by
  // marks_mutex_.
  Marks marks_;
  std::atomic<std::size_t> waiting_{0};  // of those that wait
  std::atomic<int> marked_frees_{0};     // of marked blocks, in flight

  mutable SpinLock lock_;
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
  RecordList kept_;  // freed, but not yet by the driver
};

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
