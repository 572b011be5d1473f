#ifndef STRATA_ALLOCATION_STREAMS_STREAM_TIMELINE_H_
#define STRATA_ALLOCATION_STREAMS_STREAM_TIMELINE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/reclaim/call_gate.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/event_pool.h"
#include "strata/allocation/streams/stream_sets.h"
#include "strata/platform/device.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// The progress of one stream, as ticks. Memory that the stream used may be
// reused when the tick of its free is done.
//
// Model: Note() assigns a number, a tick, to the moment "all work submitted so
//   far"; ticks increase. An event recorded later covers every tick noted
//   before, so one event serves many ticks. Close() records it. When an event
//   has completed, the ticks that it covers are done.
// Errors: if no event can be recorded, the ticks stay open, and a later call
//   may close them. A failed event query counts as "not done yet". If the
//   device no longer knows the stream, it is not asked again: see Lose().
// Threads: any thread. No device call with the lock held. A thread that reads
//   done() is ordered after the device work of these ticks, and after the
//   thread that saw it complete.
// Cost: Note() is one atomic addition. Close() and Poll() are one device call
//   each if there is an event to record or to query, else none.
// Lifetime: `device` must outlive it. The stream may be destroyed earlier: see
//   End().
// Source: DESIGN §5 (one event per stream and batch); cuda_semantics.md E1-E6,
//   §5.2 M2-M4; papers.md §4 (one event per epoch).
class StreamTimeline {
 public:
  using Tick = std::uint64_t;

  // Number of open ticks in a full batch. Note() then records an event, so that
  // memory does not wait for ever.
  static constexpr Tick kBatch = 64;
  // Bytes that wait for open ticks in a full batch. So much memory is worth an
  // event of its own (0.4 us) at its free.
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
  // Most pending events. Beyond that, an event is dropped if its successor then
  // covers at most a tenth of the pending ticks.
  static constexpr std::size_t kPending = 32;

  StreamTimeline(Device& device, Stream stream,
                 std::shared_ptr<EventPool> events,
                 std::shared_ptr<const CaptureGate> gate,
                 std::shared_ptr<LostStreams> lost = nullptr,
                 std::shared_ptr<const StreamsWithoutWaits> no_waits = nullptr);
  StreamTimeline(const StreamTimeline&) = delete;
  StreamTimeline& operator=(const StreamTimeline&) = delete;
  ~StreamTimeline();

  Device& device() const { return device_; }
  const Stream& stream() const { return stream_; }
  const std::shared_ptr<const CaptureGate>& gate() const { return held_gate_; }

  // Returns the tick of all work submitted to the stream so far. Closes a full
  // batch. `bytes`: memory that waits for the tick, for kBatchBytes.
  Tick Note(std::size_t bytes = 0) noexcept;
  // Adds `bytes` that wait for a tick noted before. Closes a full batch.
  void AddWaiting(std::size_t bytes) noexcept;
  // Note() without a device call, for a caller that holds a lock.
  Tick NoteOnly() noexcept {
    return noted_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  // True if Note() would now close a batch; after a failure, one batch later.
  bool IsNextToClose() const noexcept { return EndsBatch(noted() + 1); }
  Tick noted() const noexcept { return noted_.load(std::memory_order_acquire); }
  // Promises a tick for the present moment: owed() is the next tick, which
  // Settle() notes. Cheaper than Note() if the tick is rarely needed.
  void Owe() noexcept {
    const Tick next = noted() + 1;
    if (owed() < next) RaiseOwed(next);
  }
  // Sequentially consistent with the loads in SharedOrder::NoteFree().
  Tick owed() const noexcept { return owed_.load(std::memory_order_seq_cst); }
  // Last tick that is known to be complete.
  Tick done() const noexcept { return done_.load(std::memory_order_acquire); }
  bool IsDone(Tick tick) const noexcept { return tick <= done(); }
  // Reports to an observer that this thread relies on done().
  void AcquireDone() noexcept;
  // AcquireDone() if `tick` is done; else returns false.
  bool AcquireIfDone(Tick tick) noexcept;
  // True if captures permit recording and queries now.
  bool MayTouch() const noexcept {
    if (!gate_.any()) return true;
    const CallGate::Pass pass(uses_);
    return !pass || gate_.MayTouch(device_, stream_);
  }
  // True if captures are announced.
  bool during_capture() const noexcept { return gate_.any(); }
  // Number of ticks that no event covers yet.
  Tick open() const noexcept;

  // Records an event after all work submitted so far, if a tick is open.
  // kNotReady: a capture does not permit it now.
  Status Close() noexcept;
  // Notes the tick that Owe() promised, if any, then does the same as Close().
  Status Settle() noexcept;
  // Queries whether the stream is idle. If so, all noted ticks are done,
  // without an event. Makes no query while captures are announced.
  bool SeeIdle() noexcept;
  // Queries events until one is not complete. Returns done(). Never waits.
  Tick Poll() noexcept;
  // Closes and polls. If a tick is open, first queries the stream: an idle
  // stream needs no event. Returns done(). Never waits.
  Tick Refresh() noexcept;
  // Orders work submitted to `later` from now on after the work of `tick`, on
  // the device. Closes first if needed. kNotReady as for Close(), and if one of
  // the streams is in StreamsWithoutWaits.
  Status OrderBefore(Tick tick, Device& later_device,
                     const Stream& later) noexcept;
  // From now on no stream waits for this one on the device.
  void ForbidWaits() noexcept { forbids_waits_ = true; }
  bool forbids_waits() const noexcept { return forbids_waits_; }
  const std::shared_ptr<const StreamsWithoutWaits>& no_waits() const {
    return no_waits_;
  }
  // True if there is a stream in StreamsWithoutWaits.
  bool some_forbid_waits() const noexcept {
    return no_waits_ != nullptr && no_waits_->any();
  }
  // Waits on the host until `tick` is done. If the stream cannot be waited for,
  // waits for its device.
  Status Await(Tick tick) noexcept;
  // Waits for all work submitted so far, by waiting for the stream without an
  // event, unless captures are announced. kNotReady as for Close().
  Status AwaitAll() noexcept;
  // Announces that the stream is about to be destroyed. Records its last event,
  // which also covers ticks noted later. Work in the stream may still be
  // running. Waits for calls of other threads that use the stream; no call uses
  // it afterwards.
  void End() noexcept;
  // Call it with a status which shows that the stream was destroyed without an
  // announcement. Logs that once, and makes no more calls for the stream. Ticks
  // without an event are done after a wait for the device. Does nothing after
  // End(), or for a default stream.
  void Lose(Status status) noexcept;
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  // True once for a lost stream, and again after ReturnLost().
  bool TakeLost() noexcept {
    return lost() && ended() && !lost_taken_.exchange(true);
  }
  void ReturnLost() noexcept { lost_taken_ = false; }
  // While the result exists and is true, the stream exists: End() waits. Do not
  // call this timeline meanwhile, because its calls wait for End().
  CallGate::Pass Use() const { return CallGate::Pass(uses_); }
  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }

