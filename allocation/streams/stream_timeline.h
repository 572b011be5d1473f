#ifndef STRATA_ALLOCATION_STREAMS_STREAM_TIMELINE_H_
#define STRATA_ALLOCATION_STREAMS_STREAM_TIMELINE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/call_gate.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/event_pool.h"
#include "strata/allocation/streams/lost_streams.h"
#include "strata/platform/device.h"
#include "strata/platform/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// The moments of one stream at which memory was freed, and how far the work of
// the stream is known to be: memory that the stream used may serve others once
// the moment of its free is done.
//
// Model: Note() names the moment "all work submitted so far" by a number, a
//   tick; ticks rise. An event recorded later covers every tick noted before,
//   so one event serves many: Close() records it. What the event was seen to
//   have passed is done.
// Errors: if no event can be recorded, the ticks stay open, and may be closed
//   by a later try. An error of an event query counts as "not done yet". A
//   device that does not know the stream any more is asked once: see Lose.
// Threads: any thread. No device call with the lock held. A thread that read
//   done() comes after the device work it stands for, and after the thread that
//   saw it done.
// Cost: Note is one atomic addition; Close and Poll are one device call each if
//   there is something to record or to ask for, else none.
// Lifetime: `device` outlives it. The stream may go first: see End.
// Source: DESIGN §5 (one event per stream and batch); cuda_semantics.md E1-E6,
//   §5.2 M2-M4; papers.md §4 (one event per epoch).
class StreamTimeline {
 public:
  using Tick = std::uint64_t;

  // Open ticks that fill a batch, for which Note() records an event by itself:
  // memory does not wait for ever.
  static constexpr Tick kBatch = 64;
  // Bytes that wait for open ticks, and fill a batch: so much memory is worth
  // an event of its own (0.4 us) at its free.
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
  // Most events under way. When there are more, an event is dropped if the next
  // one then stands for at most a tenth of the ticks under way.
  static constexpr std::size_t kPending = 32;

  StreamTimeline(Device& device, Stream stream,
                 std::shared_ptr<EventPool> events,
                 std::shared_ptr<const CaptureGate> gate,
                 std::shared_ptr<LostStreams> lost = nullptr);
  StreamTimeline(const StreamTimeline&) = delete;
  StreamTimeline& operator=(const StreamTimeline&) = delete;
  ~StreamTimeline();

  Device& device() const { return device_; }
  const Stream& stream() const { return stream_; }
  const std::shared_ptr<const CaptureGate>& gate() const { return held_gate_; }

  // The tick of all work submitted to the stream so far. Closes a full batch.
  // `bytes`: memory that waits for the tick, for kBatchBytes.
  Tick Note(std::size_t bytes = 0) noexcept;
  // `bytes` of memory wait for a tick that was noted before. Closes a full
  // batch.
  void AddWaiting(std::size_t bytes) noexcept;
  // The same without a device call, for a caller that holds a lock.
  Tick NoteOnly() noexcept {
    return noted_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  // Whether Note would now close a batch. A try that failed is made again one
  // batch later, not at every tick.
  bool IsNextToClose() const noexcept { return EndsBatch(noted() + 1); }
  Tick noted() const noexcept { return noted_.load(std::memory_order_acquire); }
  // Promises a tick for the present moment: owed(), which is the next one, and
  // which Settle notes. Cheaper than Note where the tick is seldom needed.
  void Owe() noexcept {
    const Tick next = noted() + 1;
    if (owed() < next) RaiseOwed(next);
  }
  // In the one order of all such loads: see SharedOrder::NoteFree.
  Tick owed() const noexcept { return owed_.load(std::memory_order_seq_cst); }
  // All work of these ticks is done, and the host has seen it.
  Tick done() const noexcept { return done_.load(std::memory_order_acquire); }
  bool IsDone(Tick tick) const noexcept { return tick <= done(); }
  // Tells an observer that this thread relies on done().
  void AcquireDone() noexcept;
  // Whether captures allow recording and asking now.
  bool MayTouch() const noexcept {
    if (!gate_.any()) return true;
    const CallGate::Pass pass(uses_);
    return !pass || gate_.MayTouch(device_, stream_);
  }
  // Whether captures are announced.
  bool during_capture() const noexcept { return gate_.any(); }
  // Ticks that no event covers yet.
  Tick open() const noexcept;

  // Records an event after all work submitted so far, unless no tick is open.
  // kNotReady: a capture does not allow it now.
  Status Close() noexcept;
  // The same for what is owed as well.
  Status Settle() noexcept;
  // Asks the stream itself whether it has work left; if not, all that was noted
  // is done, without an event. Not while captures are announced.
  bool SeeIdle() noexcept;
  // Asks for events until one is not done. Returns done(). Never waits.
  Tick Poll() noexcept;
  // Closes and polls, but asks the stream itself first if a tick is open: an
  // idle stream needs no event. Returns done(). Never waits.
  Tick Refresh() noexcept;
  // Makes what is submitted to `later` from now on start after the work of
  // `tick`, on the device. Closes first if needed. kNotReady as Close.
  Status OrderBefore(Tick tick, Device& later_device,
                     const Stream& later) noexcept;
  // Waits on the host until `tick` is done; for a stream that cannot be waited
  // for, its device.
  Status Await(Tick tick) noexcept;
  // The same for all work submitted so far, by waiting for the stream itself
  // and without an event, unless captures are announced. kNotReady as Close.
  Status AwaitAll() noexcept;
  // The stream is about to be destroyed: records its last event, which covers
  // ticks noted later as well. Work in it may be running. Waits for calls of
  // other threads that use the stream; none uses it afterwards.
  void End() noexcept;
  // The stream was destroyed although nobody announced its end, as `status`
  // says: logs that once, and makes no call for the stream any more. Ticks that
  // no event covers are done after a wait for the device. Adds the stream to
  // the lost ones. Nothing if the timeline has ended, or for a default stream,
  // which lasts.
  void Lose(Status status) noexcept;
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  // While the result lives and is true, the stream is there: End waits. Calls
  // of this timeline wait for End in turn, so make none meanwhile.
  CallGate::Pass Use() const { return CallGate::Pass(uses_); }
  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }

