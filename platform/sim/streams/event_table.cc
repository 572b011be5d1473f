#include "strata/platform/sim/streams/event_table.h"

#include "strata/platform/sim/memory/device_windows.h"

namespace strata::sim {
namespace {

constexpr HandleSpace kEventHandles(0xE7);

}  // namespace

int DeviceOfEvent(Event event) { return kEventHandles.DeviceOf(event.value); }

Event EventTable::Create(bool keeps_time) {
  Event event{kEventHandles.At(device_, ++made_)};
  live_.try_emplace(event.value).first->second.keeps_time = keeps_time;
  return event;
}

}  // namespace strata::sim
