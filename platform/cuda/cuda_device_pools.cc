// Stream-ordered pools of a GPU.

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

// The reuse policies are ints; all other attributes are 64 bits wide.
bool IsPolicy(PoolAttribute attribute) {
  return attribute <= PoolAttribute::kReuseAllowInternalDependencies;
}

}  // namespace

Status CudaDevice::DoDefaultMemPool(Call* seen, MemPool* pool) {
  if (pool == nullptr) return Status::kInvalidValue;
  CUmemoryPool found = nullptr;
  const CUresult result = driver_.DeviceGetDefaultMemPool(&found, device_);
  return Give(result, found, pool, seen);
}

Status CudaDevice::DoPoolCreate(Call* seen, MemPool* pool,
                                const MemProperties& properties,
                                std::size_t max_bytes) {
  if (pool == nullptr) return Status::kInvalidValue;
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = ToCuda(properties.share);
  props.location = ToCuda(properties.location);
  props.maxSize = max_bytes;
  CUmemoryPool made = nullptr;
  const CUresult result = driver_.MemPoolCreate(&made, &props);
  return Give(result, made, pool, seen);
}

Status CudaDevice::DoPoolDestroy(Call*, MemPool pool) {
  if (!pool) return Status::kInvalidValue;
  return ToStatus(driver_.MemPoolDestroy(ToCuda(pool)));
}

Status CudaDevice::DoPoolTrimTo(Call*, MemPool pool, std::size_t keep_bytes) {
  if (!pool) return Status::kInvalidValue;
  return ToStatus(driver_.MemPoolTrimTo(ToCuda(pool), keep_bytes));
}

Status CudaDevice::DoPoolSetAttribute(Call*, MemPool pool,
                                      PoolAttribute attribute,
                                      std::uint64_t value) {
  if (!pool) return Status::kInvalidValue;
  int policy = value != 0 ? 1 : 0;
  void* data = &value;
  if (IsPolicy(attribute)) data = &policy;
  return ToStatus(
      driver_.MemPoolSetAttribute(ToCuda(pool), ToCuda(attribute), data));
}

Status CudaDevice::DoPoolGetAttribute(Call*, MemPool pool,
                                      PoolAttribute attribute,
                                      std::uint64_t* value) {
  if (!pool || value == nullptr) return Status::kInvalidValue;
  std::uint64_t number = 0;
  int policy = 0;
  void* data = &number;
  if (IsPolicy(attribute)) data = &policy;
  const CUresult result =
      driver_.MemPoolGetAttribute(ToCuda(pool), ToCuda(attribute), data);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *value = IsPolicy(attribute) ? static_cast<std::uint64_t>(policy) : number;
  return Status::kSuccess;
}

Status CudaDevice::DoPoolSetAccess(Call*, MemPool pool,
                                   const AccessDescriptor* access,
                                   std::size_t count) {
  if (!pool || (access == nullptr && count != 0)) return Status::kInvalidValue;
  const auto descriptors = ToCuda(access, count);
  return ToStatus(
      driver_.MemPoolSetAccess(ToCuda(pool), descriptors.data(), count));
}

Status CudaDevice::DoMallocFromPoolAsync(Call* seen, DevicePtr* ptr,
                                         std::size_t bytes, MemPool pool,
                                         Stream stream) {
  if (ptr == nullptr || !pool) return Status::kInvalidValue;
  CUdeviceptr memory = 0;
  const CUresult result = driver_.MemAllocFromPoolAsync(
      &memory, bytes, ToCuda(pool), ToCuda(stream));
  return Give(result, memory, ptr, seen);
}

Status CudaDevice::DoFreeAsync(Call*, DevicePtr ptr, Stream stream) {
  return ToStatus(driver_.MemFreeAsync(ptr, ToCuda(stream)));
}

Status CudaDevice::DoPoolExport(Call*, MemPool pool, ShareType type,
                                Shareable* shareable) {
  if (!pool) return Status::kInvalidValue;
  return Export(type, shareable, [&](void* data) {
    return driver_.MemPoolExport(data, ToCuda(pool), ToCuda(type), 0);
  });
}

Status CudaDevice::DoPoolImport(Call* seen, MemPool* pool, ShareType type,
                                const Shareable& shareable) {
  if (pool == nullptr || type == ShareType::kNone) return Status::kInvalidValue;
  Shareable given = shareable;
  CUmemoryPool made = nullptr;
  const CUresult result =
      driver_.MemPoolImport(&made, OsHandle(type, &given), ToCuda(type), 0);
  return Give(result, made, pool, seen);
}

}  // namespace strata::cuda
