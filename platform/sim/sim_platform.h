#ifndef STRATA_PLATFORM_SIM_SIM_PLATFORM_H_
#define STRATA_PLATFORM_SIM_SIM_PLATFORM_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"
#include "strata/platform/sim/host_ranges.h"
#include "strata/platform/sim/sim_device.h"
#include "strata/platform/stream.h"

namespace strata {

// Simulated devices that share one address space and one host.
//
// Errors: the constructor throws std::invalid_argument naming the flag that is
//   wrong: strata_sim_devices, strata_sim_memory or strata_sim_fault.
// Threads: any thread.
// Lifetime: two platforms know nothing of each other.
class SimPlatform final : public Platform {
 public:
  explicit SimPlatform(const PlatformOptions& options);
  ~SimPlatform() override;

  const char* name() const override { return "sim"; }
  int device_count() const override;
  Device& device(int ordinal) override { return sim_device(ordinal); }
  // `ordinal` is in [0, device_count()).
  SimDevice& sim_device(int ordinal);

  // One line for each device with leaks ("sim:0: 1 event"), or nothing.
  std::string LeakReport() const;

  // The device whose window of addresses holds `ptr`, or null.
  SimDevice* OwnerOf(DevicePtr ptr);
  // The device that made `event`, or null; the event may be gone.
  SimDevice* OwnerOf(Event event);
  HostRanges& host_ranges() { return host_ranges_; }
  // Guards all state of all devices: work of one may touch any other.
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  HostRanges host_ranges_;
  std::vector<std::unique_ptr<SimDevice>> devices_;
};

// Errors: as SimPlatform.
std::shared_ptr<Platform> MakeSimPlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SIM_PLATFORM_H_
