#include "strata/allocation/streams/deferred_frees.h"

#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/marked_frees.h"
#include "strata/allocation/streams/visit_each.h"

namespace strata {

DeferredFrees::DeferredFrees(std::shared_ptr<TimelineTable> timelines,
                             std::shared_ptr<Reclaimer> reclaimer,
                             bool waits_on_device)
    : timelines_(std::move(timelines)),
      reclaimer_(std::move(reclaimer)),
      waits_on_device_(waits_on_device),
      marked_(std::make_shared<MarkedFrees>(*this)) {
  AddSource(marked_);
  if (reclaimer_ == nullptr) return;
  using Step = Reclaimer::Step;
  registrations_ = {
      Reclaimer::Register(reclaimer_, Step::kDrainFrees, drain_step_),
      Reclaimer::Register(reclaimer_, Step::kAwaitFrees, await_step_)};
}

DeferredFrees::~DeferredFrees() {
  for (Reclaimer::Registration& registration : registrations_) {
    registration.Reset();
  }
  End();
}

void DeferredFrees::AddSource(std::shared_ptr<Source> source) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(sources_, [](const auto& old) { return old->IsOver(); });
  sources_.push_back(std::move(source));
}

std::size_t DeferredFrees::Ask(
    std::size_t (Source::*what)() noexcept) noexcept {
  std::size_t bytes = 0;
  if (!any()) return 0;
  VisitEach(mutex_, sources_,
            [&](Source& source) { bytes += (source.*what)(); });
  return bytes;
}

Deferral DeferredFrees::deferred() const noexcept {
  Deferral all;
  VisitEach(mutex_, sources_, [&](const Source& source) {
    const Deferral some = source.deferred();
    all.blocks += some.blocks;
    all.bytes += some.bytes;
  });
  return all;
}

std::size_t DeferredFrees::Drain() noexcept { return Ask(&Source::Drain); }

std::size_t DeferredFrees::Await() noexcept { return Ask(&Source::Await); }

void DeferredFrees::AfterFree() noexcept {
  if (is_closed() || marked_->IsDrainDue()) Drain();
}

std::size_t DeferredFrees::FreeOrdered() noexcept {
  return Ask(&Source::FreeOrdered);
}

void DeferredFrees::Close() noexcept {
  closed_ = true;
  while (Await() != 0) {
  }
}

void DeferredFrees::End() noexcept {
  Close();
  Ask(&Source::FreeUnproven);
}

DeferredFrees::Giving::Giving(const DeferredFrees& frees)
    : reclaimer_(frees.reclaimer_.get()) {
  if (reclaimer_ != nullptr) reclaimer_->BeginGiving();
}

DeferredFrees::Giving::~Giving() {
  if (reclaimer_ != nullptr) reclaimer_->EndGiving(gave_);
}

void DeferredFrees::PassOn(const Block& block) const noexcept {
  Platform& platform = *timelines_->platform();
  const Place place = block.place();
  if (place.kind == PlaceKind::kHost ||
      place.index >= platform.device_count()) {
    return;
  }
  // Orders the work that this thread saw complete, on any device, before the
  // next use of the memory.
  Device& device = platform.device(place.index);
  if (device.observed()) device.Note(RecordOf(DeviceCall::kHostRelease));
}

void DeferredFrees::FreeNow(Block& block, Allocator& below) noexcept {
  const std::size_t bytes = block.size;
  PassOn(block);
  SetLive(block, true);
  below.DoFree(block.allocation());
  if (reclaimer_ != nullptr) reclaimer_->retry().NotifyFree(bytes);
}

Allocation* TryHeld(Allocator& below, const Request& request) noexcept {
  HitPath* hit_path = below.hit_path();
  const bool is_plain = request.alignment <= below.natural_alignment() &&
                        request.flags == 0 && request.freed_before == 0;
  if (hit_path != nullptr && is_plain) {
    std::unique_lock<ChainLock> guard;
    if (ChainLock* const lock = hit_path->hit_lock()) {
      guard = std::unique_lock<ChainLock>(*lock);
    }
    if (hit_path->finds_all()) {
      Block* block = hit_path->Take(request.bytes);
      if (block == nullptr) return nullptr;
      block->requested = request.bytes;
      return block->allocation();
    }
  }
  // A strategy chooses the place of long-lived blocks when it grows.
  if ((request.flags & ~kNoGrowth) != 0) return nullptr;
  Request held = request;
  held.flags |= kNoGrowth;
  Failure ignored;
  return below.TryAllocate(held, ignored);
}

}  // namespace strata
