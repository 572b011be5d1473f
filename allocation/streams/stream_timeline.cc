#include "strata/allocation/streams/stream_timeline.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "strata/allocation/streams/host_order.h"
#include "strata/base/log.h"
#include "strata/base/store_max.h"

namespace strata {
namespace {

using Tick = StreamTimeline::Tick;

}  // namespace

StreamTimeline::StreamTimeline(
    Device& device, Stream stream, std::shared_ptr<EventPool> events,
    std::shared_ptr<const CaptureGate> gate, std::shared_ptr<LostStreams> lost,
    std::shared_ptr<const StreamsWithoutWaits> no_waits)
    : device_(device),
      stream_(stream),
      events_(std::move(events)),
      held_gate_(std::move(gate)),
      gate_(*held_gate_),
      lost_streams_(std::move(lost)),
      no_waits_(std::move(no_waits)) {}

StreamTimeline::~StreamTimeline() {
  for (const Recorded& recorded : pending_) {
    if (recorded.event) events_->Give(recorded.event);
  }
}

Tick StreamTimeline::Note(std::size_t bytes) noexcept {
  const Tick tick = NoteOnly();
  // Add the bytes after the tick, so that a thread that resets open_bytes_
  // covers the tick.
  if (FillsBatch(bytes) || EndsBatch(tick)) Close();
  return tick;
}

void StreamTimeline::AddWaiting(std::size_t bytes) noexcept {
  if (open() != 0 && FillsBatch(bytes)) Close();
}

bool StreamTimeline::FillsBatch(std::size_t bytes) noexcept {
  if (bytes == 0 || open_bytes_.fetch_add(bytes) + bytes < kBatchBytes) {
    return false;
  }
  // Reset it even if no event can be recorded: the next attempt is one batch
  // later.
  open_bytes_ = 0;
  return true;
}

Tick StreamTimeline::open() const noexcept {
  const Tick noted = noted_.load(std::memory_order_acquire);
  const Tick covered = std::max(recorded(), done());
  return noted > covered ? noted - covered : 0;
}

StreamTimeline::Recorded* StreamTimeline::Hold(Tick tick) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  Recorded* oldest = nullptr;
  for (Recorded& recorded : pending_) {
    if (!recorded.event || recorded.passed || recorded.tick < tick) continue;
    if (oldest == nullptr || recorded.tick < oldest->tick) oldest = &recorded;
  }
  if (oldest != nullptr) ++oldest->users;
  return oldest;
}

StreamTimeline::Recorded* StreamTimeline::HoldFor(Tick tick) noexcept {
  for (;;) {
    Recorded* const recorded = Hold(Coverable(tick));
    if (recorded != nullptr || IsDone(tick) || !closed()) return recorded;
    // Another thread removed the last event and is about to mark all ticks as
    // done.
    std::this_thread::yield();
  }
}

void StreamTimeline::Drop(Recorded* used, bool passed) noexcept {
  // The event is held, so its tick does not change.
  if (passed) RaiseDone(used->tick);
  Collect(passed ? used->tick : 0, used);
}

void StreamTimeline::Collect(Tick tick, Recorded* used) noexcept {
  std::array<Event, kPending> unused;
  std::size_t unused_count = 0;
  bool was_closed = false;
  bool any_left = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    // Read under the lock. Either this thread or End(), which reads the list
    // after it sets closed_, sees the change of the other. Read before the
    // list: if it is true, the last event is in the list.
    was_closed = closed();
    if (used != nullptr) --used->users;
    for (Recorded& recorded : pending_) {
      if (!recorded.event) continue;
      // A later event of the same stream has completed, so this one has too.
      if (recorded.tick <= tick) recorded.passed = true;
      if (recorded.passed && recorded.users == 0) {
        unused[unused_count++] = std::exchange(recorded.event, Event());
      }
      any_left = any_left || (recorded.event && !recorded.passed);
    }
  }
  // A closed stream has no work after its last event.
  if (tick != 0 && was_closed && !any_left) {
    RaiseDone(std::numeric_limits<Tick>::max());
  }
  for (std::size_t i = 0; i < unused_count; ++i) events_->Give(unused[i]);
}

