#include "strata/platform/sim/device/sim_platform.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "strata/platform/sim/faults/fault_injector.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/frame_table.h"
#include "strata/platform/sim/pools/pool_space.h"
#include "strata/platform/sim/pools/pool_table.h"
#include "strata/platform/sim/streams/event_table.h"

namespace strata::sim {
namespace {

void CheckDeviceCount(int devices) {
  if (devices >= 1 && devices <= kMaxSimDevices) return;
  throw std::invalid_argument("strata_sim_devices: " + std::to_string(devices) +
                              " is not in [1, " +
                              std::to_string(kMaxSimDevices) + "]");
}

void CheckMemory(std::uint64_t bytes) {
  if (bytes >= kFrameBytes && bytes <= kMaxDeviceMemoryBytes) return;
  throw std::invalid_argument("strata_sim_memory: " + std::to_string(bytes) +
                              " bytes are not in [" +
                              std::to_string(kFrameBytes) + " (one frame), " +
                              std::to_string(kMaxDeviceMemoryBytes) + "]");
}

// `device` is the ordinal in a rule of `option`.
void CheckRuleDevice(const char* option, int device, int devices) {
  if (device < devices) return;
  std::string text(option);
  text += ": 'device=" + std::to_string(device);
  text += "' is no device (there are " + std::to_string(devices) + ")";
  throw std::invalid_argument(text);
}

}  // namespace

SimPlatform::SimPlatform(const PlatformOptions& options)
    : hazard_monitor_(check::MakeHazardMonitor(options.sim_check_hazards)),
      physical_memory_(options.sim_fabric, options.sim_rdma),
      virtual_memory_(&physical_memory_, &host_views_),
      address_space_(&physical_memory_, &host_ranges_),
      scheduler_(ParseProgress(options.sim_progress), options.sim_seed),
      free_policy_(options.sim_free, options.sim_seed) {
  address_space_.Add(&virtual_memory_);
  CheckDeviceCount(options.sim_devices);
  CheckMemory(options.sim_memory_bytes);
  const SimData data = ParseSimData(options.sim_data);
  const std::vector<FaultRule> faults = ParseFaultRules(options.sim_faults);
  for (const FaultRule& rule : faults) {
    CheckRuleDevice("strata_sim_fault", rule.device, options.sim_devices);
  }
  const std::vector<CapacityStep> steps =
      ParseCapacitySteps(options.sim_capacity_steps);
  for (const CapacityStep& step : steps) {
    CheckRuleDevice("strata_sim_capacity_steps", step.device,
                    options.sim_devices);
  }
  for (int ordinal = 0; ordinal < options.sim_devices; ++ordinal) {
    devices_.push_back(std::make_unique<SimDevice>(
        this, ordinal, options.sim_memory_bytes, options.sim_seed, data));
    if (hazard_monitor_ != nullptr) {
      devices_.back()->AddCallObserver(
          [monitor = hazard_monitor_](const CallRecord& record) {
            monitor->Observe(record);
          });
    }
    for (const FaultRule& rule : faults) devices_.back()->AddFault(rule);
    for (const CapacityStep& step : steps) {
      devices_.back()->AddCapacityStep(step);
    }
  }
}

SimPlatform::~SimPlatform() { user_objects_.RunDestructors(&mutex_); }

std::optional<std::uint64_t> SimPlatform::hazard_count() const {
  if (hazard_monitor_ == nullptr) return std::nullopt;
  return hazard_monitor_->hazard_count();
}

std::string SimPlatform::LeakReport() const {
  std::string report;
  for (const auto& device : devices_) {
    const std::string leaks = ToString(device->Leaks());
    if (leaks.empty()) continue;
    report += "sim:" + std::to_string(device->ordinal()) + ": " + leaks + "\n";
  }
  return report;
}

SimDevice* SimPlatform::OwnerOf(DevicePtr ptr) {
  int device = DeviceOfAddress(ptr);
  if (device < 0) device = DeviceOfPoolAddress(ptr);
  if (device < 0) device = DeviceOfGraphAddress(ptr);
  return device >= 0 && device < device_count() ? &sim_device(device) : nullptr;
}

SimDevice* SimPlatform::OwnerOf(Event event) {
  const int device = DeviceOfEvent(event);
  return device >= 0 && device < device_count() ? &sim_device(device) : nullptr;
}

SimDevice* SimPlatform::OwnerOf(MemPool pool) {
  const int device = DeviceOfPool(pool);
  return device >= 0 && device < device_count() ? &sim_device(device) : nullptr;
}

}  // namespace strata::sim

namespace strata {

std::shared_ptr<Platform> MakeSimPlatform(const PlatformOptions& options) {
  return std::make_shared<SimPlatform>(options);
}

}  // namespace strata
