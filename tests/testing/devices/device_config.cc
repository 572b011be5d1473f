#include "strata/tests/testing/devices/device_config.h"

#include <cstdint>
#include <ostream>

namespace strata {
namespace {

DeviceConfig Simulated(const std::string& progress, const std::string& data) {
  DeviceConfig config;
  config.name = "sim_";
  config.name += progress;
  config.name += '_';
  config.name += data;
  config.options.platform = "sim";
  config.options.sim_devices = 2;
  config.options.sim_memory_bytes = std::uint64_t{256} << 20;
  config.options.sim_progress = progress;
  config.options.sim_data = data;
  return config;
}

DeviceConfig Seeded(std::uint64_t seed, const std::string& data) {
  DeviceConfig config = Simulated("seeded", data);
  config.name += '_';
  config.name += std::to_string(seed);
  config.options.sim_seed = seed;
  return config;
}

// Not for policies under which reading the state may change it.
DeviceConfig Faulted(const std::string& progress, const std::string& data) {
  DeviceConfig config = Simulated(progress, data);
  config.name += "_faulted";
  config.faulted = true;
  return config;
}

}  // namespace

std::vector<DeviceConfig> SimulatedDevices() {
  return {Simulated("inline", "phantom"),
          Simulated("inline", "backed"),
          Simulated("lazy", "phantom"),
          Simulated("lazy", "small"),
          Simulated("lazy", "backed"),
          Simulated("lazy", "poison"),
          Seeded(1, "phantom"),
          Seeded(2, "backed"),
          Seeded(3, "backed"),
          Seeded(4, "poison"),
          Simulated("timed", "phantom"),
          Simulated("timed", "backed"),
          Simulated("manual", "backed")};
}

std::vector<DeviceConfig> AllDevices() {
  std::vector<DeviceConfig> configs = SimulatedDevices();
  configs.push_back(Faulted("inline", "backed"));
  configs.push_back(Faulted("manual", "backed"));
  DeviceConfig cuda;
  cuda.name = "cuda";
  cuda.options.platform = "cuda";
  configs.push_back(cuda);
  cuda.name = "cuda_faulted";
  cuda.faulted = true;
  configs.push_back(cuda);
  return configs;
}

std::string NameOfDevice(const ::testing::TestParamInfo<DeviceConfig>& info) {
  return info.param.name;
}

std::ostream& operator<<(std::ostream& out, const DeviceConfig& config) {
  return out << config.name;
}

}  // namespace strata
