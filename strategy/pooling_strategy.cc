#include "strata/strategy/pooling_strategy.h"

#include <utility>

#include "strata/base/log.h"

namespace strata {

PoolingStrategy::PoolingStrategy(std::shared_ptr<ChunkPool> pool,
                                 std::shared_ptr<ChainStream> stream)
    : ChunkHolder({.stream = stream->stream(), .layer = this}),
      pool_(std::move(pool)),
      stream_(std::move(stream)) {}

bool PoolingStrategy::WaitForWork() const noexcept {
  const Status status = stream_->Synchronize();
  STRATA_LOG_IF(Error,
                status != Status::kSuccess && status != Status::kNotReady)
      << name() << ": its streams cannot be waited for (" << status
      << "); their memory is kept until they can";
  return status == Status::kSuccess;
}

std::size_t PoolingStrategy::GiveToPool(Allocation* memory,
                                        bool is_done) const noexcept {
  if (is_done) return pool().Return(memory);
  pool().Offer(memory, chain_stream());
  return 0;
}

void PoolingStrategy::Accept(AllocatorVisitor& visitor) const {
  visitor.VisitLayer(*this);
  std::vector<BlockInfo> blocks;
  AppendBlocks(blocks);
  visitor.VisitBlocks(*this, blocks);
  pool_->Accept(visitor);
}

}  // namespace strata