std::size_t StreamTimeline::Thin(
    std::array<Event, kPending>& removed) noexcept {
  std::array<Recorded*, kPending> unused;
  std::size_t unused_count = 0;
  for (Recorded& recorded : pending_) {
    if (recorded.users == 0 && !recorded.passed) {
      unused[unused_count++] = &recorded;
    }
  }
  // The last event always stays.
  if (unused_count < 2) return 0;
  const auto begin = unused.begin();
  const auto last = begin + static_cast<std::ptrdiff_t>(unused_count - 1);
  std::sort(begin, last + 1, [](const Recorded* a, const Recorded* b) {
    return a->tick < b->tick;
  });
  Tick before = done();
  const Tick newest = std::max((*last)->tick, before);
  const Tick most_ticks = (newest - before) / (kPending / 3);
  std::size_t count = 0;
  for (auto one = begin; one != last; ++one) {
    // The next event would also cover the ticks of this one.
    if (one[1]->tick <= before + most_ticks) {
      removed[count++] = std::exchange((*one)->event, Event());
    } else {
      before = (*one)->tick;
    }
  }
  // Other threads use many of the events.
  if (count == 0) removed[count++] = std::exchange((*begin)->event, Event());
  return count;
}

bool StreamTimeline::Keep(Event event, Tick tick) noexcept {
  std::array<Event, kPending> removed;
  std::size_t removed_count = 0;
  bool is_kept = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    const auto is_free = [](const Recorded& slot) { return !slot.event; };
    auto slot = std::find_if(pending_.begin(), pending_.end(), is_free);
    if (slot == pending_.end()) {
      removed_count = Thin(removed);
      slot = std::find_if(pending_.begin(), pending_.end(), is_free);
    }
    is_kept = slot != pending_.end();
    if (is_kept) *slot = Recorded{event, tick};
  }
  if (!is_kept) events_->Give(event);
  for (std::size_t i = 0; i < removed_count; ++i) events_->Give(removed[i]);
  // Another thread may have seen the tick done meanwhile.
  if (IsDone(tick)) Collect(tick);
  return is_kept;
}

Status StreamTimeline::Record() noexcept {
  const CaptureGate::RelaxedScope relaxed(gate_, &device_);
  if (!relaxed) return Status::kNotReady;
  open_bytes_ = 0;
  // The event covers the ticks noted before it is recorded.
  const Tick tick = noted_.load(std::memory_order_acquire);
  Event event;
  Status status = events_->Take(&event);
  if (status != Status::kSuccess) return status;
  status = device_.EventRecord(event, stream_, 0);
  if (status != Status::kSuccess) {
    events_->Give(event);
    NoteAnswer(status);
    return status;
  }
  // If the stream joined a capture meanwhile, the event belongs to the capture
  // and proves nothing.
  if (!gate_.MayTouch(device_, stream_)) {
    events_->Give(event);
    return Status::kNotReady;
  }
  if (!Keep(event, tick)) return Status::kNotReady;
  StoreMax(recorded_, tick);
  return Status::kSuccess;
}

Status StreamTimeline::Close() noexcept {
  const CallGate::Pass pass(uses_);
  if (!pass) {
    // The last event is being recorded.
    while (!ended()) std::this_thread::yield();
    if (!closed()) return Status::kInvalidResourceHandle;
  }
  return CloseNow();
}

Status StreamTimeline::Settle() noexcept {
  if (owed() > noted()) NoteOnly();
  return Close();
}

Status StreamTimeline::CloseNow() noexcept {
  if (closed() || open() == 0) return Status::kSuccess;
  if (ended()) return Status::kInvalidResourceHandle;
  const CaptureGate::Touch touch(gate_, device_, stream_);
  if (!touch) return Status::kNotReady;
  const Status status = Record();
  if (status != Status::kSuccess && status != Status::kNotReady) {
    Complain(status);
  }
  return status;
}

