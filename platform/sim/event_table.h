#ifndef STRATA_PLATFORM_SIM_EVENT_TABLE_H_
#define STRATA_PLATFORM_SIM_EVENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "strata/platform/sim/stream_set.h"
#include "strata/platform/stream.h"

namespace strata {

// The device that made an event, read from its handle; -1 if none can have.
int DeviceOfEvent(Event event);

// What an event was last recorded after, and when that was done.
struct EventState : StreamSnapshot {
  bool keeps_time = true;
  std::uint64_t recorded_ns = 0;           // the device's time at the record
  std::shared_ptr<std::uint64_t> done_ns;  // null: done at the record

  std::uint64_t time_ns() const {
    return done_ns != nullptr ? *done_ns : recorded_ns;
  }
};

// The events of one device, and what each was recorded after.
//
// Model: handles are never used again, so that a use after destruction is
//   always seen.
// Threads: externally synchronised.
class EventTable {
 public:
  explicit EventTable(int device) : device_(device) {}

  Event Create(bool keeps_time = true);
  // Returns false if there is no such event.
  bool Destroy(Event event) { return live_.erase(event.value) == 1; }
  // What the event was last recorded after, until Destroy; null if there is no
  // such event. Nothing, if it was never recorded.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_EVENT_TABLE_H_
