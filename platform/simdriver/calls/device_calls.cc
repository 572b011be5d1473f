// Devices and their figures.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "strata/platform/simdriver/attributes.h"
#include "strata/platform/simdriver/context.h"

namespace strata::simdriver {
namespace {

constexpr char kName[] = "Strata simulated GPU";

// A PCI address that differs from the addresses of the other devices.
std::string PciBusId(int ordinal) {
  char text[32];
  std::snprintf(text, sizeof(text), "0000:%02X:00.0",
                static_cast<unsigned>(ordinal + 1) & 0xff);
  return text;
}

// Fits `text` into `length` characters, the terminating one included.
CUresult PutText(const std::string& text, char* out, int length) {
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t count =
      std::min(text.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(out, text.data(), count);
  out[count] = '\0';
  return CUDA_SUCCESS;
}

// The value of `attribute` of device `ordinal`: 0 if the device lacks the
// feature.
int DeviceAttribute(CUdevice_attribute attribute, int ordinal, const Caps& caps,
                    const DriverOptions& options) {
  const std::pair<CUdevice_attribute, int> rows[] = {
#define STRATA_SIM_ATTRIBUTE(name, value) {CU_DEVICE_ATTRIBUTE_##name, value},
#include "strata/platform/simdriver/device_attributes.def"
#undef STRATA_SIM_ATTRIBUTE
  };
  const auto* const found =
      std::find_if(std::begin(rows), std::end(rows),
                   [&](const auto& row) { return row.first == attribute; });
  return found != std::end(rows) ? found->second : 0;
}

}  // namespace

CUresult DeviceGetCount(int* count) {
  return PutIf(Ready(), count,
               [] { return FindProcess()->platform.device_count(); });
}

CUresult DeviceGet(CUdevice* device, int ordinal) {
  return PutIf(CheckOrdinal(ordinal), device, [&] { return ordinal; });
}

CUresult DeviceGetName(char* name, int length, CUdevice device) {
  return OfDevice(device, name,
                  [&](SimDevice&) { return PutText(kName, name, length); });
}

CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return OfDevice(device, uuid, [&](SimDevice&) {
    const int number =
        FindProcess()->options.visible[static_cast<std::size_t>(device)];
    const std::array<char, 16> bytes = DeviceUuid(number);
    std::copy(bytes.begin(), bytes.end(), uuid->bytes);
    return CUDA_SUCCESS;
  });
}

CUresult DeviceGetUuid2(CUuuid* uuid, CUdevice device) {
  return DeviceGetUuid(uuid, device);
}

CUresult DeviceGetPciBusId(char* text, int length, CUdevice device) {
  return OfDevice(device, text, [&](SimDevice&) {
    return PutText(PciBusId(device), text, length);
  });
}

CUresult DeviceGetByPciBusId(CUdevice* device, const char* text) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < FindProcess()->platform.device_count(); ++i) {
    if (PciBusId(i) != text) continue;
    *device = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult DeviceTotalMem(std::size_t* bytes, CUdevice device) {
  return PutIf(CheckOrdinal(device), bytes,
               [] { return FindProcess()->options.platform.sim_memory_bytes; });
}

CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute,
                            CUdevice ordinal) {
  return OfDevice(ordinal, value, [&](SimDevice& device) {
    if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *value = DeviceAttribute(attribute, ordinal, device.caps(),
                             FindProcess()->options);
    return CUDA_SUCCESS;
  });
}

CUresult DeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return OfDevice(device, major, [&](SimDevice&) {
    if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = FindProcess()->options.compute_major;
    *minor = FindProcess()->options.compute_minor;
    return CUDA_SUCCESS;
  });
}

CUresult DeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  CUresult result = CheckOrdinal(device);
  if (result == CUDA_SUCCESS) result = CheckOrdinal(peer);
  if (result != CUDA_SUCCESS) return result;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bool answer = false;
  const Status status =
      FindProcess()->platform.device(device).CanAccessPeer(peer, &answer);
  if (status == Status::kSuccess) *can = answer ? 1 : 0;
  return ToResult(status);
}

CUresult DeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute,
                               CUdevice device, CUdevice peer) {
  int can = 0;
  const CUresult result = DeviceCanAccessPeer(&can, device, peer);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr || device == peer) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? can : 0;
  return CUDA_SUCCESS;
}

}  // namespace strata::simdriver
