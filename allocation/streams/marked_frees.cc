#include "strata/allocation/streams/marked_frees.h"

#include <limits>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/streams/later_free.h"
#include "strata/allocation/streams/visit_each.h"
#include "strata/base/log.h"

namespace strata {

void MarkedFrees::MarkedBlock::End() noexcept {
  FreeAtLast(*below, *block);
  delete this;
}

MarkedFrees::Mark* MarkedFrees::MarkedBlock::Find(
    const Stream& stream) const noexcept {
  Mark* mark = marks.get();
  while (mark != nullptr && !(mark->stream == stream)) mark = mark->next.get();
  return mark;
}

std::unique_ptr<MarkedFrees::Mark> MarkedFrees::MarkedBlock::Remove(
    const Stream& stream) noexcept {
  std::unique_ptr<Mark>* link = &marks;
  while (*link != nullptr && !((*link)->stream == stream)) {
    link = &(*link)->next;
  }
  if (*link == nullptr) return nullptr;
  std::unique_ptr<Mark> removed = std::move(*link);
  *link = std::move(removed->next);
  return removed;
}

MarkedFrees::MarkedFrees(DeferredFrees& frees) : frees_(frees) {}

MarkedFrees::~MarkedFrees() = default;

std::shared_ptr<MarkedFrees::Queue> MarkedFrees::QueueOf(
    const std::shared_ptr<StreamTimeline>& timeline) {
  const std::lock_guard<std::mutex> guard(queues_mutex_);
  for (const std::shared_ptr<Queue>& queue : queues_) {
    if (queue->timeline == timeline) return queue;
  }
  // Remove empty queues of streams that have ended.
  std::erase_if(queues_, [](const std::shared_ptr<Queue>& queue) {
    return queue.use_count() == 1 && queue->timeline->ended();
  });
  queues_.push_back(std::make_shared<Queue>(timeline));
  return queues_.back();
}

void MarkedFrees::Link(Mark& mark) noexcept {
  Queue& queue = *mark.queue;
  // Usually the last position. Threads that free concurrently may link in
  // another order.
  Mark* before = queue.last;
  while (before != nullptr && before->tick > mark.tick) {
    before = before->previous;
  }
  mark.previous = before;
  mark.following = before != nullptr ? before->following : queue.first;
  (before != nullptr ? before->following : queue.first) = &mark;
  (mark.following != nullptr ? mark.following->previous : queue.last) = &mark;
}

void MarkedFrees::Unlink(Mark& mark) noexcept {
  Queue& queue = *mark.queue;
  (mark.previous != nullptr ? mark.previous->following : queue.first) =
      mark.following;
  (mark.following != nullptr ? mark.following->previous : queue.last) =
      mark.previous;
  mark.previous = mark.following = nullptr;
}

void MarkedFrees::Free(std::unique_ptr<MarkedBlock> marked) noexcept {
  frees_.Hold();
  ++blocks_;
  bytes_ += marked->block->size;
  for (Mark* mark = marked->marks.get(); mark != nullptr;
       mark = mark->next.get()) {
    mark->marked = marked.get();
    StreamTimeline& timeline = *mark->queue->timeline;
    if (mark->tick == 0) {
      mark->tick = timeline.Note(marked->block->size);
    } else {
      timeline.AddWaiting(marked->block->size);
    }
    ++marked->waits;
  }
  // The queues own the block; the thread that removes the last mark deletes it.
  const MarkedBlock* deferred = marked.release();
  const std::lock_guard<SpinLock> guard(lock_);
  for (Mark* mark = deferred->marks.get(); mark != nullptr;
       mark = mark->next.get()) {
    Link(*mark);
  }
}

MarkedFrees::Tick MarkedFrees::LastTick(const Queue& queue,
                                        const Allocator* below) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  const Mark* mark = queue.last;
  while (below != nullptr && mark != nullptr &&
         mark->marked->below.get() != below) {
    mark = mark->previous;
  }
  return mark != nullptr ? mark->tick : 0;
}

std::size_t MarkedFrees::Pass(Queue& queue, Tick tick,
                              const Allocator* below) noexcept {
  DeferredFrees::Giving giving(frees_);
  MarkedBlock* ready = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    Mark* mark = queue.first;
    while (mark != nullptr && mark->tick <= tick) {
      Mark* const following = mark->following;
      MarkedBlock* const marked = mark->marked;
      if (below == nullptr || marked->below.get() == below) {
        Unlink(*mark);
        if (--marked->waits == 0) marked->next = std::exchange(ready, marked);
      }
      mark = following;
    }
  }
  if (ready != nullptr) giving.Gave();
  return FreeAll(ready);
}

std::size_t MarkedFrees::FreeAll(MarkedBlock* ready) noexcept {
  std::size_t bytes = 0;
  while (ready != nullptr) {
    std::unique_ptr<MarkedBlock> marked(std::exchange(ready, ready->next));
    bytes += marked->block->size;
    bytes_ -= marked->block->size;
    --blocks_;
    TimelineTable& timelines = frees_.timelines();
    if (MustFreeLater(timelines, *marked->below, *marked->block)) {
      frees_.PassOn(*marked->block);
      timelines.gate().EndLater(*marked.release());
    } else {
      frees_.FreeNow(*marked->block, *marked->below);
    }
    frees_.LetGo();
  }
  return bytes;
}

std::size_t MarkedFrees::Drain() noexcept {
  std::size_t bytes = 0;
  VisitEach(queues_mutex_, queues_, [&](Queue& queue) {
    if (LastTick(queue, nullptr) == 0) return;
    bytes += Pass(queue, queue.timeline->Refresh(), nullptr);
  });
  return bytes;
}

std::size_t MarkedFrees::Await() noexcept {
  std::size_t bytes = 0;
  VisitEach(queues_mutex_, queues_, [&](Queue& queue) {
    const Tick tick = LastTick(queue, nullptr);
    if (tick == 0) return;
    const bool passed = queue.timeline->Await(tick) == Status::kSuccess;
    bytes += Pass(queue, passed ? tick : queue.timeline->done(), nullptr);
  });
  return bytes;
}

std::size_t MarkedFrees::FreeUnproven() noexcept {
  std::size_t bytes = 0;
  VisitEach(queues_mutex_, queues_, [&](Queue& queue) {
    bytes += Pass(queue, std::numeric_limits<Tick>::max(), nullptr);
  });
  STRATA_LOG_IF(Error, bytes != 0)
      << "stream_safe: " << bytes
      << " bytes go to the system although the streams that used them could "
         "not be waited for";
  return bytes;
}

std::size_t MarkedFrees::FreeBehind(const Allocator& below, Device& device,
                                    const Stream& stream) noexcept {
  std::size_t bytes = 0;
  VisitEach(queues_mutex_, queues_, [&](Queue& queue) {
    const Tick tick = LastTick(queue, &below);
    if (tick == 0 ||
        queue.timeline->OrderBefore(tick, device, stream) != Status::kSuccess) {
      return;
    }
    bytes += Pass(queue, tick, &below);
  });
  return bytes;
}

}  // namespace strata
