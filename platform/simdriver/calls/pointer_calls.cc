// Queries of addresses.

#include <cstdint>

#include "strata/platform/simdriver/context.h"

namespace strata::simdriver {
namespace {

template <class Value>
Status Put(void* out, Value value) {
  *static_cast<Value*>(out) = value;
  return Status::kSuccess;
}

unsigned DriverType(MemoryType type) {
  switch (type) {
    case MemoryType::kHost:
      return CU_MEMORYTYPE_HOST;
    case MemoryType::kDevice:
    case MemoryType::kManaged:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return 0;
  }
}

// Writes one attribute of memory that a device knows; kNotSupported if the
// stand-in does not have it.
Status PutAttribute(void* out, CUpointer_attribute attribute, DevicePtr ptr,
                    const PointerInfo& info) {
  DevicePtr base = 0;
  std::uint64_t bytes = 0;
  const bool on_host =
      info.type == MemoryType::kHost || info.type == MemoryType::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(out, HandleOf(PrimaryContext(info.device)));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put(out, DriverType(info.type));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put(out, CUdeviceptr{ptr});
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!on_host) return Status::kInvalidValue;
      return Put(out, reinterpret_cast<void*>(ptr));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put(out, info.type == MemoryType::kManaged);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put(out, int{info.device});
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Put(out, false);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      if (FindProcess()
              ->platform.sim_device(info.device)
              .AddressRange(ptr, &base, &bytes) != Status::kSuccess) {
        return Status::kInvalidValue;
      }
      return attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE
                 ? Put(out, std::size_t{bytes})
                 : Put(out, CUdeviceptr{base});
    default:
      return Status::kNotSupported;
  }
}

// Writes the value that a driver reports for an address that no device knows.
Status PutNothing(void* out, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put(out, std::uint64_t{0});
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put(out, 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put(out, -2);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Put(out, false);
    default:
      return Status::kNotSupported;
  }
}

}  // namespace

CUresult PointerGetAttribute(void* data, CUpointer_attribute attribute,
                             CUdeviceptr ptr) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (data == nullptr) return Status::kInvalidValue;
    PointerInfo info;
    const Status status = device.PointerAttributes(ptr, &info);
    if (status != Status::kSuccess) return status;
    if (info.type == MemoryType::kUnregistered) return Status::kInvalidValue;
    return PutAttribute(data, attribute, ptr, info);
  });
}

CUresult PointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                              void** data, CUdeviceptr ptr) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (attributes == nullptr || data == nullptr) return Status::kInvalidValue;
    PointerInfo info;
    Status status = device.PointerAttributes(ptr, &info);
    if (status != Status::kSuccess) return status;
    for (unsigned i = 0; i < count; ++i) {
      status = info.type == MemoryType::kUnregistered
                   ? PutNothing(data[i], attributes[i])
                   : PutAttribute(data[i], attributes[i], ptr, info);
      // An attribute that the memory lacks has the value zero.
      if (status == Status::kInvalidValue) {
        status = PutNothing(data[i], attributes[i]);
      }
      if (status != Status::kSuccess) return status;
    }
    return Status::kSuccess;
  });
}

}  // namespace strata::simdriver
