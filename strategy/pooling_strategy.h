#ifndef STRATA_STRATEGY_POOLING_STRATEGY_H_
#define STRATA_STRATEGY_POOLING_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/streams/chain_stream.h"

namespace strata {

// Base of the strategies that hold memory of a ChunkPool.
//
// Model: serves one stream, or all streams of a place that share the strategy.
//   The layers above handle other streams that use an allocation. Release frees
//   idle memory to the system, after the work of those streams; so does
//   exhaustion at the place. All allocations must be freed before the strategy
//   is destroyed. If not, their chunks are leaked, and logged.
// Threads: any thread. No lock is held while the system, the device or a
//   visitor is called.
class PoolingStrategy : public Allocator, protected ChunkHolder {
 public:
  std::size_t Release() noexcept override { return GiveBackAll(); }
  bool RecordStream(Allocation* /*allocation*/,
                    Stream /*stream*/) noexcept override {
    return false;
  }
  void EraseStream(Allocation* /*allocation*/,
                   Stream /*stream*/) noexcept override {}
  void StreamDestroyed(Stream /*stream*/) noexcept override {}

  Allocator* underlying() const final { return pool_.get(); }
  Place place() const final { return pool_->place(); }
  Stream stream() const final { return stream_->stream(); }
  Reclaimer* reclaimer() const final { return pool_->reclaimer(); }
  void Accept(AllocatorVisitor& visitor) const override;
  void ResetPeak() override { pool_->ResetPeak(); }
  std::uint32_t unserved_flags() const override { return kOneHandle; }

 protected:
  // No device call.
  PoolingStrategy(std::shared_ptr<ChunkPool> pool,
                  std::shared_ptr<ChainStream> stream);

  ChunkPool& pool() const { return *pool_; }
  const std::shared_ptr<ChunkPool>& shared_pool() const { return pool_; }
  ChainStream& chain_stream() const { return *stream_; }

  // Waits for the work of the streams, before their memory is freed to the
  // system. False if it cannot wait, for example during a capture.
  bool WaitForWork() const noexcept;
  // Frees memory that is no longer in use to the system. If work of the streams
  // may still use it, frees it to the chunk pool, which holds it until that
  // work is done. Returns the bytes freed to the system.
  std::size_t GiveToPool(Allocation* memory, bool is_done) const noexcept;

  // ChunkHolder.
  bool IdleIsDone() noexcept override { return stream_->IsDone(); }

 private:
  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_POOLING_STRATEGY_H_
