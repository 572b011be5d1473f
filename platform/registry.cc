#include "strata/platform/registry.h"

#include <stdexcept>

namespace strata {

#define STRATA_PLATFORM(name, make) \
  std::shared_ptr<Platform> make(const PlatformOptions& options);
#include "strata/platform/devices.def"
#undef STRATA_PLATFORM

namespace {

struct Entry {
  const char* name;
  std::shared_ptr<Platform> (*make)(const PlatformOptions&);
};

constexpr Entry kEntries[] = {
#define STRATA_PLATFORM(name, make) {#name, &make},
#include "strata/platform/devices.def"
#undef STRATA_PLATFORM
};

std::string KnownNames() {
  std::string names = "auto";
  for (const Entry& entry : kEntries) names += std::string(", ") + entry.name;
  return names;
}

std::shared_ptr<Platform> MakeFirst(const PlatformOptions& options) {
  std::string reasons;
  for (const Entry& entry : kEntries) {
    try {
      std::shared_ptr<Platform> platform = entry.make(options);
      if (platform->device_count() > 0) return platform;
      reasons += std::string("; ") + entry.name + ": no device";
    } catch (const std::runtime_error& error) {
      // A machine without this kind of device; wrong options go to the caller.
      reasons += std::string("; ") + entry.name + ": " + error.what();
    }
  }
  throw std::runtime_error("strata_platform: auto finds no device" + reasons);
}

std::shared_ptr<Platform> MakeNamed(const Entry& entry,
                                    const PlatformOptions& options) {
  std::shared_ptr<Platform> platform = entry.make(options);
  if (platform->device_count() == 0) {
    throw std::runtime_error(std::string("strata_platform: ") + entry.name +
                             " has no device");
  }
  return platform;
}

}  // namespace

std::vector<std::string> PlatformNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::shared_ptr<Platform> MakePlatform(const PlatformOptions& options) {
  if (options.platform == "auto") return MakeFirst(options);
  for (const Entry& entry : kEntries) {
    if (options.platform == entry.name) return MakeNamed(entry, options);
  }
  throw std::invalid_argument("strata_platform: unknown platform '" +
                              options.platform + "' (known: " + KnownNames() +
                              ")");
}

}  // namespace strata
