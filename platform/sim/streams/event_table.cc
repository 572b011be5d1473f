#include "strata/platform/sim/streams/event_table.h"

namespace strata::sim {
namespace {

// Handles as in stream_table.cc, with another base.
constexpr std::uintptr_t kEventHandleBase = std::uintptr_t{0xE7} << 48;
constexpr std::uintptr_t kHandleBytes = 64;
constexpr int kDeviceShift = 38;

}  // namespace

int DeviceOfEvent(Event event) {
  const auto value = reinterpret_cast<std::uintptr_t>(event.value);
  if (value < kEventHandleBase) return -1;
  const std::uintptr_t device = (value - kEventHandleBase) >> kDeviceShift;
  return device < 1024 ? static_cast<int>(device) : -1;
}

Event EventTable::Create(bool keeps_time) {
  const std::uintptr_t value =
      kEventHandleBase +
      (static_cast<std::uintptr_t>(device_) << kDeviceShift) +
      ++made_ * kHandleBytes;
  Event event{reinterpret_cast<void*>(value)};
  live_.try_emplace(event.value).first->second.keeps_time = keeps_time;
  return event;
}

}  // namespace strata::sim
