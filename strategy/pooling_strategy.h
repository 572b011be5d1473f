#ifndef STRATA_STRATEGY_POOLING_STRATEGY_H_
#define STRATA_STRATEGY_POOLING_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocator.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunk_pool.h"

namespace strata {

// What the strategies that keep memory of a ChunkPool have in common.
//
// Model: of a stream, or of all streams of a place that share the strategy; who
//   else uses an allocation is the business of the layers above. Release gives
//   what is idle to the system, as exhaustion at the place does, after the work
//   of those streams. When a strategy is destroyed, all that it handed out has
//   been freed; if not, the chunks of that are lost, and logged.
// Threads: any thread. No lock is held while the system, the device or a
//   visitor is called.
class PoolingStrategy : public Allocator, protected ChunkHolder {
 public:
  std::size_t Release() noexcept final {
    return GiveBack({GiveBackRequest::Kind::kAll});
  }
  bool RecordStream(Allocation* /*allocation*/,
                    Stream /*stream*/) noexcept final {
    return false;
  }
  void EraseStream(Allocation* /*allocation*/,
                   Stream /*stream*/) noexcept final {}
  void StreamDestroyed(Stream /*stream*/) noexcept final {}

  Allocator* underlying() const final { return pool_.get(); }
  Place place() const final { return pool_->place(); }
  Stream stream() const final { return stream_->stream(); }
  Reclaimer* reclaimer() const final { return pool_->reclaimer(); }
  void Accept(AllocatorVisitor& visitor) const final;
  void ResetPeak() override { pool_->ResetPeak(); }
  std::uint32_t unserved_flags() const override { return kOneHandle; }

 protected:
  // No device call.
  PoolingStrategy(std::shared_ptr<ChunkPool> pool,
                  std::shared_ptr<ChainStream> stream);

  ChunkPool& pool() const { return *pool_; }
  const std::shared_ptr<ChunkPool>& shared_pool() const { return pool_; }
  ChainStream& chain_stream() const { return *stream_; }

  // Names the layer, the place and the request.
  Failure Refusal(Failure::Reason reason, const Request& request) const;
  // Waits for the work of the streams, before their memory goes to the system.
  // False if it cannot: during a capture, say.
  bool WaitForWork() const noexcept;
  // Gives memory that is in use no more to the system; if work of the streams
  // may still use it, to the chunk pool, which keeps it until that is done.
  // Returns the bytes the system has got.
  std::size_t GiveToPool(Allocation* memory, bool is_done) const noexcept;

  // ChunkHolder.
  bool IdleIsDone() noexcept override { return stream_->IsDone(); }

 private:
  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_POOLING_STRATEGY_H_
