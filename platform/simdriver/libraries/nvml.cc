// The functions of NVML that count devices and their memory. They read
// STRATA_SIM_DRIVER themselves, because a program may call them before it
// starts the driver, and then fork.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "strata/platform/simdriver/driver_options.h"

namespace {

using strata::simdriver::DeviceUuidText;
using strata::simdriver::DriverOptions;
using strata::simdriver::ParseDriverOptions;

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kUnknown = 999;

struct Memory {
  std::uint64_t total, free, used;
};

struct Memory2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};

// A device is known by its number plus one, as a pointer.
using Handle = const char*;

int NumberOf(Handle device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device) - 1);
}

// Whether a pointer is missing among arguments.
template <typename... Values>
bool IsNull(const Values*... pointers) {
  return ((pointers == nullptr) || ...);
}

// Runs function(options) and returns its result.
template <typename Function>
int WithOptions(Function function) {
  try {
    return function(
        ParseDriverOptions(std::getenv("STRATA_SIM_DRIVER"), nullptr));
  } catch (const std::exception&) {
    return kUnknown;
  }
}

int PutHandle(int number, Handle* device) {
  if (IsNull(device)) return kInvalidArgument;
  return WithOptions([=](const DriverOptions& options) {
    if (number < 0 || number >= options.platform.sim_devices) return kNotFound;
    *device = reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number) + 1);
    return kSuccess;
  });
}

int PutText(const std::string& text, char* out, unsigned length) {
  if (IsNull(out)) return kInvalidArgument;
  if (text.size() >= length) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return WithOptions([](const DriverOptions&) { return kSuccess; });
}
int nvmlInit() { return nvmlInit_v2(); }
int nvmlShutdown() { return kSuccess; }

const char* nvmlErrorString(int result) {
  return result == kSuccess ? "Success" : "the NVML is simulated";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (IsNull(count)) return kInvalidArgument;
  return WithOptions([=](const DriverOptions& options) {
    *count = static_cast<unsigned>(options.platform.sim_devices);
    return kSuccess;
  });
}
int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* device) {
  return PutHandle(static_cast<int>(index), device);
}
int nvmlDeviceGetHandleByIndex(unsigned index, Handle* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* text, Handle* device) {
  if (IsNull(text, device)) return kInvalidArgument;
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(text, "%x:%x:", &domain, &bus) != 2) return kInvalidArgument;
  // PCI_BUS_ID of device_attributes.def.
  return PutHandle(static_cast<int>(bus) - 1, device);
}

int nvmlDeviceGetHandleByUUID(const char* text, Handle* device) {
  if (IsNull(text, device)) return kInvalidArgument;
  return WithOptions([=](const DriverOptions& options) {
    for (int i = 0; i < options.platform.sim_devices; ++i) {
      if (DeviceUuidText(i) == text) return PutHandle(i, device);
    }
    return kNotFound;
  });
}

int nvmlDeviceGetUUID(Handle device, char* out, unsigned length) {
  return PutText(DeviceUuidText(NumberOf(device)), out, length);
}

int nvmlDeviceGetIndex(Handle device, unsigned* index) {
  if (IsNull(index)) return kInvalidArgument;
  *index = static_cast<unsigned>(NumberOf(device));
  return kSuccess;
}

int nvmlDeviceGetName(Handle /*device*/, char* out, unsigned length) {
  return PutText("Strata simulated device", out, length);
}

int nvmlDeviceGetCudaComputeCapability(Handle /*device*/, int* major,
                                       int* minor) {
  if (IsNull(major, minor)) return kInvalidArgument;
  return WithOptions([=](const DriverOptions& options) {
    *major = options.compute_major;
    *minor = options.compute_minor;
    return kSuccess;
  });
}

// Each process counts the memory that it uses, so none counts as used here.
int nvmlDeviceGetMemoryInfo(Handle /*device*/, Memory* memory) {
  if (IsNull(memory)) return kInvalidArgument;
  return WithOptions([=](const DriverOptions& options) {
    const std::uint64_t total = options.platform.sim_memory_bytes;
    *memory = {total, total, 0};
    return kSuccess;
  });
}

int nvmlDeviceGetMemoryInfo_v2(Handle device, Memory2* memory) {
  if (IsNull(memory)) return kInvalidArgument;
  Memory plain{};
  const int result = nvmlDeviceGetMemoryInfo(device, &plain);
  *memory = {memory->version, plain.total, 0, plain.free, plain.used};
  return result;
}

int nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return PutText("595.0", out, length);
}

// Returns the version of cuDriverGetVersion.
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (IsNull(version)) return kInvalidArgument;
  using Function = int (*)(int*);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  void* found =
      driver == nullptr ? nullptr : dlsym(driver, "cuDriverGetVersion");
  if (found == nullptr) return kUnknown;
  return reinterpret_cast<Function>(found)(version);
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

}  // extern "C"