void StreamTimeline::NoteAnswer(Status status) noexcept {
  if (status == Status::kInvalidResourceHandle) Lose(status);
}

void StreamTimeline::Lose(Status status) noexcept {
  const bool is_default =
      reinterpret_cast<std::uintptr_t>(stream_.handle) <= kPerThreadHandle;
  if (is_default || ended() || lost_.exchange(true)) return;
  // As in End(), but the caller may hold a pass.
  uses_.Shut();
  noted_.fetch_add(1, std::memory_order_acq_rel);
  ended_.store(true, std::memory_order_release);
  STRATA_LOG_IF(Error,
                lost_streams_ == nullptr || lost_streams_->TellOnce(stream_))
      << "stream " << stream_.uid
      << ": was destroyed and its end not announced (" << status
      << "); memory that was used there is kept until its events are "
         "done or the device was waited for; call StreamDestroyed before "
         "a stream is destroyed";
  if (lost_streams_ != nullptr) lost_streams_->set_any(true);
}

void StreamTimeline::Complain(Status status) noexcept {
  if (lost_ || complained_.exchange(true)) return;
  STRATA_LOG(Error)
      << "stream " << stream_.uid << ": cannot record an event (" << status
      << "); memory that was used there is kept until the stream or its "
         "device has been waited for";
}

bool StreamTimeline::SeeIdle() noexcept {
  const CallGate::Pass pass(uses_);
  if (!pass) return false;
  // An announced capture of the stream may begin at any moment, and a query
  // would end it.
  const CaptureGate::Calm calm(gate_);
  if (!calm) return false;
  const Tick tick = noted();
  const Status status = device_.StreamQuery(stream_);
  NoteAnswer(status);
  if (status != Status::kSuccess) return false;
  RaiseDone(tick);
  Collect(tick);
  return true;
}

Tick StreamTimeline::Poll() noexcept {
  while (done() < recorded()) {
    Recorded* oldest = Hold(done() + 1);
    if (oldest == nullptr) break;
    bool passed = false;
    {
      const CaptureGate::CallScope scope(&gate_, device_);
      passed = scope && device_.EventQuery(oldest->event) == Status::kSuccess;
    }
    Drop(oldest, passed);
    if (!passed) break;
  }
  const Tick seen = done();
  AcquireDone();
  return seen;
}

Tick StreamTimeline::Refresh() noexcept {
  // If no event can be recorded, the ticks stay open for the next attempt.
  if (open() != 0 && !SeeIdle()) static_cast<void>(Close());
  return Poll();
}

Status StreamTimeline::OrderBefore(Tick tick, Device& later_device,
                                   const Stream& later) noexcept {
  if (AcquireIfDone(tick)) return Status::kSuccess;
  if (forbids_waits_ || (no_waits_ != nullptr && no_waits_->Has(later))) {
    // A stream runs its own work in order.
    return later == stream_ ? Status::kSuccess : Status::kNotReady;
  }
  if (tick > recorded()) {
    const Status status = Close();
    if (status != Status::kSuccess) return status;
  }
  const CaptureGate::Touch touch(gate_, later_device, later);
  if (!touch) return Status::kNotReady;
  Recorded* recorded = HoldFor(tick);
  // The event was removed meanwhile: it completed, or the tick cannot be
  // covered.
  if (recorded == nullptr) {
    return AcquireIfDone(tick) ? Status::kSuccess : Status::kNotReady;
  }
  const Status status = later_device.StreamWaitEvent(later, recorded->event, 0);
  Drop(recorded, /*passed=*/false);
  return status;
}

