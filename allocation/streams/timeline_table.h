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
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/platform.h"

namespace strata {

// The timelines of the streams that a facade has heard of, and what they share.
//
// Model: a stream has one timeline, made when it is first asked for, whichever
//   places its memory belongs to.
// Threads: any thread.
// Cost: a tree under a mutex; callers keep what they got.
// Lifetime: timelines may not outlive it. `platform` is shared.
class TimelineTable {
 public:
  explicit TimelineTable(std::shared_ptr<Platform> platform);
  TimelineTable(const TimelineTable&) = delete;
  TimelineTable& operator=(const TimelineTable&) = delete;

  CaptureGate& gate() { return gate_; }
  const CaptureGate& gate() const { return gate_; }

  // Makes no device call. Null if the platform has no such device, or the
  // stream no uid.
  //
  // Errors: std::bad_alloc.
  std::shared_ptr<StreamTimeline> Of(const Stream& stream);
  // Null if nobody asked for it yet.
  std::shared_ptr<StreamTimeline> Find(const Stream& stream) const noexcept;
  // Ends the stream's timeline, if there is one, and forgets it: a legacy or
  // per-thread stream that is used again has a new one.
  void StreamDestroyed(const Stream& stream) noexcept;

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;  // device, uid

  const std::shared_ptr<Platform> platform_;
  CaptureGate gate_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<EventPool>> events_;  // by device; by mutex_
  // Guarded by mutex_.
  std::map<Key, std::shared_ptr<StreamTimeline>> timelines_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_TIMELINE_TABLE_H_