 private:
  // A pending event. While `users` is not 0, it stays in its slot.
  struct Recorded {
    Event event;    // null: a free slot
    Tick tick = 0;  // covers all ticks up to this one
    std::uint32_t users = 0;
    bool passed = false;  // return it to the pool when it has no users
  };

  bool EndsBatch(Tick tick) const noexcept {
    const Tick covered = recorded();
    return tick > covered && (tick - covered) % kBatch == 0;
  }
  // Returns true if `bytes` more fill a batch.
  bool FillsBatch(std::size_t bytes) noexcept;
  Tick recorded() const noexcept {
    return recorded_.load(std::memory_order_acquire);
  }
  // The last event of the ended stream was recorded. It also covers later
  // ticks.
  bool closed() const noexcept {
    return closed_.load(std::memory_order_acquire);
  }
  // The tick that an event must cover to cover `tick`.
  Tick Coverable(Tick tick) const noexcept {
    return closed() && tick > recorded() ? recorded() : tick;
  }
  // The oldest event that covers `tick`, with one more user until Drop(); or
  // null.
  Recorded* Hold(Tick tick) noexcept;
  // Like Hold(), for a tick that the last event of the stream may cover.
  Recorded* HoldFor(Tick tick) noexcept;
  // Removes a user. `passed`: the event is known to have completed.
  void Drop(Recorded* used, bool passed) noexcept;
  // Returns events up to `tick` to the pool. `tick` must be done before: a
  // thread that finds no event finds its tick done. `used`: an event held until
  // now, or null.
  void Collect(Tick tick, Recorded* used = nullptr) noexcept;
  // Takes events without users out of their slots, at least one if there are
  // two. Returns their number. Needs lock_.
  std::size_t Thin(std::array<Event, kPending>& removed) noexcept;
  bool Keep(Event event, Tick tick) noexcept;
  Status CloseNow() noexcept;
  Status Record() noexcept;
  Status AwaitDevice(bool is_ending = false) noexcept;
  void RaiseDone(Tick tick) noexcept;
  // All ticks are done: the device was waited for after the end of the stream.
  void SayAllIsDone() noexcept;
  void RaiseOwed(Tick tick) noexcept;
  void NoteAnswer(Status status) noexcept;
  void Complain(Status status) noexcept;

  Device& device_;
  const Stream stream_;
  const std::shared_ptr<EventPool> events_;
  const std::shared_ptr<const CaptureGate> held_gate_;
  const CaptureGate& gate_;
  mutable CallGate uses_;  // of the stream; closed after its end
  std::atomic<Tick> noted_{0};
  // Lower bound of the bytes that wait for open ticks; 0 after an attempt to
  // close.
  std::atomic<std::size_t> open_bytes_{0};
  std::atomic<Tick> owed_{0};
  std::atomic<Tick> recorded_{0};  // last tick covered by an event, or done
  std::atomic<Tick> done_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> lost_{false};
  std::atomic<bool> lost_taken_{false};  // see TakeLost()
  // The timeline ended without a last event: a wait for the device covers all
  // ticks.
  std::atomic<bool> is_final_{false};
  std::atomic<bool> complained_{false};  // a failure to record was logged

  const std::shared_ptr<LostStreams> lost_streams_;            // null: no list
  const std::shared_ptr<const StreamsWithoutWaits> no_waits_;  // null: none
  std::atomic<bool> forbids_waits_{false};
  mutable SpinLock lock_;
  std::array<Recorded, kPending> pending_;  // unordered; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_STREAM_TIMELINE_H_
