#include "strata/platform/sim/sim_platform.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "strata/platform/sim/device_memory.h"
#include "strata/platform/sim/event_table.h"
#include "strata/platform/sim/fault_injector.h"
#include "strata/platform/sim/frame_table.h"

namespace strata {
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

void CheckFaultDevice(const FaultRule& rule, int devices) {
  if (rule.device < devices) return;
  throw std::invalid_argument(
      "strata_sim_fault: 'device=" + std::to_string(rule.device) +
      "' is no device (there are " + std::to_string(devices) + ")");
}

}  // namespace

SimPlatform::SimPlatform(const PlatformOptions& options)
    : physical_memory_(options.sim_fabric),
      virtual_memory_(&physical_memory_),
      address_space_(&physical_memory_, &host_ranges_),
      scheduler_(ParseProgress(options.sim_progress), options.sim_seed),
      free_policy_(options.sim_free, options.sim_seed) {
  address_space_.Add(&virtual_memory_);
  CheckDeviceCount(options.sim_devices);
  CheckMemory(options.sim_memory_bytes);
  const SimData data = ParseSimData(options.sim_data);
  const std::vector<FaultRule> faults = ParseFaultRules(options.sim_faults);
  for (const FaultRule& rule : faults) {
    CheckFaultDevice(rule, options.sim_devices);
  }
  for (int ordinal = 0; ordinal < options.sim_devices; ++ordinal) {
    devices_.push_back(std::make_unique<SimDevice>(
        this, ordinal, options.sim_memory_bytes, options.sim_seed, data));
    for (const FaultRule& rule : faults) devices_.back()->AddFault(rule);
  }
}

SimPlatform::~SimPlatform() = default;

int SimPlatform::device_count() const {
  return static_cast<int>(devices_.size());
}

SimDevice& SimPlatform::sim_device(int ordinal) {
  return *devices_[static_cast<std::size_t>(ordinal)];
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
  const int device = DeviceOfAddress(ptr);
  return device >= 0 && device < device_count() ? &sim_device(device) : nullptr;
}

SimDevice* SimPlatform::OwnerOf(Event event) {
  const int device = DeviceOfEvent(event);
  return device >= 0 && device < device_count() ? &sim_device(device) : nullptr;
}

std::shared_ptr<Platform> MakeSimPlatform(const PlatformOptions& options) {
  return std::make_shared<SimPlatform>(options);
}

}  // namespace strata
