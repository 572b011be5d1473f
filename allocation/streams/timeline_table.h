#ifndef STRATA_ALLOCATION_STREAMS_TIMELINE_TABLE_H_
#define STRATA_ALLOCATION_STREAMS_TIMELINE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/event_pool.h"
#include "strata/allocation/streams/lost_streams.h"
#include "strata/allocation/streams/side_streams.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/platform.h"
#include "strata/platform/stream.h"

namespace strata {

// The timelines of the streams that a facade has heard of, and what they share.
//
// Model: a stream has one timeline, made when it is first asked for, whichever
//   places its memory belongs to. Events that callers record are turned into
//   moments of a stream of the table's own, which waits for them: so the caller
//   may record or destroy the event at once. Each stream of a caller has a
//   stream of the table (SideStreams), so a slow one delays no other. A stream
//   with the handle of another one says that the other one was destroyed: then
//   its timeline is lost (StreamTimeline::Lose).
// Threads: any thread. No device call with the lock held.
// Cost: a tree under a mutex; callers keep what they got.
// Lifetime: timelines may outlive it. `platform` is shared.
class TimelineTable {
 public:
  // A moment of a stream.
  struct Moment {
    std::shared_ptr<StreamTimeline> timeline;  // null: it is not known
    StreamTimeline::Tick tick = 0;
  };

  explicit TimelineTable(std::shared_ptr<Platform> platform);
  TimelineTable(const TimelineTable&) = delete;
  TimelineTable& operator=(const TimelineTable&) = delete;
  ~TimelineTable();

  const std::shared_ptr<Platform>& platform() const { return platform_; }

  CaptureGate& gate() { return *gate_; }
  const CaptureGate& gate() const { return *gate_; }
  const std::shared_ptr<CaptureGate>& shared_gate() const { return gate_; }

  // Makes no device call. Null if the platform has no such device, or the
  // stream no uid.
  //
  // Errors: std::bad_alloc.
  std::shared_ptr<StreamTimeline> Of(const Stream& stream);
  // Null if nobody asked for it yet.
  std::shared_ptr<StreamTimeline> Find(const Stream& stream) const noexcept;
  // Calls `ask` with the stream's device unless the stream has ended, or nobody
  // asked for its timeline yet; StreamDestroyed waits meanwhile. Whether it
  // did.
  bool WhileThere(const Stream& stream, FunctionRef<void(Device&)> ask) const;
  // CaptureGate::MayTouch for a stream that may have ended: then, false while
  // captures are announced.
  bool MayTouch(const Stream& stream) const noexcept;
  // The moment at which `event`, as it was last recorded on `stream`, is
  // complete. Not known if the device refuses, or a capture may be involved.
  //
  // Errors: std::bad_alloc.
  // Cost: a device call, one more the first time; moments of one stream pass in
  //   the order of these calls.
  Moment MomentOf(const Stream& stream, Event event);
  // Records an event in every stream of which something is not covered by one:
  // what captures would forbid. What cannot be covered stays as it is.
  //
  // Errors: std::bad_alloc.
  void Settle();
  // Ends the stream's timeline, if there is one, and forgets it: a legacy or
  // per-thread stream that is used again has a new one.
  void StreamDestroyed(const Stream& stream) noexcept;
  // The stream was destroyed although nobody announced its end. Nothing if
  // nobody asked for its timeline.
  void Lose(const Stream& stream) noexcept;
  // Those that were, until StreamDestroyed is called for them.
  LostStreams& lost() { return *lost_; }
  // Events of all devices that wait for their next use.
  std::size_t kept_events() const noexcept;

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;  // device, uid

  bool Names(const Stream& stream) const noexcept;
  // Hold mutex_, here and below.
  // Notes the handle of a stream that is new. Returns the timeline of the
  // stream that had the handle before; null if there is none.
  std::shared_ptr<StreamTimeline> ReplaceHandle(const Stream& stream);
  const std::shared_ptr<EventPool>& EventsOf(Device& device);
  // The timeline of the stream that waits for events of `stream`; null if the
  // device creates none.
  std::shared_ptr<StreamTimeline> WaitingFor(Device& device,
                                             const Stream& stream);

  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<CaptureGate> gate_ = std::make_shared<CaptureGate>();
  const std::shared_ptr<LostStreams> lost_ = std::make_shared<LostStreams>();
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<EventPool>> events_;  // by device; by mutex_
  // Guarded by mutex_.
  std::map<Key, std::shared_ptr<StreamTimeline>> timelines_;
  // The uid that a handle of a device had last; guarded by mutex_.
  std::map<std::pair<std::int32_t, void*>, std::uint64_t> uids_;
  // By device, null: not needed so far; guarded by mutex_.
  std::vector<std::unique_ptr<SideStreams>> waiting_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_TIMELINE_TABLE_H_
