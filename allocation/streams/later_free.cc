#include "strata/allocation/streams/later_free.h"

#include <utility>

#include "strata/allocation/block_flags.h"

namespace strata {
namespace {

class LaterFree final : public Postponable {
 public:
  LaterFree(std::shared_ptr<Allocator> layer, Allocation* allocation)
      : layer_(std::move(layer)), allocation_(allocation) {
    // Nobody may free it again.
    RemoveFlag(*allocation_->block(), kBlockLive);
  }

 private:
  void End() noexcept override {
    AddFlag(*allocation_->block(), kBlockLive);
    layer_->DoFree(allocation_);
    delete this;
  }

  const std::shared_ptr<Allocator> layer_;
  Allocation* const allocation_;
};

}  // namespace

bool MustFreeLater(const CaptureGate& gate, Platform& platform,
                   Allocator& layer, const Block& block) noexcept {
  const bool is_kept = block.chunk != nullptr && layer.hit_path() != nullptr;
  if (!gate.any() || is_kept) return false;
  const Stream own = layer.stream();
  return own.uid != 0 && own.device >= 0 &&
         own.device < platform.device_count() &&
         !gate.MayTouch(platform.device(own.device), own);
}

void FreeLater(CaptureGate& gate, std::shared_ptr<Allocator> layer,
               Allocation* allocation) {
  gate.EndLater(*new LaterFree(std::move(layer), allocation));
}

}  // namespace strata
