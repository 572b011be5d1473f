#ifndef STRATA_PLATFORM_SIM_STREAMS_EVENT_TABLE_H_
#define STRATA_PLATFORM_SIM_STREAMS_EVENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "strata/platform/sim/memory/device_windows.h"
#include "strata/platform/sim/streams/stream_set.h"
#include "strata/platform/stream.h"

namespace strata::sim {

inline constexpr HandleSpace kEventHandles(0xE7);

// The device that created an event, read from the handle; -1 if no device can
// have created it.
inline int DeviceOfEvent(Event event) {
  return kEventHandles.DeviceOf(event.value);
}

// The last record of an event: the work before it, and when that was complete.
struct EventState : StreamSnapshot {
  bool keeps_time = true;
  // Time of the calls at the record; 0 if progress is timed, as its clock
  // counts them.
  std::uint64_t called_ns = 0;
  // Time of the work at the record.
  std::uint64_t worked_ns = 0;
  // Time at which the work before the record was complete; null: worked_ns.
  std::shared_ptr<std::uint64_t> done_ns;

  std::uint64_t time_ns() const {
    return called_ns + (done_ns != nullptr ? *done_ns : worked_ns);
  }
};

// The events of one device, and the work that each was recorded after.
//
// Model: handles are never reused, so a use after destruction is always
//   detected.
// Threads: externally synchronised.
class EventTable {
 public:
  explicit EventTable(int device) : device_(device) {}

  Event Create(bool keeps_time = true) {
    const Event event{kEventHandles.At(device_, ++made_)};
    live_.try_emplace(event.value).first->second.keeps_time = keeps_time;
    return event;
  }
  // Returns false if there is no such event.
  bool Destroy(Event event) { return live_.erase(event.value) == 1; }
  // The state of the last record of the event, valid until Destroy. Null if
  // there is no such event. Empty if the event was never recorded.
  EventState* Find(Event event) {
    const auto found = live_.find(event.value);
    return found == live_.end() ? nullptr : &found->second;
  }
  std::size_t live_count() const { return live_.size(); }

 private:
  const int device_;
  std::uintptr_t made_ = 0;
  std::unordered_map<void*, EventState> live_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_EVENT_TABLE_H_
