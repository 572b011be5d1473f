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
#include "strata/allocation/streams/side_streams.h"
#include "strata/allocation/streams/stream_sets.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/function_ref.h"
#include "strata/platform/platform.h"
#include "strata/platform/stream.h"

namespace strata {

// The timelines of the streams that a facade knows, and their shared objects.
//
// Model: a stream has one timeline for all places, created at the first request
//   for it. An event recorded by a caller is converted into a moment of an
//   internal stream that waits for it. So the caller may record or destroy the
//   event at once. Each stream of a caller has its own internal stream
//   (SideStreams), so a slow stream delays no other. If two streams have the
//   same handle, the earlier one was destroyed: its timeline is lost
//   (StreamTimeline::Lose).
// Threads: any thread. No device call with the lock held.
// Cost: a tree under a mutex; callers should keep the result.
// Lifetime: timelines may outlive it. `platform` is shared.
class TimelineTable {
 public:
  // A moment of a stream.
  struct Moment {
    std::shared_ptr<StreamTimeline> timeline;  // null: unknown
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

  // Returns the timeline of `stream`, and creates it if needed. No device call.
  // Null if the platform has no such device or the stream has no uid.
  //
  // Errors: std::bad_alloc.
  std::shared_ptr<StreamTimeline> Of(const Stream& stream);
  // Null if Of() was not called for the stream.
  std::shared_ptr<StreamTimeline> Find(const Stream& stream) const noexcept;
  // Calls `ask` with the device of the stream, unless the stream has ended or
  // has no timeline yet. StreamDestroyed() waits meanwhile. Returns true if it
  // called.
  bool WhileThere(const Stream& stream, FunctionRef<void(Device&)> ask) const;
  // CaptureGate::MayTouch() for a stream that may have ended; then false while
  // captures are announced.
  bool MayTouch(const Stream& stream) const noexcept;
  // Returns the moment at which `event`, as last recorded on `stream`,
  // completes. Unknown if the device call fails, if a capture may be involved,
  // or if the stream forbids waits.
  //
  // Errors: std::bad_alloc.
  // Cost: a device call, and one more the first time. Moments of one stream
  //   complete in the order of these calls.
  Moment MomentOf(const Stream& stream, Event event);
  // Records an event in every stream with ticks that no event covers. Call it
  // before a capture forbids this. Ticks that cannot be covered stay open.
  //
  // Errors: std::bad_alloc.
  void Settle();
  // Ends the timeline of the stream, if there is one, and removes it. A legacy
  // or per-thread stream that is used again receives a new one.
  void StreamDestroyed(const Stream& stream) noexcept;
  // Adds the stream to StreamsWithoutWaits until its end. It must have a uid,
  // and a device of the platform.
  //
  // Errors: std::bad_alloc.
  void ForbidWaits(const Stream& stream);
  // Handles a stream that was destroyed without an announcement. Does nothing
  // if it has no timeline.
  void Lose(const Stream& stream) noexcept;
  // Whether a stream was lost that TakeLost() has not returned.
  bool any_lost() const noexcept { return lost_->any(); }
  // Returns a lost stream, once; without uid if there is none.
  Stream TakeLost() noexcept;
  // Makes TakeLost() return the stream again, unless it was destroyed.
  void ReturnLost(const Stream& stream) noexcept;
  // Events of all devices in the pools.
  std::size_t kept_events() const noexcept;

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;  // device, uid

  bool Names(const Stream& stream) const noexcept;
  // The functions below need mutex_.
  // Stores the handle of a new stream. Returns the timeline that had it before,
  // or null.
  std::shared_ptr<StreamTimeline> ReplaceHandle(const Stream& stream);
  const std::shared_ptr<EventPool>& EventsOf(Device& device);
  // The timeline of the internal stream that waits for events of `stream`; null
  // if the device creates none.
  std::shared_ptr<StreamTimeline> WaitingFor(Device& device,
                                             const Stream& stream);

  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<CaptureGate> gate_ = std::make_shared<CaptureGate>();
  const std::shared_ptr<LostStreams> lost_ = std::make_shared<LostStreams>();
  const std::shared_ptr<StreamsWithoutWaits> no_waits_ =
      std::make_shared<StreamsWithoutWaits>();
  mutable std::mutex mutex_;
  // Event pools by device; guarded by mutex_.
  std::vector<std::shared_ptr<EventPool>> events_;
  // Guarded by mutex_.
  std::map<Key, std::shared_ptr<StreamTimeline>> timelines_;
  // Uid of the last stream with a handle of a device; guarded by mutex_.
  std::map<std::pair<std::int32_t, void*>, std::uint64_t> uids_;
  // By device; null: not needed so far; guarded by mutex_.
  std::vector<std::unique_ptr<SideStreams>> waiting_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_TIMELINE_TABLE_H_
