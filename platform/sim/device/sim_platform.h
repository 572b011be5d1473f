#ifndef STRATA_PLATFORM_SIM_DEVICE_SIM_PLATFORM_H_
#define STRATA_PLATFORM_SIM_DEVICE_SIM_PLATFORM_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "strata/platform/check/hazard_monitor.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"
#include "strata/platform/sim/bytes/host_views.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/graphs/capture_set.h"
#include "strata/platform/sim/graphs/graph_table.h"
#include "strata/platform/sim/graphs/user_objects.h"
#include "strata/platform/sim/memory/address_space.h"
#include "strata/platform/sim/memory/host_ranges.h"
#include "strata/platform/sim/memory/physical_memory.h"
#include "strata/platform/sim/memory/share_table.h"
#include "strata/platform/sim/memory/virtual_memory.h"
#include "strata/platform/sim/streams/scheduler.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// Simulated devices that share one address space and one host.
//
// Errors: the constructor throws std::invalid_argument that names the wrong
//   flag: strata_sim_devices, strata_sim_memory, strata_sim_data,
//   strata_sim_fault, strata_sim_progress, strata_sim_free,
//   strata_sim_check_hazards or strata_sim_capacity_steps. It throws
//   std::runtime_error that names strata_sim_data if the host has no room for
//   the devices' bytes.
// Threads: any thread.
// Lifetime: platforms are independent of each other.
class SimPlatform final : public Platform {
 public:
  explicit SimPlatform(const PlatformOptions& options);
  ~SimPlatform() override;

  const char* name() const override { return "sim"; }
  int device_count() const override {
    return static_cast<int>(devices_.size());
  }
  Device& device(int ordinal) override { return sim_device(ordinal); }
  DeviceWork* work(int ordinal) override { return &sim_device(ordinal); }
  std::optional<std::uint64_t> hazard_count() const override;
  // `ordinal` is in [0, device_count()).
  SimDevice& sim_device(int ordinal) {
    return *devices_[static_cast<std::size_t>(ordinal)];
  }

  // The checker of the calls of all devices; null unless the options enable it.
  check::HazardMonitor* hazard_monitor() { return hazard_monitor_.get(); }

  // Notes the run of a kernel without a DeviceWork: it may have written any
  // memory of any device.
  void NoteUnknownKernel();

  // One line for each device with leaks ("sim:0: 1 event"), or "".
  std::string LeakReport() const;

  // The device with `ptr` in one of its address windows, or null.
  SimDevice* OwnerOf(DevicePtr ptr);
  // The device that created `event`, or null. The event may be destroyed.
  SimDevice* OwnerOf(Event event);
  // The device that owns `pool`, or null. The pool may be destroyed.
  SimDevice* OwnerOf(MemPool pool);
  HostRanges& host_ranges() { return host_ranges_; }
  // Under mutex().
  PhysicalMemory& physical_memory() { return physical_memory_; }
  VirtualMemory& virtual_memory() { return virtual_memory_; }
  AddressSpace& address_space() { return address_space_; }
  // Exported pools, by their handles.
  ShareTable& shared_pools() { return shared_pools_; }
  HostViews& host_views() { return host_views_; }
  // Guards all state of all devices, because work of one device may access any
  // other.
  std::mutex& mutex() { return mutex_; }
  // Guarded by mutex(), except as their headers say.
  Scheduler& scheduler() { return scheduler_; }
  FreePolicy& free_policy() { return free_policy_; }
  // Guarded by mutex(), except as their headers say.
  CaptureSet& captures() { return captures_; }
  GraphTable& graphs() { return graphs_; }
  UserObjectTable& user_objects() { return user_objects_; }

 private:
  const std::shared_ptr<check::HazardMonitor> hazard_monitor_;
  std::mutex mutex_;
  HostRanges host_ranges_;
  HostViews host_views_;            // guarded by mutex_
  PhysicalMemory physical_memory_;  // guarded by mutex_
  VirtualMemory virtual_memory_;    // guarded by mutex_
  AddressSpace address_space_;      // guarded by mutex_
  ShareTable shared_pools_;         // guarded by mutex_
  Scheduler scheduler_;             // guarded by mutex_
  FreePolicy free_policy_;          // guarded by mutex_
  CaptureSet captures_;             // guarded by mutex_
  GraphTable graphs_;               // guarded by mutex_
  UserObjectTable user_objects_;    // guarded by mutex_
  std::vector<std::unique_ptr<SimDevice>> devices_;
};

}  // namespace strata::sim

namespace strata {

using sim::SimPlatform;

// Errors: as SimPlatform.
std::shared_ptr<Platform> MakeSimPlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_DEVICE_SIM_PLATFORM_H_
