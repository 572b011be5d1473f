#ifndef STRATA_TOOLS_PEERS_PADDLE_PADDLE_LAYERS_H_
#define STRATA_TOOLS_PEERS_PADDLE_PADDLE_LAYERS_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "strata/tools/peers/paddle/paddle_allocator.h"
#include "strata/tools/peers/paddle/paddle_auto_growth.h"
#include "strata/tools/peers/paddle/paddle_stat.h"

namespace strata::peers {

// Counts the bytes of passing allocations and frees.
class PaddleStatLayer final : public PaddleAllocator {
 public:
  PaddleStatLayer(std::shared_ptr<PaddleAllocator> below, PaddleStat* stat)
      : below_(std::move(below)), stat_(stat) {}

 protected:
  PaddleAllocation* AllocateImpl(std::size_t bytes) override;
  void FreeImpl(PaddleAllocation* allocation) override;

 private:
  const std::shared_ptr<PaddleAllocator> below_;
  PaddleStat* const stat_;
};

// The original waits for another thread's free when there is no memory. Here
// there may be no other thread, so this layer fails at once (docs/peers.md).
class PaddleRetryLayer final : public PaddleAllocator {
 public:
  explicit PaddleRetryLayer(std::shared_ptr<PaddleAllocator> below)
      : below_(std::move(below)) {}

 protected:
  PaddleAllocation* AllocateImpl(std::size_t bytes) override;
  void FreeImpl(PaddleAllocation* allocation) override;

 private:
  const std::shared_ptr<PaddleAllocator> below_;
};

class PaddleStreamSafeLayer;

// The stream-safe layers of all streams.
class PaddleStreams {
 public:
  void Add(PaddleStreamSafeLayer* layer);
  // Releases the idle chunks of every stream.
  void FreeIdleChunks();

 private:
  PaddleSpinLock lock_;
  std::vector<PaddleStreamSafeLayer*> layers_;  // guarded by lock_
};

// Holds memory until the streams that it is marked for have completed; here
// nothing is marked. When its own stream has no memory left, it releases the
// idle chunks of all streams, and tries once more.
//
// Lifetime: its allocations share it. `streams` outlives it.
// Source: paddle.md §3.6.
class PaddleStreamSafeLayer final
    : public PaddleAllocator,
      public std::enable_shared_from_this<PaddleStreamSafeLayer> {
 public:
  PaddleStreamSafeLayer(std::shared_ptr<PaddleAutoGrowth> below,
                        PaddleStreams* streams)
      : below_(std::move(below)), streams_(streams) {}

  PaddleAutoGrowth& below() { return *below_; }

 protected:
  PaddleAllocation* AllocateImpl(std::size_t bytes) override;
  void FreeImpl(PaddleAllocation* allocation) override;

 private:
  class Object;

  const std::shared_ptr<PaddleAutoGrowth> below_;
  PaddleStreams* const streams_;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_PADDLE_PADDLE_LAYERS_H_
