#include "strata/allocation/decorators/cuda_graph_allocator.h"

#include <algorithm>
#include <new>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/lost_use.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/base/log.h"

namespace strata {
namespace {

// Passes an allocation from one hold to the next. The last one frees it.
class NextHold final : public Decorator {
 public:
  NextHold(std::shared_ptr<Allocator> layer,
           std::shared_ptr<CaptureHold> following)
      : Decorator(layer),
        layer_(std::move(layer)),
        following_(std::move(following)) {}

  void DoFree(Allocation* allocation) noexcept override {
    following_->Hold(layer_, allocation);
  }
  const char* name() const override { return "next_hold"; }

 private:
  const std::shared_ptr<Allocator> layer_;
  const std::shared_ptr<CaptureHold> following_;
};

}  // namespace

CudaGraphAllocator::CudaGraphAllocator(std::shared_ptr<Allocator> underlying,
                                       const ChainContext& context)
    : Decorator(std::move(underlying)),
      platform_(context.platform),
      captures_(context.Find<CaptureHolds>(ServiceScope::kFacade)),
      timelines_(captures_ != nullptr && platform_ != nullptr
                     ? context.Find<TimelineTable>(ServiceScope::kFacade)
                     : nullptr),
      own_(context.stream != nullptr ? context.stream->own_hold() : 0),
      later_(std::make_shared<LaterFrees>(shared_underlying())) {}

void CudaGraphAllocator::AddHoldsOf(const Stream& stream, Holds& holds,
                                    bool may_be_gone) const {
  if (stream.uid == 0 || !platform_->HasDevice(stream.device)) return;
  captures_->AddHoldsOf(platform_->device(stream.device), stream, own_, holds,
                        may_be_gone);
}

bool CudaGraphAllocator::IsHeld(const Stream& stream) const noexcept {
  try {
    Holds holds;
    AddHoldsOf(stream, holds);
    return !holds.empty();
  } catch (const std::bad_alloc&) {
    return true;
  }
}

void CudaGraphAllocator::NoteUses(Block& block, const Stream& stream,
                                  const Holds& holds) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<Use>& uses = uses_[&block];
  std::erase_if(uses, [](const Use& use) { return use.hold.expired(); });
  try {
    uses.reserve(uses.size() + holds.size());
  } catch (const std::bad_alloc&) {
    // The next user of the record must not find it.
    if (uses.empty()) uses_.erase(&block);
    throw;
  }
  for (const std::shared_ptr<CaptureHold>& hold : holds) {
    const bool known =
        std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
          return use.stream == stream && use.hold.lock() == hold;
        });
    if (!known) uses.push_back({stream, hold});
  }
}

bool CudaGraphAllocator::RecordStream(Allocation* allocation,
                                      Stream stream) noexcept {
  const bool noted = underlying()->RecordStream(allocation, stream);
  if (!any() || stream == this->stream()) return noted;
  Block* block = allocation->block();
  try {
    Holds holds;
    AddHoldsOf(stream, holds);
    if (holds.empty()) return noted;
    NoteUses(*block, stream, holds);
  } catch (const std::bad_alloc&) {
    LoseUse(*block);
    return true;
  }
  AddFlag(*block, kBlockMarked);
  return true;
}

bool CudaGraphAllocator::RecordUse(Allocation* allocation, Stream stream,
                                   Event event) noexcept {
  // A graph repeats the use at each launch, so an event does not end it.
  if (any() && stream != this->stream() && IsHeld(stream)) {
    return RecordStream(allocation, stream);
  }
  return underlying()->RecordUse(allocation, stream, event);
}

void CudaGraphAllocator::EraseStream(Allocation* allocation,
                                     Stream stream) noexcept {
  underlying()->EraseStream(allocation, stream);
  if (timelines_ == nullptr) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto entry = uses_.find(allocation->block());
  if (entry == uses_.end()) return;
  std::vector<Use>& uses = entry->second;
  std::erase_if(uses, [&](const Use& use) { return use.stream == stream; });
  if (uses.empty()) {
    uses_.erase(entry);
  } else {
    // Set again, because the layers below may have cleared it.
    AddFlag(*allocation->block(), kBlockMarked);
  }
}

void CudaGraphAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  if (timelines_ == nullptr) {
    underlying()->DoFree(allocation);
    return;
  }
  if (IsUseLost(*block)) {
    KeepForEver(*block, name());
    return;
  }
  if (!any() && (block->flags & kBlockMarked) == 0) {
    FreeBelow(allocation);
    return;
  }
  Uses::node_type noted;
  if ((block->flags & kBlockMarked) != 0) {
    const std::lock_guard<std::mutex> guard(mutex_);
    noted = uses_.extract(block);
  }
  try {
    Holds holds;
    if (any()) AddHoldsOf(stream(), holds, /*may_be_gone=*/true);
    if (noted) {
      for (const Use& use : noted.mapped()) holds.push_back(use.hold.lock());
    }
    std::erase(holds, nullptr);
    std::sort(holds.begin(), holds.end(), [](const auto& a, const auto& b) {
      return a->order() < b->order();
    });
    holds.erase(std::unique(holds.begin(), holds.end()), holds.end());
    if (holds.empty()) {
      FreeBelow(allocation);
      return;
    }
    std::shared_ptr<Allocator> layer = shared_underlying();
    for (std::size_t i = holds.size() - 1; i != 0; --i) {
      layer = std::make_shared<NextHold>(std::move(layer), holds[i]);
    }
    holds.front()->Hold(std::move(layer), allocation);
  } catch (const std::bad_alloc&) {
    STRATA_LOG(Error) << "cuda_graph: no host memory to keep "
                      << allocation->data()
                      << " for every graph that uses it; it is never reused";
  }
}

void CudaGraphAllocator::FreeBelow(Allocation* allocation) noexcept {
  if (MustFreeLater(*timelines_, *underlying(), *allocation->block())) {
    later_->Add(timelines_->gate(), allocation);
  } else {
    underlying()->DoFree(allocation);
  }
}

std::shared_ptr<Allocator> MakeCudaGraphAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.cuda_graph || context.platform == nullptr) return underlying;
  return std::make_shared<CudaGraphAllocator>(std::move(underlying), context);
}

}  // namespace strata
