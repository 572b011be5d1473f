#ifndef STRATA_PLATFORM_SIM_MEMORY_DEVICE_WINDOWS_H_
#define STRATA_PLATFORM_SIM_MEMORY_DEVICE_WINDOWS_H_

#include <cstdint>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

inline constexpr int kMaxSimDevices = 256;

// An interval of `bytes` addresses or handles for each device.
struct DeviceWindows {
  std::uint64_t begin;  // of device 0
  std::uint64_t bytes;

  constexpr std::uint64_t BeginOf(int device) const {
    return begin + static_cast<std::uint64_t>(device) * bytes;
  }
  // The device with `value` in its window, or -1.
  constexpr int DeviceOf(std::uint64_t value) const {
    if (value < begin) return -1;
    const std::uint64_t index = (value - begin) / bytes;
    return index < kMaxSimDevices ? static_cast<int>(index) : -1;
  }
};

// The handles of one kind of object. They look like pointers but address
// nothing. Each device has 2^32 of them, 64 apart; objects of the platform use
// the handles of device 0.
struct HandleSpace {
  explicit constexpr HandleSpace(std::uint64_t tag)
      : windows{tag << 48, std::uint64_t{1} << 38} {}

  void* At(int device, std::uint64_t number) const {
    return reinterpret_cast<void*>(windows.BeginOf(device) + number * 64);
  }
  int DeviceOf(const void* handle) const {
    return windows.DeviceOf(reinterpret_cast<std::uintptr_t>(handle));
  }

  DeviceWindows windows;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_DEVICE_WINDOWS_H_
