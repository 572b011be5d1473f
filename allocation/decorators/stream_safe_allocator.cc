#include "strata/allocation/decorators/stream_safe_allocator.h"

#include <new>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/streams/lost_use.h"
#include "strata/allocation/streams/timeline_table.h"

namespace strata {

StreamSafeAllocator::StreamSafeAllocator(std::shared_ptr<Allocator> underlying,
                                         std::shared_ptr<DeferredFrees> frees,
                                         std::shared_ptr<ChainStream> own,
                                         bool ends_timelines)
    : Decorator(std::move(underlying)),
      frees_(std::move(frees)),
      own_(std::move(own)),
      ends_timelines_(ends_timelines) {}

StreamSafeAllocator::~StreamSafeAllocator() = default;

Allocation* StreamSafeAllocator::TryAllocate(const Request& request,
                                             Failure& failure) noexcept {
  if (frees_->any()) {
    Allocation* held = TryHeld(*underlying(), request);
    if (held != nullptr) return held;
    frees_->Drain();
    // The CPU can use host memory at once: no stream can wait for it.
    const bool may_wait = frees_->waits_on_device() && frees_->any() &&
                          own_ != nullptr && own_->device() != nullptr &&
                          !own_->retired();
    if (may_wait) {
      held = TryHeld(*underlying(), request);
      if (held != nullptr) return held;
      frees_->marked().FreeBehind(*underlying(), *own_->device(),
                                  own_->stream());
    }
  }
  return underlying()->TryAllocate(request, failure);
}

bool StreamSafeAllocator::NeedsNone(const Block& block,
                                    Stream stream) const noexcept {
  return stream.uid == 0 || (own_ != nullptr && stream == own_->stream()) ||
         HasFlag(block, kBlockZeroSize);
}

bool StreamSafeAllocator::HasMark(const Block& block, Stream stream) noexcept {
  if (!HasFlag(block, kBlockMarked)) return false;
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto entry = marks_.find(&block);
  if (entry == marks_.end()) return false;
  const MarkedFrees::Mark* mark = entry->second->Find(stream);
  return mark != nullptr && mark->tick == 0;
}

void StreamSafeAllocator::Mark(Block& block, Stream stream,
                               const std::shared_ptr<StreamTimeline>& timeline,
                               StreamTimeline::Tick tick) {
  auto mark = std::make_unique<MarkedFrees::Mark>();
  mark->stream = stream;
  mark->tick = tick;
  mark->queue = frees_->marked().QueueOf(timeline);
  // Destroyed after the lock is released.
  std::unique_ptr<MarkedFrees::Mark> replaced;
  const std::lock_guard<std::mutex> guard(mutex_);
  auto entry = marks_.find(&block);
  if (entry == marks_.end()) {
    auto marked = std::make_unique<MarkedFrees::MarkedBlock>();
    marked->block = &block;
    entry = marks_.emplace(&block, std::move(marked)).first;
  }
  MarkedFrees::MarkedBlock& marked = *entry->second;
  replaced = marked.Remove(stream);
  mark->next = std::move(marked.marks);
  marked.marks = std::move(mark);
  AddFlag(block, kBlockMarked);
}

bool StreamSafeAllocator::RecordStream(Allocation* allocation,
                                       Stream stream) noexcept {
  Block* block = allocation->block();
  if (NeedsNone(*block, stream)) return false;
  if (underlying()->RecordStream(allocation, stream)) return true;
  if (HasMark(*block, stream)) return true;
  try {
    const auto timeline = frees_->timelines().Of(stream);
    if (timeline == nullptr) return false;
    Mark(*block, stream, timeline, 0);
    return true;
  } catch (const std::bad_alloc&) {
    TimelineTable& timelines = frees_->timelines();
    // No work can have been submitted to a device that does not exist.
    Platform& platform = *timelines.platform();
    if (!platform.HasDevice(stream.device)) return false;
    return !AwaitOrLoseUse(*block, platform.device(stream.device), stream,
                           &timelines.gate(), name());
  }
}

bool StreamSafeAllocator::RecordUse(Allocation* allocation, Stream stream,
                                    Event event) noexcept {
  Block* block = allocation->block();
  if (NeedsNone(*block, stream)) return false;
  try {
    const TimelineTable::Moment moment =
        frees_->timelines().MomentOf(stream, event);
    if (moment.timeline != nullptr) {
      Mark(*block, stream, moment.timeline, moment.tick);
      underlying()->EraseStream(allocation, stream);
      return true;
    }
  } catch (const std::bad_alloc&) {
    // Fall back to RecordStream(): the free will end the use.
  }
  return RecordStream(allocation, stream);
}

void StreamSafeAllocator::EraseStream(Allocation* allocation,
                                      Stream stream) noexcept {
  underlying()->EraseStream(allocation, stream);
  Block* block = allocation->block();
  // Destroyed after the lock is released, as is `unmarked`.
  std::unique_ptr<MarkedFrees::Mark> removed;
  std::unique_ptr<MarkedFrees::MarkedBlock> unmarked;
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto entry = marks_.find(block);
  if (entry == marks_.end()) return;
  removed = entry->second->Remove(stream);
  if (entry->second->marks != nullptr) return;
  unmarked = std::move(entry->second);
  marks_.erase(entry);
  RemoveFlag(*block, kBlockMarked);
}

void StreamSafeAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  if ((block->flags & (kBlockMarked | kBlockUseLost)) == 0) {
    underlying()->DoFree(allocation);
    return;
  }
  CheckLive(*block, name());
  if (IsUseLost(*block)) {
    KeepForEver(*block, name());
    return;
  }
  Marks::node_type entry;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    entry = marks_.extract(block);
    // Not live until the free below, so that a second free is detected.
    RemoveFlag(*block, kBlockMarked);
    SetLive(*block, false);
  }
  if (!entry) {
    // Only another layer marked the block.
    SetLive(*block, true);
    underlying()->DoFree(allocation);
    return;
  }
  std::unique_ptr<MarkedFrees::MarkedBlock> marked = std::move(entry.mapped());
  marked->below = shared_underlying();
  frees_->marked().Free(std::move(marked));
  frees_->AfterFree();
}

std::size_t StreamSafeAllocator::Release() noexcept {
  frees_->Await();
  return underlying()->Release();
}

void StreamSafeAllocator::StreamDestroyed(Stream stream) noexcept {
  // First, because every operation on the stream must precede its last event.
  underlying()->StreamDestroyed(stream);
  if (ends_timelines_) frees_->timelines().StreamDestroyed(stream);
}

std::shared_ptr<Allocator> MakeStreamSafeAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.stream_safe || context.platform == nullptr) return underlying;
  auto frees = context.Find<DeferredFrees>(ServiceScope::kPlace);
  const bool is_own = frees == nullptr;
  if (is_own) {
    frees = std::make_shared<DeferredFrees>(
        context.Shared<TimelineTable>(ServiceScope::kFacade, context.platform),
        context.reclaimer, options.cross_stream_wait);
  }
  return std::make_shared<StreamSafeAllocator>(std::move(underlying),
                                               std::move(frees), context.stream,
                                               /*ends_timelines=*/is_own);
}

}  // namespace strata
