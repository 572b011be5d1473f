#include "strata/platform/registry.h"

#include <stdexcept>

#include "strata/platform/calls/call_trace.h"

namespace strata {

#define STRATA_PLATFORM(name, make) \
  std::shared_ptr<Platform> make(const PlatformOptions& options);
#include "strata/platform/built_devices.def"
#undef STRATA_PLATFORM

namespace {

struct Entry {
  const char* name;
  std::shared_ptr<Platform> (*make)(const PlatformOptions&);
};

constexpr Entry kEntries[] = {
#define STRATA_PLATFORM(name, make) {#name, &make},
#include "strata/platform/built_devices.def"
#undef STRATA_PLATFORM
};

std::string KnownNames() {
  std::string names = "auto";
  for (const Entry& entry : kEntries) names += std::string(", ") + entry.name;
  return names;
}

// The platform, or null with the reason. std::runtime_error means that the
// machine lacks this kind of device. Exceptions for wrong options go to the
// caller.
std::shared_ptr<Platform> TryMake(const Entry& entry,
                                  const PlatformOptions& options,
                                  std::string* reason) {
  *reason = std::string(entry.name) + ": ";
  try {
    std::shared_ptr<Platform> platform = entry.make(options);
    if (platform->device_count() > 0) return platform;
    *reason += "no device";
  } catch (const std::runtime_error& error) {
    *reason += error.what();
  }
  return nullptr;
}

std::shared_ptr<Platform> MakeFirst(const PlatformOptions& options) {
  std::string reasons;
  for (const Entry& entry : kEntries) {
    std::string reason;
    if (auto platform = TryMake(entry, options, &reason)) return platform;
    reasons += "; " + reason;
  }
  throw std::runtime_error("strata_platform: auto finds no device" + reasons);
}

std::shared_ptr<Platform> MakeNamed(const Entry& entry,
                                    const PlatformOptions& options) {
  std::string reason;
  if (auto platform = TryMake(entry, options, &reason)) return platform;
  throw std::runtime_error("strata_platform: " + reason);
}

std::shared_ptr<Platform> MakeUntraced(const PlatformOptions& options) {
  if (options.platform == "auto") return MakeFirst(options);
  for (const Entry& entry : kEntries) {
    if (options.platform == entry.name) return MakeNamed(entry, options);
  }
  throw std::invalid_argument("strata_platform: unknown platform '" +
                              options.platform + "' (known: " + KnownNames() +
                              ")");
}

}  // namespace

std::vector<std::string> PlatformNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::shared_ptr<Platform> MakePlatform(const PlatformOptions& options) {
  std::shared_ptr<Platform> platform = MakeUntraced(options);
  if (!options.device_trace_path.empty()) {
    TraceCalls(*platform, options.device_trace_path);
  }
  return platform;
}

}  // namespace strata
