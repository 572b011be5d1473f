#include "strata/platform/simdriver/driver_options.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/faults/option_text.h"

namespace strata::simdriver {
namespace {

constexpr char kOptionsName[] = "STRATA_SIM_DRIVER";
constexpr char kVisibleName[] = "CUDA_VISIBLE_DEVICES";
constexpr sim::OptionText kText{kOptionsName};

bool ReadBool(std::string_view word, std::string_view value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  kText.Reject(word, "is neither true nor false");
}

void ReadCompute(std::string_view word, std::string_view value,
                 DriverOptions* options) {
  std::string_view rest = value;
  const std::string_view major = sim::OptionText::NextPart(&rest, '.');
  options->compute_major = static_cast<int>(kText.Number(word, major, 1, 99));
  options->compute_minor = static_cast<int>(kText.Number(word, rest, 0, 9));
}

// Digits, and ns, us or ms.
std::uint64_t ReadTime(std::string_view word, std::string_view value) {
  struct Unit {
    std::string_view suffix;
    std::uint64_t ns;
  };
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}};
  constexpr std::uint64_t kMostNs = 1'000'000'000'000;
  for (const Unit& unit : kUnits) {
    if (!value.ends_with(unit.suffix)) continue;
    value.remove_suffix(unit.suffix.size());
    return kText.Number(word, value, 0, kMostNs / unit.ns) * unit.ns;
  }
  kText.Reject(word, "is not a time such as 500ns, 10us or 2ms");
}

std::string ReadData(std::string_view word, std::string_view value) {
  for (const char* const known : {"phantom", "small", "backed", "poison"}) {
    if (value == known) return known;
  }
  kText.Reject(word, "is not phantom, small, backed or poison");
}

void ReadWord(std::string_view word, DriverOptions* options) {
  PlatformOptions& sim = options->platform;
  std::string_view value = word;
  const std::string_view name = sim::OptionText::NextPart(&value, '=');
  if (name.size() == word.size()) kText.Reject(word, "is not name=value");
  if (name == "devices") {
    sim.sim_devices =
        static_cast<int>(kText.Number(word, value, 1, sim::kMaxSimDevices));
  } else if (name == "memory") {
    sim.sim_memory_bytes = kText.Bytes(word, value);
  } else if (name == "fault") {
    sim.sim_faults = value;
  } else if (name == "data") {
    sim.sim_data = ReadData(word, value);
  } else if (name == "fabric") {
    sim.sim_fabric = ReadBool(word, value);
  } else if (name == "rdma") {
    sim.sim_rdma = ReadBool(word, value);
  } else if (name == "seed") {
    sim.sim_seed = kText.Number(word, value, 0, ~std::uint64_t{0});
  } else if (name == "progress") {
    sim.sim_progress = value;
  } else if (name == "free") {
    sim.sim_free = value;
  } else if (name == "check_hazards") {
    sim.sim_check_hazards = value;
  } else if (name == "capacity_steps") {
    sim.sim_capacity_steps = value;
  } else if (name == "kernel_time") {
    options->kernel_ns = ReadTime(word, value);
  } else if (name == "report") {
    options->report = ReadBool(word, value);
  } else if (name == "compute") {
    ReadCompute(word, value, options);
  } else {
    kText.Reject(word, "is no option");
  }
}

// The number of the device that `entry` names, or -1.
int FindVisible(std::string_view entry, int devices) {
  if (entry.substr(0, 4) == "GPU-" && entry.size() > 4) {
    // A prefix of the UUID is enough, unless several devices have it.
    int found = -1;
    for (int number = 0; number < devices; ++number) {
      if (DeviceUuidText(number).rfind(entry, 0) != 0) continue;
      if (found >= 0) return -1;
      found = number;
    }
    return found;
  }
  const bool is_number = !entry.empty() && entry.size() <= 4 &&
                         std::all_of(entry.begin(), entry.end(), [](char c) {
                           return c >= '0' && c <= '9';
                         });
  if (!is_number) return -1;
  const int number = std::atoi(std::string(entry).c_str());
  return number < devices ? number : -1;
}

std::vector<int> ReadVisible(const char* text, int devices) {
  std::vector<int> visible;
  if (text == nullptr) {
    for (int number = 0; number < devices; ++number) visible.push_back(number);
    return visible;
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = sim::OptionText::NextPart(&rest, ',');
    const int number = FindVisible(entry, devices);
    if (number < 0) break;
    if (std::find(visible.begin(), visible.end(), number) != visible.end()) {
      break;
    }
    visible.push_back(number);
  }
  return visible;
}

}  // namespace

DriverOptions ParseDriverOptions(const char* options, const char* visible) {
  DriverOptions result;
  std::string_view rest = options != nullptr ? options : "";
  while (!rest.empty()) {
    const std::string_view word = sim::OptionText::NextPart(&rest, ' ');
    if (!word.empty()) ReadWord(word, &result);
  }
  result.visible = ReadVisible(visible, result.platform.sim_devices);
  result.platform.sim_devices = static_cast<int>(result.visible.size());
  return result;
}

DriverOptions ReadDriverOptions() {
  return ParseDriverOptions(std::getenv(kOptionsName),
                            std::getenv(kVisibleName));
}

std::array<char, 16> DeviceUuid(int number) {
  std::array<char, 16> uuid = {'s', 't', 'r', 'a', 't', 'a', ' ', 's',
                               'i', 'm', ' ', 'g', 'p', 'u', 0,   0};
  uuid[14] = static_cast<char>(number >> 8);
  uuid[15] = static_cast<char>(number);
  return uuid;
}

std::string DeviceUuidText(int number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  const std::array<char, 16> uuid = DeviceUuid(number);
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace strata::simdriver
