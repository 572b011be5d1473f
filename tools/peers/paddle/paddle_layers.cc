#include "strata/tools/peers/paddle/paddle_layers.h"

#include <mutex>

namespace strata::peers {

PaddleAllocation* PaddleStatLayer::AllocateImpl(std::size_t bytes) {
  PaddleAllocation* allocation = below_->Allocate(bytes).release();
  stat_->Update(static_cast<std::int64_t>(allocation->bytes()));
  return allocation;
}

void PaddleStatLayer::FreeImpl(PaddleAllocation* allocation) {
  stat_->Update(-static_cast<std::int64_t>(allocation->bytes()));
  below_->Free(allocation);
}

PaddleAllocation* PaddleRetryLayer::AllocateImpl(std::size_t bytes) {
  return below_->Allocate(bytes).release();
}

void PaddleRetryLayer::FreeImpl(PaddleAllocation* allocation) {
  below_->Free(allocation);
}

void PaddleStreams::Add(PaddleStreamSafeLayer* layer) {
  const std::lock_guard<PaddleSpinLock> lock(lock_);
  layers_.push_back(layer);
}

void PaddleStreams::FreeIdleChunks() {
  const std::lock_guard<PaddleSpinLock> lock(lock_);
  for (PaddleStreamSafeLayer* layer : layers_) layer->below().FreeIdleChunks();
}

// Wraps the strategy's object.
class PaddleStreamSafeLayer::Object final : public PaddleAllocation {
 public:
  Object(PaddleAllocationPtr inner,
         std::shared_ptr<PaddleStreamSafeLayer> layer)
      : PaddleAllocation(inner->address(), inner->bytes(), inner->place()),
        inner_(std::move(inner)),
        layer_(std::move(layer)) {}

 private:
  const PaddleAllocationPtr inner_;
  const std::shared_ptr<PaddleStreamSafeLayer> layer_;
};

PaddleAllocation* PaddleStreamSafeLayer::AllocateImpl(std::size_t bytes) {
  PaddleAllocationPtr inner;
  try {
    inner = below_->Allocate(bytes);
  } catch (const PaddleOutOfMemory&) {
    streams_->FreeIdleChunks();
  }
  if (inner == nullptr) inner = below_->Allocate(bytes);
  return std::make_unique<Object>(std::move(inner), shared_from_this())
      .release();
}

void PaddleStreamSafeLayer::FreeImpl(PaddleAllocation* allocation) {
  const std::unique_ptr<Object> object(static_cast<Object*>(allocation));
}

}  // namespace strata::peers