Status StreamTimeline::AwaitDevice(bool is_ending) noexcept {
  const bool is_final = is_final_;
  Tick tick = noted();
  Status status = Status::kNotReady;
  {
    const CallGate::Pass pass(uses_);
    // A call by End() needs no pass, because the gate is closed.
    const CaptureGate::CallScope scope(&gate_, device_);
    const bool is_there = (pass || is_ending) && scope;
    if (is_there) status = device_.StreamSynchronize(stream_);
    NoteAnswer(status);
    STRATA_LOG_IF(Error, is_there && status != Status::kSuccess && !lost_)
        << "stream " << stream_.uid << ": cannot synchronise (" << status
        << "); waiting for the device";
  }
  // The stream was destroyed without notice, or the fault is transient. The
  // synchronisation of the device covers its work too (cuda_semantics.md M9),
  // but would end captures.
  const CaptureGate::Calm calm(gate_);
  if (status != Status::kSuccess && calm) {
    tick = noted();
    status = device_.Synchronize();
  }
  if (status != Status::kSuccess) return status;
  if (is_final) {
    SayAllIsDone();
  } else {
    RaiseDone(tick);
    Collect(tick);
  }
  return status;
}

void StreamTimeline::SayAllIsDone() noexcept {
  RaiseDone(std::numeric_limits<Tick>::max());
  Collect(std::numeric_limits<Tick>::max());
  closed_.store(true, std::memory_order_release);
}

Status StreamTimeline::AwaitAll() noexcept {
  // No work can have been submitted to a lost stream since.
  if (ended()) return Await(lost() ? noted() : NoteOnly());
  const CaptureGate::Calm calm(gate_);
  return calm ? AwaitDevice() : Await(NoteOnly());
}

Status StreamTimeline::Await(Tick tick) noexcept {
  if (AcquireIfDone(tick)) return Status::kSuccess;
  Status status = Status::kSuccess;
  if (tick > recorded()) status = Close();
  if (status == Status::kNotReady) return status;
  Recorded* recorded = status == Status::kSuccess ? HoldFor(tick) : nullptr;
  if (recorded != nullptr) {
    {
      // A capture that begins meanwhile need not wait for this call.
      const CaptureGate::RelaxedScope relaxed(device_);
      status = relaxed ? device_.EventSynchronize(recorded->event)
                       : Status::kNotReady;
    }
    Drop(recorded, status == Status::kSuccess);
    if (status == Status::kSuccess) return status;
  }
  if (AcquireIfDone(tick)) return Status::kSuccess;
  const CaptureGate::Calm calm(gate_);
  return calm ? AwaitDevice() : Status::kNotReady;
}

void StreamTimeline::End() noexcept {
  if (ended()) {
    // Lost before. After this call no other stream is taken for this one.
    is_final_ = true;
    if (lost() && IsDone(noted())) SayAllIsDone();
    return;
  }
  // First, so that no other thread submits work after the last event.
  uses_.Close();
  // Covers the submitted work on memory that is not yet freed.
  noted_.fetch_add(1, std::memory_order_acq_rel);
  Status status = CloseNow();
  const bool is_recorded = status == Status::kSuccess;
  if (!is_recorded && status != Status::kNotReady) {
    status = AwaitDevice(/*is_ending=*/true);
  }
  closed_.store(status == Status::kSuccess, std::memory_order_release);
  ended_.store(true, std::memory_order_release);
  if (!is_recorded && closed()) RaiseDone(std::numeric_limits<Tick>::max());
  Recorded* last = Hold(0);
  if (last != nullptr) {
    Drop(last, /*passed=*/false);
  } else if (closed()) {
    RaiseDone(std::numeric_limits<Tick>::max());
  }
  is_final_ = !closed();
}

void StreamTimeline::RaiseDone(Tick tick) noexcept {
  // A thread that reads done() then knows all work that this thread saw
  // complete.
  ReleaseHostOrder(device_);
  StoreMax(done_, tick);
}

void StreamTimeline::RaiseOwed(Tick tick) noexcept { StoreMax(owed_, tick); }

void StreamTimeline::AcquireDone() noexcept {
  if (done() != 0) AcquireHostOrder(device_);
}

bool StreamTimeline::AcquireIfDone(Tick tick) noexcept {
  if (!IsDone(tick)) return false;
  AcquireDone();
  return true;
}

}  // namespace strata
