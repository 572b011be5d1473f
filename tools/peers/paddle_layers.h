#ifndef STRATA_TOOLS_PEERS_PADDLE_LAYERS_H_
#define STRATA_TOOLS_PEERS_PADDLE_LAYERS_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "strata/tools/peers/paddle_allocator.h"
#include "strata/tools/peers/paddle_auto_growth.h"
#include "strata/tools/peers/paddle_stat.h"

namespace strata {

// Counts the bytes of what passes.
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

// Would wait for another thread's free when there is no memory; here there may
// be no other thread, so it gives up (docs/peers.md).
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
  // Gives the idle chunks of every stream back.
  void FreeIdleChunks();

 private:
  PaddleSpinLock lock_;
  std::vector<PaddleStreamSafeLayer*> layers_;  // guarded by lock_
};

// Keeps memory until the streams that it is marked for are done with it: here
// nothing is marked. When its own stream has no memory left, the idle chunks of
// all streams go back, and it tries once more.
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

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_PADDLE_LAYERS_H_