 private:
  // An event under way. While somebody uses it with the lock released, it stays
  // where it is.
  struct Recorded {
    Event event;    // null: a free slot
    Tick tick = 0;  // covers all up to this one
    std::uint32_t users = 0;
    bool passed = false;  // give it back once nobody uses it
  };

  bool EndsBatch(Tick tick) const noexcept {
    const Tick covered = recorded();
    return tick > covered && (tick - covered) % kBatch == 0;
  }
  // Counts `bytes`; whether a batch is full.
  bool FillsBatch(std::size_t bytes) noexcept;
  Tick recorded() const noexcept {
    return recorded_.load(std::memory_order_acquire);
  }
  // Whether the last event of an ended stream was recorded: it covers ticks
  // noted later as well, which are for work submitted before.
  bool closed() const noexcept {
    return closed_.load(std::memory_order_acquire);
  }
  // The tick that an event has to cover, to cover `tick`.
  Tick Coverable(Tick tick) const noexcept {
    return closed() && tick > recorded() ? recorded() : tick;
  }
  // The oldest event that covers `tick`, for the caller to use and Drop; null
  // if there is none.
  Recorded* Hold(Tick tick) noexcept;
  // As Hold, of a tick that the last event may cover; null if the tick is done,
  // or cannot be covered.
  Recorded* HoldFor(Tick tick) noexcept;
  // `passed`: the device is known to have passed it.
  void Drop(Recorded* used, bool passed) noexcept;
  // Returns the events that cover no tick after `tick` to the pool. `tick` is
  // done before the call, so that a thread that finds an event gone finds its
  // tick done. `used`: an event that the caller held until now, or null.
  void Collect(Tick tick, Recorded* used = nullptr) noexcept;
  // Events that nobody uses leave their slots, at least one if there are two.
  // Returns how many, in `removed`. Hold lock_.
  std::size_t Thin(std::array<Event, kPending>& removed) noexcept;
  // False if there is no slot for it.
  bool Keep(Event event, Tick tick) noexcept;
  Status CloseNow() noexcept;
  Status Record() noexcept;
  Status AwaitDevice(bool is_ending = false) noexcept;
  void RaiseDone(Tick tick) noexcept;
  // All ticks are done: the stream ended without a last event, and its device
  // was waited for.
  void SayAllIsDone() noexcept;
  void RaiseOwed(Tick tick) noexcept;
  // As Lose, if `status` says that the stream is gone.
  void NoteAnswer(Status status) noexcept;
  void Complain(Status status) noexcept;

  Device& device_;
  const Stream stream_;
  const std::shared_ptr<EventPool> events_;
  const std::shared_ptr<const CaptureGate> held_gate_;
  const CaptureGate& gate_;
  mutable CallGate uses_;  // of the stream; closed once it ended
  std::atomic<Tick> noted_{0};
  // Bytes that wait for open ticks, at least; 0 after a try to close.
  std::atomic<std::size_t> open_bytes_{0};
  std::atomic<Tick> owed_{0};
  std::atomic<Tick> recorded_{0};  // covered by an event, or done
  std::atomic<Tick> done_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> closed_{false};
  std::atomic<bool> lost_{false};
  // Ended without a last event: a wait for the device covers all ticks.
  std::atomic<bool> is_final_{false};
  std::atomic<bool> complained_{false};  // a failure to record was logged

  const std::shared_ptr<LostStreams> lost_streams_;  // null: none are listed
  std::unique_ptr<LostStreams::Lost> lost_entry_;    // for the list; null: used
  mutable SpinLock lock_;
  std::array<Recorded, kPending> pending_;  // in no order; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_STREAM_TIMELINE_H_
