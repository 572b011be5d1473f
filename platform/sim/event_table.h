#ifndef STRATA_PLATFORM_SIM_EVENT_TABLE_H_
#define STRATA_PLATFORM_SIM_EVENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "strata/platform/stream.h"

namespace strata {

// The device that made an event, read from its handle; -1 if none can have.
int DeviceOfEvent(Event event);

// The events of one device. Work is complete when its call returns, so every
// event always is, and a table of which exist is all there is to keep.
//
// Model: handles are never used again, so that a use after destruction is
//   always seen.
// Threads: externally synchronised.
class EventTable {
 public:
  explicit EventTable(int device) : device_(device) {}

  Event Create();
  // Returns false if there is no such event.
  bool Destroy(Event event) { return live_.erase(event.value) == 1; }
  bool Has(Event event) const { return live_.count(event.value) == 1; }
  std::size_t live_count() const { return live_.size(); }

 private:
  const int device_;
  std::uintptr_t made_ = 0;
  std::unordered_set<void*> live_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_EVENT_TABLE_H_
