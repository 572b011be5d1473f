// Virtual memory. These calls need no current context, as a driver's.

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/types.h"

namespace strata::simdriver {
CUresult MemGetAllocationGranularity(std::size_t* bytes,
                                     const CUmemAllocationProp* prop,
                                     CUmemAllocationGranularity_flags option) {
  return OnAnyDevice([&](SimDevice& device) {
    MemProperties properties;
    if (bytes == nullptr || prop == nullptr || !ToStrata(*prop, &properties)) {
      return Status::kInvalidValue;
    }
    return device.Granularity(
        properties, option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, bytes);
  });
}

CUresult MemAddressReserve(CUdeviceptr* ptr, std::size_t bytes,
                           std::size_t alignment, CUdeviceptr hint,
                           unsigned long long flags) {  // NOLINT
  return OnAnyDevice([&](SimDevice& device) {
    if (flags != 0) return Status::kInvalidValue;
    return PutMade(ptr, device, &SimDevice::ReserveRange, bytes, alignment,
                   hint);
  });
}

CUresult MemAddressFree(CUdeviceptr ptr, std::size_t bytes) {
  return OnAnyDevice(&SimDevice::FreeRange, ptr, bytes);
}

CUresult MemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                   const CUmemAllocationProp* prop,
                   unsigned long long flags) {  // NOLINT
  return OnAnyDevice([&](SimDevice& device) {
    MemProperties properties;
    if (prop == nullptr || flags != 0 || !ToStrata(*prop, &properties)) {
      return Status::kInvalidValue;
    }
    return PutMade(handle, device, &SimDevice::CreateMemory, bytes, properties);
  });
}

CUresult MemRelease(CUmemGenericAllocationHandle handle) {
  return OnAnyDevice(&SimDevice::ReleaseMemory, MemHandle{handle});
}

CUresult MemMap(CUdeviceptr ptr, std::size_t bytes, std::size_t offset,
                CUmemGenericAllocationHandle handle,
                unsigned long long flags) {  // NOLINT
  return OnAnyDevice([&](SimDevice& device) {
    if (flags != 0) return Status::kInvalidValue;
    return device.MapRange(ptr, bytes, offset, {handle});
  });
}

CUresult MemUnmap(CUdeviceptr ptr, std::size_t bytes) {
  return OnAnyDevice(&SimDevice::UnmapRange, ptr, bytes);
}

CUresult MemSetAccess(CUdeviceptr ptr, std::size_t bytes,
                      const CUmemAccessDesc* access, std::size_t count) {
  return OnAnyDevice([&](SimDevice& device) {
    if (access == nullptr && count != 0) return Status::kInvalidValue;
    return device.SetAccess(ptr, bytes, ToStrata(access, count).data(), count);
  });
}

CUresult MemGetAccess(unsigned long long* flags,  // NOLINT
                      const CUmemLocation* location, CUdeviceptr ptr) {
  return OnAnyDevice([&](SimDevice& device) {
    if (flags == nullptr || location == nullptr) return Status::kInvalidValue;
    Access access = Access::kNone;
    const Status status = device.GetAccess(ptr, ToStrata(*location), &access);
    if (status == Status::kSuccess) {
      *flags = static_cast<unsigned>(access);
    }
    return status;
  });
}

CUresult MemExport(void* out, CUmemGenericAllocationHandle handle,
                   CUmemAllocationHandleType type,
                   unsigned long long flags) {  // NOLINT
  return OnAnyDevice([&](SimDevice& device) {
    ShareType share = ShareType::kNone;
    if (out == nullptr || flags != 0 || !ToStrata(type, &share)) {
      return Status::kInvalidValue;
    }
    Shareable shareable;
    const Status status = device.ExportMemory({handle}, share, &shareable);
    if (status == Status::kSuccess) PutShareable(share, shareable, out);
    return status;
  });
}

CUresult MemImport(CUmemGenericAllocationHandle* handle, void* os_handle,
                   CUmemAllocationHandleType type) {
  return OnAnyDevice([&](SimDevice& device) {
    ShareType share = ShareType::kNone;
    if (handle == nullptr || !ToStrata(type, &share) ||
        (share == ShareType::kFabric && os_handle == nullptr)) {
      return Status::kInvalidValue;
    }
    return PutMade(handle, device, &SimDevice::ImportMemory, share,
                   ToShareable(share, os_handle));
  });
}

CUresult MemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                   void* ptr) {
  return OnAnyDevice([&](SimDevice& device) {
    if (handle == nullptr) return Status::kInvalidValue;
    MemHandle found;
    const Status status =
        device.RetainMemory(reinterpret_cast<DevicePtr>(ptr), &found);
    if (status == Status::kSuccess) *handle = found.value;
    return status;
  });
}

}  // namespace strata::simdriver
