#ifndef STRATA_PLATFORM_PLATFORM_H_
#define STRATA_PLATFORM_PLATFORM_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "strata/platform/host/host_system.h"

namespace strata {

class Device;
class DeviceWork;

// The devices of one kind that a process sees.
//
// Threads: any thread.        Cost: no driver call after construction.
// Lifetime: shared by every facade built on it; outlives its Devices' users.
class Platform {
 public:
  Platform() = default;
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;
  virtual ~Platform() = default;

  // The name in devices.def: "sim", "cuda" …
  virtual const char* name() const = 0;
  virtual int device_count() const = 0;
  bool HasDevice(int ordinal) const {
    return ordinal >= 0 && ordinal < device_count();
  }
  // `ordinal` is in [0, device_count()).
  virtual Device& device(int ordinal) = 0;
  // For tests and benchmarks; null if the platform has none.
  virtual DeviceWork* work(int /*ordinal*/) { return nullptr; }
  // Number of hazards found so far: uses of one memory range that nothing
  // orders. nullopt if the calls of the devices are not checked.
  virtual std::optional<std::uint64_t> hazard_count() const {
    return std::nullopt;
  }
  // The host to which the devices are attached.
  virtual std::shared_ptr<HostSystem> host() { return MakeHostSystem(); }
};

}  // namespace strata

#endif  // STRATA_PLATFORM_PLATFORM_H_
