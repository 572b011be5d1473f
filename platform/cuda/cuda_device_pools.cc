// Stream-ordered pools of a GPU.

#include "strata/platform/cuda/cuda_device_run.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

// `bytes` and `value` as in call_trace.h.
CallRecord CallAbout(DeviceCall device_call, MemPool pool,
                     std::size_t bytes = 0, std::uint64_t value = 0) {
  return RecordOf(device_call, ToNumber(pool), bytes, value);
}

CUmemPool_attribute ToCuda(PoolAttribute attribute) {
  return static_cast<CUmemPool_attribute>(attribute);
}

// The reuse policies are ints; all other attributes are 64 bits wide.
bool IsPolicy(PoolAttribute attribute) {
  return attribute <= PoolAttribute::kReuseAllowInternalDependencies;
}

}  // namespace

Status CudaDevice::DefaultMemPool(MemPool* pool) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return Run(CallAbout(DeviceCall::kDefaultMemPool, {}), [&](CallRecord* seen) {
    if (pool == nullptr) return Status::kInvalidValue;
    CUmemoryPool found = nullptr;
    const CUresult result = driver_.DeviceGetDefaultMemPool(&found, device_);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    pool->value = found;
    seen->ptr = ToNumber(*pool);
    return Status::kSuccess;
  });
}

Status CudaDevice::PoolCreate(MemPool* pool, const MemProperties& properties,
                              std::size_t max_bytes) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  const auto share = static_cast<std::uint64_t>(properties.share);
  return Run(CallAbout(DeviceCall::kPoolCreate, {}, max_bytes, share),
             [&](CallRecord* seen) {
               if (pool == nullptr) return Status::kInvalidValue;
               CUmemPoolProps props = {};
               props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
               props.handleTypes = cuda::ToCuda(properties.share);
               props.location = cuda::ToCuda(properties.location);
               props.maxSize = max_bytes;
               CUmemoryPool made = nullptr;
               const CUresult result = driver_.MemPoolCreate(&made, &props);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               pool->value = made;
               seen->ptr = ToNumber(*pool);
               return Status::kSuccess;
             });
}

Status CudaDevice::PoolDestroy(MemPool pool) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return Run(CallAbout(DeviceCall::kPoolDestroy, pool), [&](CallRecord*) {
    if (!pool) return Status::kInvalidValue;
    return ToStatus(driver_.MemPoolDestroy(cuda::ToCuda(pool)));
  });
}

Status CudaDevice::PoolTrimTo(MemPool pool, std::size_t keep_bytes) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return Run(
      CallAbout(DeviceCall::kPoolTrimTo, pool, keep_bytes), [&](CallRecord*) {
        if (!pool) return Status::kInvalidValue;
        return ToStatus(driver_.MemPoolTrimTo(cuda::ToCuda(pool), keep_bytes));
      });
}

Status CudaDevice::PoolSetAttribute(MemPool pool, PoolAttribute attribute,
                                    std::uint64_t value) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  const CallRecord call = CallAbout(DeviceCall::kPoolSetAttribute, pool, value,
                                    static_cast<std::uint64_t>(attribute));
  return Run(call, [&](CallRecord*) {
    if (!pool) return Status::kInvalidValue;
    int policy = value != 0 ? 1 : 0;
    void* data = &value;
    if (IsPolicy(attribute)) data = &policy;
    return ToStatus(driver_.MemPoolSetAttribute(cuda::ToCuda(pool),
                                                ToCuda(attribute), data));
  });
}

Status CudaDevice::PoolGetAttribute(MemPool pool, PoolAttribute attribute,
                                    std::uint64_t* value) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  const CallRecord call = CallAbout(DeviceCall::kPoolGetAttribute, pool, 0,
                                    static_cast<std::uint64_t>(attribute));
  return Run(call, [&](CallRecord*) {
    if (!pool || value == nullptr) return Status::kInvalidValue;
    std::uint64_t number = 0;
    int policy = 0;
    void* data = &number;
    if (IsPolicy(attribute)) data = &policy;
    const CUresult result = driver_.MemPoolGetAttribute(
        cuda::ToCuda(pool), ToCuda(attribute), data);
    if (result != CUDA_SUCCESS) return ToStatus(result);
    *value = IsPolicy(attribute) ? static_cast<std::uint64_t>(policy) : number;
    return Status::kSuccess;
  });
}

Status CudaDevice::PoolSetAccess(MemPool pool, const AccessDescriptor* access,
                                 std::size_t count) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return Run(CallAbout(DeviceCall::kPoolSetAccess, pool, 0, count),
             [&](CallRecord*) {
               if (!pool || (access == nullptr && count != 0)) {
                 return Status::kInvalidValue;
               }
               const auto descriptors = cuda::ToCuda(access, count);
               return ToStatus(driver_.MemPoolSetAccess(
                   cuda::ToCuda(pool), descriptors.data(), count));
             });
}

Status CudaDevice::MallocFromPoolAsync(DevicePtr* ptr, std::size_t bytes,
                                       MemPool pool, Stream stream) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return RunOn(
      stream,
      CallAbout(DeviceCall::kMallocFromPoolAsync, {}, bytes, ToNumber(pool)),
      [&](CallRecord* seen) {
        if (ptr == nullptr || !pool) return Status::kInvalidValue;
        CUdeviceptr memory = 0;
        const CUresult result = driver_.MemAllocFromPoolAsync(
            &memory, bytes, cuda::ToCuda(pool), cuda::ToCuda(stream));
        if (result != CUDA_SUCCESS) return ToStatus(result);
        *ptr = memory;
        seen->ptr = memory;
        return Status::kSuccess;
      });
}

Status CudaDevice::FreeAsync(DevicePtr ptr, Stream stream) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  CallRecord call = CallAbout(DeviceCall::kFreeAsync, {});
  call.ptr = ptr;
  return RunOn(stream, call, [&](CallRecord*) {
    return ToStatus(driver_.MemFreeAsync(ptr, cuda::ToCuda(stream)));
  });
}

Status CudaDevice::PoolExport(MemPool pool, ShareType type,
                              Shareable* shareable) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return Run(CallAbout(DeviceCall::kPoolExport, pool, 0,
                       static_cast<std::uint64_t>(type)),
             [&](CallRecord*) {
               if (!pool || shareable == nullptr || type == ShareType::kNone) {
                 return Status::kInvalidValue;
               }
               Shareable made;
               void* data = &made.fd;
               if (type == ShareType::kFabric) data = made.fabric.data();
               const CUresult result = driver_.MemPoolExport(
                   data, cuda::ToCuda(pool), cuda::ToCuda(type), 0);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *shareable = made;
               return Status::kSuccess;
             });
}

Status CudaDevice::PoolImport(MemPool* pool, ShareType type,
                              const Shareable& shareable) {
  if (!caps_.mem_pools) return Status::kNotSupported;
  return Run(CallAbout(DeviceCall::kPoolImport, {}, 0,
                       static_cast<std::uint64_t>(type)),
             [&](CallRecord* seen) {
               if (pool == nullptr || type == ShareType::kNone) {
                 return Status::kInvalidValue;
               }
               Shareable given = shareable;
               CUmemoryPool made = nullptr;
               const CUresult result = driver_.MemPoolImport(
                   &made, OsHandle(type, &given), cuda::ToCuda(type), 0);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               pool->value = made;
               seen->ptr = ToNumber(*pool);
               return Status::kSuccess;
             });
}

}  // namespace strata::cuda
